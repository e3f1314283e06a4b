"""Parallel text: a known corpus, or a folder of one's own with train.de and train.en, valid.de, …"""

from __future__ import annotations

from pathlib import Path

from attndyn.errors import UserError, nearest
from attndyn.tasks import corpora
from attndyn.tasks.presence import obtain
from attndyn.tasks.text import Pairs, read_parallel

SPLITS = ("train", "valid", "test")


def load_parallel(
    corpus: str | Path, source: str, target: str, *, data_dir: Path | str | None = None, tokenised: bool = False
) -> dict[str, Pairs]:
    """The parts of a corpus in words, each numbered on its own; a test part need not be there. `tokenised` is for one's
    own text."""
    files, is_cut = _find(corpus, source, target, data_dir)
    return {
        split: read_parallel(*sides, tokenised=tokenised if is_cut is None else is_cut)
        for split, sides in files.items()
    }


def parallel_files(
    corpus: str | Path, source: str, target: str, *, data_dir: Path | str | None = None
) -> dict[str, tuple[Path, Path]]:
    """The two files of each part, for a tokeniser that is trained on them."""
    return _find(corpus, source, target, data_dir)[0]


def _find(
    corpus: str | Path, source: str, target: str, data_dir: Path | str | None
) -> tuple[dict[str, tuple[Path, Path]], bool | None]:
    """The files, and whether they are tokenised, where that is known."""
    tokenised = None
    if isinstance(corpus, str) and (corpus in corpora.CORPORA or corpus in corpora.SHORT):
        spec = corpora.find(corpus)
        if spec.kind != "parallel":
            raise UserError(f"{corpus} is a {spec.kind} corpus; parallel text is needed here")
        found = obtain(spec, data_dir)
        folder, tokenised = found.folder, found.tokenised
    elif Path(corpus).is_dir():
        folder = Path(corpus)
    else:
        near = nearest(str(corpus), [*corpora.CORPORA, *corpora.SHORT])
        raise UserError(f"{str(corpus)!r} is neither a corpus nor a folder; {near}")
    if source == target:
        raise UserError(f"source and target are both {source!r}; two languages are needed")
    has_test = any(_there(folder, "test", language) for language in (source, target))
    present = SPLITS if has_test else SPLITS[:2]
    files = {split: (_side(folder, split, source), _side(folder, split, target)) for split in present}
    return files, tokenised


def _there(folder: Path, split: str, language: str) -> list[Path]:
    return sorted(path for suffix in ("", ".gz", ".xz") for path in folder.glob(f"{split}*.{language}{suffix}"))


def _side(folder: Path, split: str, language: str) -> Path:
    """Of several test parts (test_2016_flickr, test_2017_flickr) the first by name."""
    there = _there(folder, split, language)
    if not there:
        languages = {path.name.removesuffix(".xz").removesuffix(".gz").rpartition(".")[2] for path in folder.iterdir()}
        known = sorted(code for code in languages if list(folder.glob(f"train.{code}*")))
        raise UserError(
            f"{folder} holds no {split} part in {language!r}; there are: {', '.join(known) or 'no train.* files'}"
        )
    return there[0]
