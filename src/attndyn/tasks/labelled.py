"""Labelled text as integers: a known corpus under its published rules, or a user's own files.

A folder of one's own holds train.tsv and test.tsv (plain, .gz or .xz), a file alone is split; both have
`label<TAB>text` lines. The evaluation examples are at most 4,000 of the test part, drawn by seed: as in the authors'
code the checkpoint is chosen on them, so they are part of the test examples, not beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from attndyn.errors import UserError, nearest
from attndyn.tasks import corpora
from attndyn.tasks.draws import keys, shuffled
from attndyn.tasks.presence import Found, by_name, digest, obtain
from attndyn.tasks.repeats import repeated
from attndyn.tasks.text import Pairs, Text, Tokeniser, read_labelled, shortened, tokeniser
from attndyn.tasks.vectors import Coverage, Vectors, read_vectors
from attndyn.tasks.vocabulary import LONGEST, UNK, Vocabulary, build

EVALUATED = 4000
"""Most examples of the evaluation part."""
TEST_SHARE = 0.2
"""Of a single file."""
FEWEST = 3
"""Examples that a label must have in the training part; fewer look like a slip of the pen."""

Rule = Literal["count", "count or vector"]


class Part(NamedTuple):
    """What was done to a part of the corpus."""

    examples: int
    median: float
    """Words of a text, <bos> and <eos> not counted, before long texts are cut."""
    dropped: int
    """Examples that the rules of the corpus leave out."""
    cut: int
    """Texts longer than LONGEST tokens."""
    unknown: float
    """Share of the running words that are <unk>."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Three parts with one vocabulary. Of each pair the source is the framed text, the target its label."""

    name: str
    train: Pairs
    valid: Pairs
    test: Pairs
    vocabulary: Vocabulary
    rule: Rule
    sizes: dict[Rule, int]
    """Words and special tokens under each rule; under the second only where there are vectors."""
    classes: list[str]
    parts: dict[str, Part]
    files: dict[str, str]
    """The files that were read, with their SHA-256."""
    corpus: corpora.Corpus | None = None
    caveat: str = ""
    """To be said beside the verdicts; of one's own text, how many texts stand in two parts."""
    vectors: Vectors | None = None
    coverage: Coverage | None = None
    """Of the training words by the vectors, where there are some."""

    @property
    def unlike_published(self) -> str:
        """Why no size can be compared with that of the published corpus; empty: it can."""
        if self.corpus is None:
            return "not a published corpus"
        if self.corpus.apart:
            return self.corpus.caveat
        published = self.corpus.published_train
        if published not in (None, len(self.train)):
            return f"{len(self.train):,} training texts, published {published:,}"
        return ""


class Source(NamedTuple):
    """Examples as they were read: words and labels numbered on their own."""

    path: Path
    pairs: Pairs
    lines: np.ndarray
    """The line of each example in the file, from 1."""

    def take(self, examples: np.ndarray) -> Source:
        return Source(self.path, self.pairs.take(examples), self.lines[examples])


def load_labelled(
    corpus: str | Path,
    *,
    data_dir: Path | str | None = None,
    rule: Rule = "count",
    vectors: Path | str | None = None,
    tokenised: bool = False,
    own_valid: bool = False,
    seed: int = 0,
) -> Labelled:
    """A corpus by its name, or a folder or file of one's own.

    `rule` says which words are kept: those seen three times in the training part, or also those with a vector (in the
    file `vectors`, or in the corpus glove). `tokenised` is for one's own text. `seed` draws the evaluation examples and
    splits a single file; `own_valid` takes valid.tsv instead of test examples.
    """
    if rule not in get_args(Rule):
        raise UserError(f"there is no rule {rule!r} for the vocabulary; {nearest(rule, get_args(Rule))}")
    found, paths = _find(corpus, data_dir)
    spec = found.corpus if found else None
    cut = _cut(spec, found.tokenised if found else tokenised)
    sources = {split: _read(path, cut) for split, path in paths.items() if own_valid or split != "valid"}
    for source in sources.values():
        _refuse_empty(source)
    if "test" not in sources:
        sources["train"], sources["test"] = _split(sources["train"], seed)
    before = {split: len(source.pairs) for split, source in sources.items()}
    if spec is not None:
        sources = {split: _under_rules(source, spec) for split, source in sources.items()}
    if not own_valid:
        sources["valid"] = _evaluated(sources["test"], seed)
        before["valid"] = len(sources["valid"].pairs)
    elif "valid" not in sources:
        raise UserError(f"{corpus} has no valid.tsv")
    classes = _classes(sources)

    raw = sources["train"].pairs.source
    known = _vectors(vectors, rule, data_dir, raw)
    integers_unknown = spec is not None and spec.integers_unknown
    choices: dict[Rule, Vocabulary] = {"count": build(raw, integers_unknown=integers_unknown)}
    if known is not None:
        choices["count or vector"] = build(raw, with_vector=known.rows, integers_unknown=integers_unknown)
    vocabulary = choices[rule]
    if known is not None:
        known.check_covers(vocabulary, vectors, corpus)
    parts, facts = {}, {}
    for split, source in sources.items():
        texts, labels = source.pairs.source, source.pairs.target
        encoded = vocabulary.encode(texts)
        place = np.array([classes.index(label) for label in labels.words], dtype=np.int32)
        parts[split] = Pairs(encoded, Text(place[labels.ids], labels.offsets, classes))
        facts[split] = Part(
            examples=len(encoded),
            median=float(np.median(texts.lengths)),
            dropped=before[split] - len(encoded),
            cut=int((texts.lengths > LONGEST - 2).sum()),
            unknown=float((encoded.ids == UNK).sum() / (len(encoded.ids) - 2 * len(encoded))),
        )
    return Labelled(
        name=spec.name if spec else str(corpus),
        vocabulary=vocabulary,
        rule=rule,
        sizes={name: len(choice) for name, choice in choices.items()},
        classes=classes,
        parts=facts,
        files={str(source.path): digest(source.path) for source in sources.values()},
        corpus=spec,
        caveat=found.caveat if found else _in_two_parts(sources, ("valid", "test") if own_valid else ("test",)),
        vectors=known,
        coverage=known.coverage(raw) if known else None,
        **parts,
    )


def read_training(corpus: str | Path, *, data_dir: Path | str | None = None, tokenised: bool = False) -> Source:
    """The training part in its own words, under the rules of the corpus; a single file is not split."""
    found, paths = _find(corpus, data_dir)
    if found is None:
        return _read(paths["train"], _cut(None, tokenised))
    return _under_rules(_read(paths["train"], _cut(found.corpus, found.tokenised)), found.corpus)


def facts(data: Labelled) -> dict[str, Any]:
    """Sizes, median lengths and the vocabulary beside the published ones (Snell et al. table 8 and A.8), for JSON."""
    spec = data.corpus
    return {
        "corpus": data.name,
        "classes": {name: int(n) for name, n in zip(data.classes, data.train.target.counts, strict=True)},
        "parts": {split: data.parts[split]._asdict() for split in ("train", "valid", "test")},
        "rule": data.rule,
        "vocabulary": data.sizes,
        "coverage": data.coverage._asdict() if data.coverage else None,
        "published": {
            "vocabulary": spec.published_vocabulary if spec else None,
            "train": spec.published_train if spec else None,
            "median": spec.published_median if spec else None,
        },
        "caveat": data.caveat,
        "files": data.files,
    }


def has_valid(corpus: str | Path, data_dir: Path | str | None = None) -> bool:
    """Whether the corpus brings a valid.tsv of its own."""
    return "valid" in _find(corpus, data_dir)[1]


def _find(corpus: str | Path, data_dir: Path | str | None) -> tuple[Found | None, dict[str, Path]]:
    """The files of the parts; of a single file, only train."""
    if (found := by_name(corpus, "labelled", data_dir)) is not None:
        optional = [split for split in ("valid",) if (found.folder / f"{split}.tsv.xz").exists()]
        return found, {split: found.file(f"{split}.tsv.xz") for split in ("train", *optional, "test")}
    path = Path(corpus)
    if path.is_dir():
        own = {split: _own(path, split) for split in ("train", "valid", "test")}
        for split in ("train", "test"):
            if own[split] is None:
                raise UserError(f"{path} holds no {split}.tsv (plain, .gz or .xz); train.tsv and test.tsv are expected")
        return None, {split: file for split, file in own.items() if file is not None}
    if not path.exists():
        near = nearest(str(corpus), corpora.named("labelled"))
        raise UserError(f"{str(corpus)!r} is neither a corpus, nor a file, nor a folder; {near}")
    return None, {"train": path}


def _own(folder: Path, split: str) -> Path | None:
    there = [path for suffix in ("", ".gz", ".xz") if (path := folder / f"{split}.tsv{suffix}").exists()]
    if len(there) > 1:
        raise UserError(f"{folder} holds both {there[0].name} and {there[1].name}; keep one of them")
    return there[0] if there else None


def _cut(spec: corpora.Corpus | None, tokenised: bool) -> Tokeniser:
    cut = tokeniser(tokenised)
    if spec is not None and spec.split_underscores:
        return lambda line: cut(line.replace("_", " "))
    return cut


def _read(path: Path, cut: Tokeniser) -> Source:
    pairs = read_labelled(path, cut=cut)
    return Source(path, pairs, np.arange(1, len(pairs) + 1))


def _refuse_empty(source: Source) -> None:
    empty = np.flatnonzero(source.pairs.source.lengths == 0)
    if len(empty):
        raise UserError(f"{source.path}, line {source.lines[empty[0]]}: the text is empty")


def _under_rules(source: Source, spec: corpora.Corpus) -> Source:
    """Examples of the classes and lengths that the corpus is used with, under the names of the classes."""
    texts, labels = source.pairs.source, source.pairs.target
    names = dict(spec.classes) or {label: label for label in labels.words}
    for n, label in enumerate(labels.words):
        if label not in names and label not in spec.dropped:
            line = source.lines[(labels.ids == n).argmax()]
            raise UserError(
                f"{source.path}, line {line}: {label!r} is no label of {spec.name}; {nearest(label, names)} "
                f"({_counted(labels)})"
            )
    classes = list(dict.fromkeys(names.values()))
    table = [classes.index(names[label]) if label in names else -1 for label in labels.words]
    renamed = Text(np.array(table, dtype=np.int32)[labels.ids], labels.offsets, classes)
    kept = renamed.ids >= 0
    if spec.below is not None:
        kept &= texts.lengths < spec.below
    return Source(source.path, Pairs(texts, renamed), source.lines).take(np.flatnonzero(kept))


def _split(whole: Source, seed: int) -> tuple[Source, Source]:
    """A fifth of each label for the test; identical texts of a label stay on one side."""
    texts, labels = whole.pairs.source, whole.pairs.target
    _check_labels(whole, FEWEST + 1)
    first: dict[bytes, int] = {}
    same = [first.setdefault(texts.ids[start:end].tobytes(), n) for n, (start, end) in enumerate(_spans(texts))]
    key = keys(len(texts), seed)[same]
    test = np.zeros(len(texts), dtype=bool)
    for label in range(len(labels.words)):
        mine = labels.ids == label
        test |= mine & (key <= np.sort(key[mine])[max(1, round(TEST_SHARE * int(mine.sum()))) - 1])
        if (mine & ~test).sum() < FEWEST:
            raise UserError(
                f"{whole.path}: the label {labels.words[label]!r} has too few different texts to be split "
                f"({len(set(key[mine]))}); give a folder with train.tsv and test.tsv"
            )
    return whole.take(np.flatnonzero(~test)), whole.take(np.flatnonzero(test))


def _spans(text: Text) -> list[tuple[int, int]]:
    return list(zip(text.offsets[:-1].tolist(), text.offsets[1:].tolist(), strict=True))


def _evaluated(test: Source, seed: int) -> Source:
    return test.take(np.sort(shuffled(len(test.pairs), seed)[:EVALUATED]))


def _in_two_parts(sources: dict[str, Source], judged: Sequence[str]) -> str:
    texts = {split: _with_labels(sources[split].pairs) for split in ("train", *judged)}
    return repeated(texts["train"], {f"{split} texts": texts[split] for split in judged})


def _with_labels(pairs: Pairs) -> list[tuple[str, ...]]:
    """The label and the words of each text."""
    words = np.array(pairs.source.words, dtype=object)[pairs.source.ids].tolist()
    return [
        (pairs.target.words[label], *words[start:end])
        for label, (start, end) in zip(pairs.target.ids, _spans(pairs.source), strict=True)
    ]


def _classes(sources: dict[str, Source]) -> list[str]:
    """The labels of the training part, sorted; the other parts may have no others."""
    _check_labels(sources["train"], FEWEST)
    labels = sources["train"].pairs.target
    classes = sorted({labels.words[n] for n in np.flatnonzero(labels.counts)})
    for split in ("valid", "test"):
        other = sources[split].pairs.target
        for n in np.flatnonzero(other.counts):
            if other.words[n] not in classes:
                line = sources[split].lines[(other.ids == n).argmax()]
                raise UserError(
                    f"{sources[split].path}, line {line}: the label {other.words[n]!r} is not in the training part; "
                    f"{nearest(other.words[n], classes)} ({_counted(other)})"
                )
    return classes


def _check_labels(source: Source, fewest: int) -> None:
    labels = source.pairs.target
    used = np.flatnonzero(labels.counts)
    if not len(used):
        raise UserError(f"{source.path}: the rules of the corpus leave no example")
    if len(used) == 1:
        only = labels.words[used[0]]
        raise UserError(f"{source.path}: every text has the label {only!r}; with one label there is nothing to learn")
    for n in used:
        if labels.counts[n] < fewest:
            line = source.lines[(labels.ids == n).argmax()]
            others = [labels.words[other] for other in used if other != n]
            raise UserError(
                f"{source.path}, line {line}: the label {labels.words[n]!r} has {labels.counts[n]} of the {fewest} "
                f"examples that are needed; {nearest(labels.words[n], others)} ({_counted(labels)})"
            )


def _counted(labels: Text) -> str:
    """The labels and how often each occurs, the most frequent first."""
    order = [n for n in np.argsort(-labels.counts, kind="stable") if labels.counts[n]]
    words = [f"{shortened(labels.words[n])} {labels.counts[n]:,}" for n in order]
    return "labels: " + ", ".join(words if len(words) <= 12 else [*words[:10], "…", words[-1]])


def _vectors(path: Path | str | None, rule: Rule, data_dir: Path | str | None, train: Text) -> Vectors | None:
    if path is None:
        if rule == "count":
            return None
        found = obtain(corpora.find("glove"), data_dir)
        path = found.file(next(iter(found.files)))
    return read_vectors(path, set(train.words))
