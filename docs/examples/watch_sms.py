"""A small BERT learns to tell spam from other text messages, from scratch, and its attention is watched.

    python docs/examples/watch_sms.py [FILE.tsv] [--steps 1000] [--out runs/sms]

The file holds label<TAB>text lines (plain, .gz or .xz), such as the SMS Spam Collection with the labels spam and ham.
Needs `pip install 'attndyn[hf]'`. About a minute on two CPU cores; ends with the path of the page.
"""

import argparse
import sys
import tempfile
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

import attndyn
from attndyn.errors import UserError
from attndyn.tasks.corpora import find
from attndyn.tasks.presence import obtain
from attndyn.tasks.text import Pairs, read_labelled

LENGTH, WORDS, BATCH, WATCHED = 32, 2000, 32, 16
SPECIAL = ["[pad]", "[cls]", "[rare]"]


def encode(data: Pairs) -> tuple[torch.Tensor, torch.Tensor, list[str]]:
    """Token numbers [message, 1 + LENGTH], padded with 0; labels; the text of each number."""
    frequent = np.argsort(-data.source.counts, kind="stable")[:WORDS]
    number = np.full(len(data.source.words), SPECIAL.index("[rare]"))
    number[frequent] = len(SPECIAL) + np.arange(len(frequent))
    ids = torch.zeros(len(data), 1 + LENGTH, dtype=torch.int64)
    ids[:, 0] = SPECIAL.index("[cls]")
    for message in range(len(data)):
        start, end = data.source.offsets[message : message + 2]
        words = number[data.source.ids[start : min(end, start + LENGTH)]]
        ids[message, 1 : 1 + len(words)] = torch.from_numpy(words)
    return ids, torch.from_numpy(data.target.ids).long(), SPECIAL + [data.source.words[word] for word in frequent]


def batch_of(ids: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"input_ids": ids, "attention_mask": (ids > 0).long()}


def collate(rows: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, Any]:
    ids, labels = (torch.stack(column) for column in zip(*rows, strict=True))
    return {**batch_of(ids), "labels": labels}


def build(words: int) -> BertForSequenceClassification:
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=words, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
            max_position_embeddings=1 + LENGTH, num_labels=2,
        )
    )  # fmt: skip


def split(ids: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The messages to watch, as many of each kind, in turn; and which ones are left to train on."""
    watched = torch.stack([(labels == kind).nonzero()[: WATCHED // 2, 0] for kind in (0, 1)], dim=1).flatten()
    training = torch.ones(len(ids), dtype=torch.bool)
    training[watched] = False
    return watched, training


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "file", nargs="?", help="label<TAB>text a line; SMS Spam, which ships with attndyn, if not given"
    )
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", default="runs/sms")
    options = parser.parse_args()

    data = read_labelled(options.file or obtain(find("sms_spam")).folder / "train.tsv.xz")
    if len(data.target.words) != 2 or data.target.counts.min() <= WATCHED // 2:
        kinds = ", ".join(
            f"{label} {count}" for label, count in zip(data.target.words, data.target.counts, strict=True)
        )
        raise UserError(f"two labels with more than {WATCHED // 2} messages each are needed; there are: {kinds}")
    ids, labels, texts = encode(data)
    watched, training = split(ids, labels)
    set_seed(0)
    model = build(len(texts))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model,
            TrainingArguments(
                folder, max_steps=options.steps, per_device_train_batch_size=BATCH, learning_rate=1e-3, report_to=[],
                save_strategy="no", disable_tqdm=True, dataloader_pin_memory=False, logging_strategy="no",
            ),
            train_dataset=list(zip(ids[training], labels[training], strict=True)),
            data_collator=collate,
        )  # fmt: skip
        callback = attndyn.hf.WatchCallback(
            batch_of(ids[watched]), options.out, targets=labels[watched], query=0, tokens=texts, fresh=True
        )
        trainer.add_callback(callback)
        trainer.train()
    print(attndyn.Run(options.out).info["finding"])
    print(f"page  {options.out}/report.html")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
