"""Parallel text: a known corpus, or one's own.

One's own text is a folder with train.de and train.en, valid.de, …, or two files. Where there is no validation part, a
tenth of the pairs is drawn for it by seed, as the papers do with News Commentary; pairs with the same source line stay
on one side.
"""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

import numpy as np

from attndyn.errors import UserError, nearest
from attndyn.tasks import corpora
from attndyn.tasks.draws import keys
from attndyn.tasks.presence import by_name
from attndyn.tasks.text import Pairs, read_parallel

SPLITS = ("train", "valid", "test")
PACKED = ("", ".gz", ".xz")
VALID_SHARE = 0.1
"""Of text without a validation part."""
SEED = 0

Files = dict[str, tuple[Path, Path]]


def load_parallel(
    corpus: str | Path, source: str, target: str, *, data_dir: Path | str | None = None, tokenised: bool = False
) -> dict[str, Pairs]:
    """The parts of a corpus in words, each numbered on its own; a test part need not be there. `tokenised` is for one's
    own text. Of text without a validation part both parts share their numbers."""
    files, is_cut = _find(corpus, source, target, data_dir)
    parts = {
        split: read_parallel(*sides, tokenised=tokenised if is_cut is None else is_cut)
        for split, sides in files.items()
    }
    if "valid" in parts:
        return parts
    train = parts.pop("train")
    drawn = held_out([tuple(train.source.line(n)) for n in range(len(train))], named(files["train"]))
    return {"train": train.take(np.flatnonzero(~drawn)), "valid": train.take(np.flatnonzero(drawn))} | parts


def parallel_files(corpus: str | Path, source: str, target: str, *, data_dir: Path | str | None = None) -> Files:
    """The two files of each part, for a tokeniser that is trained on them. One's own text may have no `valid`; then
    `held_out` draws it."""
    return _find(corpus, source, target, data_dir)[0]


def held_out(sources: Sequence[Hashable], names: str) -> np.ndarray:
    """Which pairs are the validation part, given the source line of each."""
    first: dict[Hashable, int] = {}
    same = [first.setdefault(line, n) for n, line in enumerate(sources)]
    key = keys(len(same), SEED)[same]
    drawn = key <= np.sort(key)[max(1, round(VALID_SHARE * len(key))) - 1]
    if drawn.all():
        raise UserError(
            f"{names}: {len(sources):,} pairs with {len(first):,} different source lines are too few to be split; "
            "give a validation part of its own (a folder with train.* and valid.*)"
        )
    return np.asarray(drawn)


def named(files: Sequence[Path]) -> str:
    return " and ".join(map(str, files))


def existing(start: Path, ending: str) -> Path:
    """start.de, also packed."""
    there = _packed(start.parent, f"{start.name}.{ending}")
    if not there:
        raise UserError(
            f"{start.with_name(f'{start.name}.{ending}')}: no such file, neither plain nor packed (.xz, .gz)"
        )
    return there[0]


def _packed(folder: Path, name: str) -> list[Path]:
    return [path for suffix in PACKED if (path := folder / f"{name}{suffix}").is_file()]


def _find(corpus: str | Path, source: str, target: str, data_dir: Path | str | None) -> tuple[Files, bool | None]:
    """The files, and whether they are tokenised, where that is known."""
    found = by_name(corpus, "parallel", data_dir, begun={source, target} <= set(endings(Path(corpus))))
    _two_languages(source, target)
    if found is not None:
        tested = all(files_of(found.folder, "test", language) for language in (source, target))
        return _parts(found.folder, source, target, SPLITS if tested else SPLITS[:2]), found.tokenised
    return _own(Path(corpus), source, target), None


def _two_languages(source: str, target: str) -> None:
    if source == target:
        raise UserError(f"source and target are both {source!r}; two languages are needed")


def _own(path: Path, source: str, target: str) -> Files:
    """A folder, or the beginning that the names of two files share."""
    if path.is_dir():
        alone = [files_of(path, "", language) for language in (source, target)]
        if [len(files) for files in alone] == [1, 1] and not alone[0][0].name.startswith(SPLITS):
            return {"train": (alone[0][0], alone[1][0])}
        begun = [part for part in SPLITS[1:] if any(files_of(path, part, language) for language in (source, target))]
        return _parts(path, source, target, ["train", *begun])
    there = endings(path)
    if source in there or target in there or len(there) > 1:
        for language in (source, target):
            if language not in there:
                raise UserError(f"{path}.{language}: no such file, neither plain nor packed (.xz, .gz); {_only(there)}")
        return {"train": (existing(path, source), existing(path, target))}
    if path.is_file():
        raise UserError(
            f"{path} is one file of a pair; the beginning that both names share is needed, such as data/mine for "
            f"data/mine.{source} and data/mine.{target}"
        )
    near = nearest(str(path), corpora.named("parallel"))
    raise UserError(
        f"{str(path)!r} is neither a corpus, nor a folder, nor the beginning of two files "
        f"({path.name}.{source} and {path.name}.{target}); {near}"
    )


def _parts(folder: Path, source: str, target: str, splits: Sequence[str]) -> Files:
    return {split: (_side(folder, split, source), _side(folder, split, target)) for split in splits}


def files_of(folder: Path, split: str, language: str) -> list[Path]:
    return sorted(path for suffix in PACKED for path in folder.glob(f"{split}*.{glob.escape(language)}{suffix}"))


def _side(folder: Path, split: str, language: str) -> Path:
    """Of several test parts (test_2016_flickr, test_2017_flickr) the first by name."""
    there = files_of(folder, split, language)
    if there:
        return there[0]
    several = files_of(folder, "", language) if split == SPLITS[0] else []
    if len(several) > 1 and not any(path.name.startswith(SPLITS) for path in several):
        raise UserError(
            f"{folder} holds {several[0].name} and {several[1].name}, and no train.{language}: name two files by the "
            f"beginning that they share, such as {folder / several[0].name.partition(f'.{language}')[0]}"
        )
    beginning = only_beginning(folder)
    found = endings_of(folder.glob(f"{split}*.*")) or (endings(beginning) if beginning else [])
    raise UserError(f"{folder} holds no {split} part in {language!r}; {_only(found)}")


def only_beginning(folder: Path) -> Path | None:
    """The beginning that the names of several files share, if there is one such in the folder."""
    names = {unpacked(path) for path in folder.glob("*.*") if path.is_file()}
    times = Counter(name.rpartition(".")[0] for name in names)
    several = [start for start, count in times.items() if count > 1 and start]
    return folder / several[0] if len(several) == 1 else None


def unpacked(path: Path) -> str:
    return path.name.removesuffix(".xz").removesuffix(".gz")


def endings(start: Path) -> list[str]:
    """What follows the names of files that begin so: de and en of mine.de and mine.en.xz."""
    return endings_of(start.parent.glob(f"{glob.escape(start.name)}.*"), start.name)


def endings_of(files: Iterable[Path], start: str = "") -> list[str]:
    """The languages of these files, by their names."""
    names = [unpacked(path) for path in files if path.is_file()]
    return sorted({name.removeprefix(f"{start}.") if start else name.rpartition(".")[2] for name in names})


def _only(found: Sequence[str]) -> str:
    """What to say of a language that is not there."""
    choose = "; --source-language and --target-language choose two of them" if len(found) > 1 else ""
    return f"there are: {', '.join(found) or 'no files of two languages'}{choose}"
