"""The run folder, the page, and what a user can get wrong."""

import contextlib
import gc
import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import attndyn
from attndyn.cli import main
from attndyn.models import Learned, Seq2Seq
from attndyn.store.metrics import Metrics, Row
from attndyn.tasks import Permutations
from attndyn.tasks.sampler import CopySampler
from attndyn.watching.numbers import real_queries, where_it_sits
from attndyn.watching.tap import REGISTERED, Call
from attndyn.watching.watch import Schedule, Watch
from tests.watching.models import BATCH, Additive, Encoder, LstmClassifier, bert, gpt2, padded, tokens

CLASSES = torch.tensor([0, 1, 2, 0, 1])


@pytest.fixture(autouse=True)
def _additive() -> Iterator[None]:
    attndyn.register(Additive, axes="batch key")
    yield
    REGISTERED.clear()


def watched(model: nn.Module, out: Path, **options: Any) -> Watch:
    torch.manual_seed(0)
    return attndyn.watch(model, padded(tokens()), out=out, **{"targets": CLASSES, "query": 0, "probe": 3} | options)


def values(run: attndyn.Run, condition: str, metric: str) -> list[float]:
    return Metrics(run.metrics).curves(condition, metric).values[0].tolist()


def test_a_run_leaves_metrics_traces_and_a_page(tmp_path: Path, listing: Callable[[Path], list[str]]) -> None:
    torch.manual_seed(0)
    model = bert()
    w = watched(model, tmp_path / "run", every=2, tokens=[f"w{i}" for i in range(20)])
    for step in range(5):
        w.step(step)
    run = w.close(5)
    assert run.trace_steps("layer 0", 0) == [0, 2, 4, 5]
    assert run.trace_steps("words", 0) == [0, 2, 4, 5], "the readings 0, 1 and 2, and the last"
    assert [name for name in listing(run.path) if name.endswith(".part")] == []
    with torch.no_grad():
        model.eval()
        seen = model.set_attn_implementation("eager") or model(**padded(tokens()), output_attentions=True)
    np.testing.assert_allclose(
        run.trace("layer 1", 0, 4)["alpha"], seen.attentions[1][:3].numpy(), rtol=1e-4, atol=1e-6
    )
    right = seen.logits.softmax(dim=-1).gather(1, CLASSES[:, None]).mean().item()
    assert values(run, "model", "probability of the right output") == pytest.approx([right] * 4, rel=1e-5)
    page = (run.path / "report.html").read_text(encoding="utf-8")
    for part in ("How spread out", "When β finds the word", "Who agrees with whom", "Word by word", "w19"):
        assert part in page
    assert run._repr_html_().startswith("<iframe")
    assert run.info["status"] == "finished"
    assert "entropy of attention went from" in run.info["finding"]


def test_training_ends_well_where_nothing_can_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: (name != "altair" and found(name, *more)) or None
    )
    w = watched(bert(), tmp_path / "run")
    w.step(0)
    with pytest.warns(UserWarning, match=r"no page yet, .*pip install altair.*`attndyn report .*run` makes it"):
        run = w.close(1)
    assert (run.info["status"], run.trace_steps("layer 0", 0)) == ("finished", [0, 1])
    monkeypatch.undo()
    main(["report", str(tmp_path / "run")])
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.usefixtures("no_page")
def test_a_reading_inside_an_intervention_sees_it(tmp_path: Path) -> None:
    """Who trains under uniform attention sees uniform attention; β still puts it on one word."""
    torch.manual_seed(0)
    model = bert(initializer_range=0.5)
    w = watched(model, tmp_path / "run", every=1, cells=[(1, None, 0)])
    with attndyn.attention(model, attndyn.uniform(), layer="bert.encoder.layer.0.attention.self"):
        w.step(0)
    w.step(1)
    run = w.close()
    first, second = (values(run, f"layer {i}", "entropy") for i in (0, 1))
    assert first[0] == pytest.approx(1)
    assert first[1] < 1 - 1e-6
    assert second[0] < 1 - 1e-6
    beta = [run.trace("layer 1", 0, step)["beta all"] for step in (0, 1)]
    assert not np.allclose(*beta, equal_nan=True, rtol=1e-3), "layer 0 is uniform while β is taken at layer 1"


def test_without_targets_only_alpha_is_read_and_the_page_says_so(tmp_path: Path) -> None:
    w = attndyn.watch(Encoder(), tokens(), out=tmp_path / "run", every=1)
    w.step(0)
    run = w.close()
    assert set(run.metrics["metric"].to_pylist()) == {"entropy", "sharpness", "distance"}
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "Left out: Δ and β: they need the right outputs, targets= or score=" in page
    assert "When β" not in page


@pytest.mark.usefixtures("no_page")
def test_scores_of_ones_own_and_a_causal_model(tmp_path: Path) -> None:
    words = tokens()
    targets = torch.cat([words[:, 1:], torch.zeros(BATCH, 1, dtype=torch.int64)], dim=1)
    targets[targets == 0] = -100

    def score(answer: Any, right: torch.Tensor) -> torch.Tensor:
        p = answer.logits.softmax(dim=-1).gather(-1, right.clamp_min(0)[..., None])[..., 0]
        return p.masked_fill(right < 0, torch.nan)

    torch.manual_seed(0)
    model = gpt2()
    runs = []
    for name, options in (("targets", {}), ("score", {"score": score, "embedding": "transformer.wte"})):
        w = attndyn.watch(model, padded(words), out=tmp_path / name, targets=targets, cells="heads", probe=2, **options)
        w.read(0)
        runs.append(w.close())
    first, second = ({tuple(row.values())[:4]: row["value"] for row in run.metrics.to_pylist()} for run in runs)
    assert first.keys() - second.keys() == {("model", 0, 0, "accuracy")} - second.keys()
    for key, value in second.items():
        assert first[key] == pytest.approx(value, nan_ok=True, abs=1e-6), key
    assert len(values(runs[0], "layer 1 head 1", "A(α, β)")) == 1
    assert runs[0].trace("layer 0", 0, 0)["rows"].shape == (2, 2, 7, 7)


@pytest.mark.usefixtures("no_page")
def test_our_own_model_with_known_positions(tmp_path: Path) -> None:
    """`probe right` and `attention right` are those of the study's own readings."""
    from attndyn.measures import focus
    from attndyn.probes.trace import Trace

    task = Permutations(5)
    batch = CopySampler(task, [0]).evaluation(4)
    model = Seq2Seq(hidden=8).build(len(task.tokens), [0])
    w = attndyn.watch(
        model,
        (batch, Learned()),
        out=tmp_path / "run",
        targets=batch.target,
        align=batch.align[0],
        batch_axis=1,
        probe=4,
    )
    w.read(0, probing=True)
    run = w.close()
    trace = Trace(model.eval(), Learned(), batch)
    for metric, expected in (
        ("attention right", focus.peak_share(trace.alpha[:, :, 0], batch.align)),
        ("probe right", focus.peak_share(trace.beta, batch.align)),
        ("entropy", focus.normalised_entropy(trace.alpha[:, :, 0])),
    ):
        assert values(run, "layer 0", metric) == pytest.approx(expected.tolist(), rel=1e-5), metric
    assert run.info["without"] == ["Δ: no nn.Embedding reads the input; name the layer with embedding="]


@pytest.mark.usefixtures("no_page")
def test_an_interrupted_run_goes_on_and_forgets_what_came_later(tmp_path: Path) -> None:
    out = tmp_path / "run"
    model = bert()
    first = watched(model, out, every=1, probes="all")
    for step in range(4):
        first.step(step)
    with pytest.raises(attndyn.UserError, match=r"begun with another readings \(every 1 instead of every 2\)"):
        watched(model, out, every=2, probes="all")
    again = watched(model, out, every=1, probes="all")  # a notebook's cell, run again
    for late in (lambda: first.step(4), lambda: first.close(4)):
        with pytest.raises(attndyn.RunError, match="taken over by a later watch"):
            late()
    again.step(2)
    assert again.record.steps() == [0, 1, 2]
    again.close(3)
    with pytest.raises(attndyn.RunError, match="is finished"):
        again.step(5)
    with pytest.raises(attndyn.UserError, match=r"run without a page, which attndyn report .*run makes; choose"):
        watched(model, out, every=1)
    (out / "report.html").write_text("page")
    with pytest.raises(attndyn.UserError, match="holds a finished run; choose another out="):
        watched(model, out, every=1)
    fresh = watched(model, out, every=1, fresh=True)
    fresh.step(7)
    assert fresh.close().trace_steps("layer 0", 0) == [7]


def test_a_run_that_was_killed_still_gets_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    w = watched(bert(), tmp_path / "run", every=1)
    w.step(0)
    w._open.close()
    run = attndyn.Run(tmp_path / "run")
    assert (run.info["finding"], repr(run)) == ("", f"Run({str(run.path)!r}): watch, running")
    main(["report", str(tmp_path / "run")])
    assert "page" in capsys.readouterr().out
    assert "This run is not finished" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_page")
@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("readings", "readings is missing, though the run is finished"),
        ("traces", "traces has nothing of step 0, which was read"),
        ("traces/chunk-000/step-000001.safetensors", "traces has nothing of step 1, which was read"),
    ],
)
def test_a_run_that_lost_its_readings_or_traces_keeps_its_metrics(gone: str, said: str, tmp_path: Path) -> None:
    w = watched(bert(), tmp_path / "run", every=1)
    w.step(0)
    run = w.close(1)
    before = (run.path / "metrics.parquet").read_bytes()
    shutil.rmtree(run.path / gone) if (run.path / gone).is_dir() else (run.path / gone).unlink()
    with pytest.raises(attndyn.UserError, match=f"{said}; the page cannot be made again"):
        run.report()
    assert (run.path / "metrics.parquet").read_bytes() == before


def test_a_page_before_the_first_reading(tmp_path: Path) -> None:
    w = watched(bert(), tmp_path / "run")
    with pytest.raises(attndyn.UserError, match="holds no reading yet"):
        w.report()


def test_an_error_in_training_leaves_the_readings_and_no_lock(tmp_path: Path) -> None:
    w = watched(bert(), tmp_path / "run", every=1)
    with contextlib.suppress(ZeroDivisionError), w:
        w.step(0)
        raise ZeroDivisionError
    assert w.record.steps() == [0]
    assert watched(bert(), tmp_path / "run", every=1).record.steps() == [0]


def test_memory_does_not_grow_with_the_steps(tmp_path: Path) -> None:
    """Everything read is on disk, and nothing of it stays: as many tensors and rows as before."""
    w = attndyn.watch(LstmClassifier(), tokens(), out=tmp_path / "run", every=1, targets=CLASSES, probe=2, probes="all")
    held = []
    for step in range(60):
        w.step(step)
        if step % 20 == 19:
            gc.collect()
            alive = gc.get_objects()
            held.append((sum(type(one) is torch.Tensor for one in alive), sum(type(one) is Row for one in alive)))
    assert held[0] == held[1] == held[2]


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        (Schedule(3), [0, 3, 6, 9, 12]),
        (Schedule(1, "log"), [0, 1, 2, 3, 4, 6, 8, 11]),
        (Schedule(1, [5, 2]), [2, 5]),
    ],
)
def test_which_steps_are_read(schedule: Schedule, due: list[int]) -> None:
    assert [step for step in range(13) if schedule.due(step)] == due


def test_where_it_sits_row_by_row() -> None:
    """Against the definitions; a query with a single choice, and padding, do not count."""
    generator = torch.Generator().manual_seed(0)
    mask = torch.ones(2, 1, 4, 4).tril().bool().expand(2, 3, 4, 4).clone()
    mask[1, :, :, 2:] = False
    weights = torch.rand(2, 3, 4, 4, generator=generator) * mask
    weights = weights / weights.sum(dim=-1, keepdim=True)
    call = Call(weights, mask)
    queries = real_queries(call)
    assert queries.tolist() == [[True] * 4, [True, True, False, False]]
    found = where_it_sits(call, queries)
    for head in range(3):
        rows = [(0, 1), (0, 2), (0, 3), (1, 1)]
        entropy = [
            -sum(w * np.log(w) for w in weights[b, head, q].tolist() if w) / np.log(int(mask[b, head, q].sum()))
            for b, q in rows
        ]
        distance = [sum(w * abs(q - k) for k, w in enumerate(weights[b, head, q].tolist())) for b, q in rows]
        assert found["entropy"][head].item() == pytest.approx(np.mean(entropy), rel=1e-5)
        assert found["distance"][head].item() == pytest.approx(np.mean(distance), rel=1e-5)
        assert found["sharpness"][head].item() == pytest.approx(np.mean([weights[b, head, q].max() for b, q in rows]))


def test_a_single_position_has_no_entropy() -> None:
    call = Call(torch.ones(2, 1, 1, 1), torch.ones(2, 1, 1, 1, dtype=torch.bool))
    assert where_it_sits(call, torch.ones(2, 1, dtype=torch.bool))["sharpness"].isnan().all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 0}, "every 1 or more steps"),
        ({"steps": "lgo"}, "a list of steps, not 'lgo'"),
        ({"targets": CLASSES[:3]}, "5 examples, but targets of the shape"),
        ({"targets": CLASSES[:, None]}, "do not fit logits of the shape"),
        ({"targets": CLASSES + 2}, "has 3 outputs, so 3 is no target"),
        ({"targets": -1 - CLASSES}, "so -1 is no target"),
        ({"targets": CLASSES.float()}, "targets are whole numbers"),
        ({"targets": ["a"] * 5}, "no array of numbers"),
        ({"targets": None, "score": lambda answer: 0.5}, "score= returned a float"),
        ({"cells": [(0, 0, 0, 0)]}, "cells are"),
        ({"targets": None, "score": lambda answer: answer.logits[..., None]}, "one number for each example"),
        ({"probes": "some"}, "probes is"),
        ({"query": 9}, "no query 9"),
        ({"cells": [(5, 0, 0)]}, "no layer 5"),
        ({"cells": [(0, 3, 0)]}, "no head 3 among 2"),
        ({"cells": [("bert.encoder.layer.1.attention.sel", None, None)]}, "did you mean"),
        ({"cells": "all"}, "cells is"),
        ({"cells": "heads", "max_cells": 3}, "max_cells=4"),
        ({"embedding": "bert.embedings"}, "did you mean 'bert.embeddings'"),
        ({"probe": 0}, "at least 1 example"),
        ({"align": torch.zeros(3)}, "align is"),
        ({"batch_axis": 1, "targets": None}, "batch_axis"),
    ],
)
def test_mistakes_say_so_before_training_begins(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(attndyn.UserError, match=said):
        watched(bert(), tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        (tokens().float(), r"cannot be called with the examples \(\[5, 7\] torch.float32\): RuntimeError"),
        ({"words": tokens()}, "cannot be called with the examples .* unexpected keyword argument 'words'"),
        (tokens() + 100, "index out of range"),
        (tokens().numpy(), "the examples, a ndarray, hold no tensor"),
        (["hello"], "the examples, a list, hold no tensor"),
    ],
)
def test_examples_of_the_wrong_kind_say_so(examples: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(attndyn.UserError, match=said):
        attndyn.watch(Encoder(), examples, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_nothing_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(attndyn.UserError, match="nothing was read"):
        watched(bert(), tmp_path / "run").close()
