"""Pieces: one model for both languages, trained once, and text that comes back as it went in."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from attndyn.errors import UserError
from attndyn.tasks import pieces
from attndyn.tasks.corpus import loaded
from attndyn.tasks.pieces import PieceText
from attndyn.tasks.presence import cache_folder
from attndyn.tasks.ragged import examined_lines
from attndyn.tasks.text import read_lines

SHIPPED = "tatoeba_de_en_small"
LINES = [f"the {colour} {thing} is {size}" for colour in ("red", "green", "blue") for thing in ("house", "tree", "dog")
         for size in ("big", "small")]  # fmt: skip


def folder(path: Path, source: list[str] = LINES, target: list[str] = LINES, language: str = "xx") -> str:
    path.mkdir(exist_ok=True)
    for split in ("train", "valid", "test"):
        (path / f"{split}.{language}").write_text("".join(f"{line}\n" for line in source))
        (path / f"{split}.yy").write_text("".join(f"{line}\n" for line in target))
    return str(path)


def own(path: Path, **changes) -> PieceText:
    return PieceText(folder(path), None, "xx", "yy", **({"pieces": 28} | changes))


def test_text_in_pieces_reads_as_the_text_again() -> None:
    task = PieceText(SHIPPED, pieces=600)
    examples = loaded(task)
    assert task.vocabulary == task.outputs == 600
    assert examples.words[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    target = examples.valid.target
    for n in range(50):
        assert examples.valid.source.line(n)[0] == "<s>"
        assert examples.valid.source.line(n)[-1] == target.line(n)[-1] == "</s>"
        assert "<s>" not in target.line(n)
        ids = target.ids[target.offsets[n] : target.offsets[n + 1]].tolist()
        assert examples.spell([*ids, *ids]) == examples.references["valid"][n]  # what follows </s> is no part of it


def test_both_directions_share_a_model_that_is_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    there = loaded(PieceText(SHIPPED, pieces=601))
    files = sorted(cache_folder().glob("pieces/*"))
    monkeypatch.setattr("sentencepiece.SentencePieceTrainer.train", None)  # no second training
    back = loaded(PieceText(SHIPPED, source="en", target="de", pieces=601))
    assert back.words == there.words
    assert sorted(cache_folder().glob("pieces/*")) == files
    assert back.valid.target.ids.tolist() == pieces.without_first(there.valid.source).ids.tolist()


def test_a_model_is_trained_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = []
    for place in ("one", "two"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / place))
        pieces.trained_model(LINES, 28, "made")
        (path,) = cache_folder().glob("pieces/*")
        models.append((path.name, path.read_bytes()))
    assert models[0] == models[1]


def test_other_text_or_settings_are_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for lines, count in ((LINES, 28), (LINES[:-1], 28), (LINES, 29)):
        pieces.trained_model(lines, count, "made")
    assert len(list(cache_folder().glob("pieces/*"))) == 3


def test_the_decoder_reads_the_target_one_position_late(tmp_path: Path) -> None:
    task = own(tmp_path)
    sampler = task.build([0, 3])
    for batch in (sampler.draw(2, 4).batch(), sampler.widest(4), *sampler.slices(5, "valid", 30)):
        assert (batch.shifted[..., 0] == task.start).all()
        assert torch.equal(batch.shifted[..., 1:], batch.target[..., :-1])
        assert (batch.source[..., 0] == task.start).all()
        last = batch.target_mask.sum(-1, keepdim=True) - 1
        assert (batch.target.gather(-1, last) == task.end).all()


def test_long_pairs_are_left_out_and_counted(tmp_path: Path) -> None:
    lines = [*LINES, " ".join(LINES)]
    task = PieceText(folder(tmp_path, lines, lines), None, "xx", "yy", pieces=28, longest=40)
    examples = loaded(task)
    assert examples.kept == {"train": (18, 19), "valid": (18, 19)}
    assert len(examples.train) == len(examples.valid) == len(examples.references["valid"]) == 18
    assert examples.valid.source.lengths.max() <= 40
    assert task.epoch(18) == 1
    with pytest.raises(UserError, match=r"18 of the 19 training pairs of .* at most 40 pieces a side, fewer than a b"):
        task.epoch(19)


def test_text_without_a_validation_part(tmp_path: Path) -> None:
    """A tenth is drawn, both sides alike; the pieces are made of the rest."""
    for language in ("xx", "yy"):
        (tmp_path / f"mine.{language}").write_text("".join(f"{line}\n" for line in LINES))
    examples = PieceText(str(tmp_path / "mine"), None, "xx", "yy", pieces=26).load()
    assert (len(examples.train), len(examples.valid)) == (16, 2)
    assert examples.note == "no validation part: 2 of the pairs drawn for it, 16 left to train on"
    texts = {split: examples.references[split] for split in ("train", "valid")}
    assert sorted(texts["train"] + texts["valid"]) == sorted(LINES)
    source = examples.valid.source
    ids = [source.ids[source.offsets[n] + 1 : source.offsets[n + 1]].tolist() for n in range(2)]
    assert [examples.spell(line) for line in ids] == texts["valid"]


def test_pairs_in_both_parts_are_counted(tmp_path: Path) -> None:
    task = own(tmp_path)
    for language, lines in (("xx", [LINES[0], LINES[3], "another line"]), ("yy", [LINES[0], LINES[4], "another line"])):
        (tmp_path / f"valid.{language}").write_text("\n".join(lines) + "\n")
    assert task.load().note == "validation pairs that stand in the training part too: 1 of 3"
    (tmp_path / "valid.yy").write_text("other\nlines\nhere\n")
    assert task.load().note == ""
    assert loaded(PieceText(SHIPPED, pieces=600)).note == "", "what a known corpus repeats was published with it"


def test_no_pair_that_is_short_enough(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no pair of .*train\.xx and .*train\.yy has at most 3 pieces .*\(--longest\)"):
        loaded(own(tmp_path, longest=3))


def test_unequal_and_empty_sides(tmp_path: Path) -> None:
    def refused(source: list[str], target: list[str]) -> str:
        with pytest.raises(UserError) as error:
            PieceText(folder(tmp_path, source, target), None, "xx", "yy", pieces=28).load()
        return str(error.value)

    assert "train.xx has 18 lines but" in refused(LINES, LINES[:-1])
    assert "hold no lines" in refused([], [])
    assert "train.yy, line 2 (and 1 more): an empty line" in refused(LINES, [LINES[0], "", " ", *LINES[3:]])


@pytest.mark.parametrize(("pieces", "beyond"), [(9000, 1), (8, -1)])
def test_more_or_fewer_pieces_than_the_text_has(tmp_path: Path, pieces: int, beyond: int) -> None:
    with pytest.raises(UserError, match=f"no vocabulary of {pieces:,} pieces can be made") as caught:
        loaded(own(tmp_path, pieces=pieces))
    limit = int(str(caught.value).rpartition("--vocabulary ")[2])
    assert "character_coverage" not in str(caught.value)
    assert len(loaded(own(tmp_path, pieces=limit)).words) == limit
    with pytest.raises(UserError, match=f"--vocabulary {limit}$"):
        loaded(own(tmp_path, pieces=limit + beyond))


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    trained = loaded(own(tmp_path))
    path = tmp_path / "my.model"
    path.write_bytes(trained.model.serialized_model_proto())
    assert loaded(own(tmp_path, model=str(path))).words == trained.words
    with pytest.raises(UserError, match=r"my\.model has 28 pieces, not the 50 .*: --vocabulary 28 takes it"):
        loaded(own(tmp_path, model=str(path), pieces=50))
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(UserError, match=r"my\.model is no SentencePiece model"):
        own(tmp_path, model=str(path)).load()
    with pytest.raises(UserError, match=r"none\.model: no such file"):
        loaded(own(tmp_path, model=str(tmp_path / "none.model")))


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [("pieces", 4, "a vocabulary must have at least 5 pieces"), ("longest", 2, "longest must be at least 3")],
)
def test_impossible_settings(setting: str, value: int, told: str) -> None:
    with pytest.raises(UserError, match=told):
        PieceText(SHIPPED, **{setting: value})


@pytest.mark.slow
def test_the_positions_of_multi30k(shared_data: Path) -> None:
    """The authors' logs count 16,180 target positions; a model trained again gives nearly as many."""
    lengths = {}
    for source, target in (("de", "en"), ("en", "de")):
        examples = loaded(PieceText("multi30k", str(shared_data), source, target))
        lengths[target] = len(examples.valid.target.ids)
        assert len(examples.references["valid"]) == len(
            list(read_lines(shared_data / "multi30k" / f"valid.{target}.xz"))
        )
    assert lengths == {"en": 15_617, "de": 16_350}


def test_slices_hold_every_pair_once_with_little_padding() -> None:
    task = PieceText(SHIPPED, pieces=600)
    examples = loaded(task)
    slices = task.build([0, 3]).slices(200, "valid", 4000)
    chosen = examples.valid.take(examined_lines(examples.train, examples.valid, 200, "valid"))
    found, cells, padded = [], 0, 0
    for batch in slices:
        mask = batch.source_mask[1]
        assert mask.any(dim=0).all()
        assert batch.target_mask[1].any(dim=0).all()
        found += [ids[kept].tolist() for ids, kept in zip(batch.source[1], mask, strict=True)]
        cells += int((mask.sum(-1) * batch.target_mask[1].sum(-1)).sum())
        padded += batch.source[0].numel() * batch.target.shape[2]
    assert found == [chosen.source.ids[a:b].tolist() for a, b in pairwise(chosen.source.offsets)]
    assert cells > 0.4 * padded
