"""The callback of the Trainer: real small models, and the same bits with it and without it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments, set_seed

import attndyn
from tests.watching.models import bert, gpt2, padded, tokens

CLASSES = torch.tensor([0, 1, 2, 0, 1])


def classification(rows: list[int]) -> dict[str, Tensor]:
    words = tokens(sum(rows))[: len(rows)]
    return {**padded(words), "labels": CLASSES[: len(rows)]}


def language(rows: list[int]) -> dict[str, Tensor]:
    words = tokens(sum(rows)).clamp_min(1)[: len(rows)]
    return {"input_ids": words, "labels": words}


def train(
    build: Callable[[], nn.Module], collate: Callable[[list[int]], Any], folder: Path, callback: Any = None
) -> dict[str, Tensor]:
    set_seed(1)
    model = build()
    arguments = TrainingArguments(
        str(folder / "trainer"), max_steps=6, per_device_train_batch_size=4, report_to=[], save_strategy="no",
        disable_tqdm=True, dataloader_pin_memory=False, logging_strategy="no", learning_rate=1e-2, use_cpu=True,
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=list(range(24)), data_collator=collate)
    if callback is not None:
        trainer.add_callback(callback)
    trainer.train()
    return model.state_dict()


@pytest.mark.parametrize(("build", "collate"), [(bert, classification), (gpt2, language)])
def test_the_trainer_ends_in_the_same_bits(
    build: Any, collate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if build is gpt2:  # drawing takes seconds; once is enough
        monkeypatch.setattr("attndyn.report.page.build", lambda run, *rest: run.path / "report.html")
    words = tokens(9).clamp_min(1)
    if build is bert:
        options: dict[str, Any] = {"targets": CLASSES, "query": 0}
    else:
        options = {"targets": torch.cat([words[:, 1:], torch.full((5, 1), -100)], dim=1)}
    alone = train(build, collate, tmp_path)
    for every in (2, 1):
        out = tmp_path / f"every {every}"
        callback = attndyn.hf.WatchCallback(padded(words), out, every, probe=2, probes="all", **options)
        watched = train(build, collate, tmp_path, callback)
        assert all(torch.equal(alone[name], watched[name]) for name in alone)
        run = attndyn.Run(out)
        assert run.trace_steps("layer 1", 0) == list(range(0, 7, every))
        assert run.info["status"] == "finished"
        assert (out / "report.html").exists() == (build is bert)
