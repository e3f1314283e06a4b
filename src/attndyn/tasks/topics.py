"""Sentences as bags of words with one label each: the topic task of Lu et al. §3, and labelled text read the same way.

A sentence of the topic task holds one topic word, which tells its topic, and m other words, drawn with replacement from
a dictionary Θ that is much larger than the set of topic words. Words 0 … |T| − 1 are the topic words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attndyn.errors import UserError, nearest
from attndyn.tasks import corpora
from attndyn.tasks.draws import shuffled
from attndyn.tasks.presence import obtain
from attndyn.tasks.text import Pairs, Text, read_labelled, shortened, tokeniser

if TYPE_CHECKING:
    from jaxtyping import Float, Int

PADDING = "<pad>"
SHARES = (0.8, 0.01, 0.19)
"""Training, validation and test part of the synthetic sentences, as in the authors' configuration."""
SST2, SST5 = "sst2", "sst5"


@dataclass(frozen=True, eq=False)
class Bags:
    """How often each word is in each sentence (a sparse [sentence, word] matrix), and the label of each sentence."""

    counts: Any
    labels: Int[np.ndarray, " sentence"]
    words: list[str]
    classes: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def transposed(self) -> Any:
        """[word, sentence]: a product with it is as fast as one with `counts`."""
        return self.counts.T.tocsr()

    @cached_property
    def lengths(self) -> Float[np.ndarray, " sentence"]:
        return np.asarray(self.counts.sum(axis=1)).ravel()

    @cached_property
    def sentences_with(self) -> Int[np.ndarray, " word"]:
        """In how many sentences each word occurs."""
        return np.diff(self.transposed.indptr)

    @cached_property
    def companions(self) -> Float[np.ndarray, " word"]:
        """m of each word: the mean length of the sentences that hold it, less one. NaN for a word that none holds."""
        held = self.transposed.sign() @ self.lengths
        with np.errstate(invalid="ignore"):
            return np.asarray(held / self.sentences_with - 1)

    @cached_property
    def purity(self) -> Float[np.ndarray, " word"]:
        """|n₊ − n₋| / (n₊ + n₋) over the sentences with a word; with more labels, the commonest against the rest."""
        held = self.transposed.sign() @ np.eye(len(self.classes))[self.labels]
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(2 * held.max(axis=1) / held.sum(axis=1) - 1))

    def take(self, sentences: Int[np.ndarray, " kept"]) -> Bags:
        return Bags(self.counts[sentences], self.labels[sentences], self.words, self.classes)

    def padded(self, length: int) -> Bags:
        """Every sentence filled up to `length` with a padding word, which becomes the last word of the dictionary."""
        import scipy.sparse as sp

        filling = sp.csr_matrix((length - self.lengths)[:, None])
        counts = sp.hstack([self.counts, filling], format="csr")
        return Bags(counts, self.labels, [*self.words, PADDING], self.classes)


@dataclass(frozen=True)
class Parts:
    train: Bags
    valid: Bags
    test: Bags


@dataclass(frozen=True)
class TopicWords:
    """J topics with a few topic words each, and m other words a sentence. Defaults: the authors' configuration."""

    topics: int = 4
    each: int = 2
    """Topic words of a topic."""
    dictionary: int = 5000
    """Other words, |Θ|."""
    others: int = 20
    """Other words in a sentence, m."""
    sentences: int = 5000

    def __post_init__(self) -> None:
        if self.each < 1:
            raise UserError(
                f"a topic without a topic word cannot be told from another: each must be 1 or more, not {self.each}"
            )
        if self.topics < 2:
            raise UserError(f"with fewer than two topics there is nothing to learn: topics is {self.topics}")
        if self.dictionary < 1:
            raise UserError(f"the dictionary of other words is empty: it must hold 1 or more, not {self.dictionary}")
        if self.others < 1:
            raise UserError(f"a sentence of a topic word alone leaves nothing to attend to: others is {self.others}")
        if round(min(SHARES) * self.sentences) < 1:
            raise UserError(f"sentences must be at least {round(1 / min(SHARES))}, not {self.sentences}")

    @property
    def topic_words(self) -> int:
        return self.topics * self.each

    def draw(self, seed: int) -> Parts:
        """Sentences of one seed: the topic, one of its words, then the other words, all with equal probability."""
        import scipy.sparse as sp

        random = np.random.Generator(np.random.PCG64([seed, 0]))
        topic = random.integers(self.topics, size=self.sentences)
        word = topic * self.each + random.integers(self.each, size=self.sentences)
        rest = self.topic_words + random.integers(self.dictionary, size=(self.sentences, self.others))
        ids = np.concatenate([word[:, None], rest], axis=1)
        counts = sp.csr_matrix(
            (np.ones(ids.size), ids.ravel(), np.arange(self.sentences + 1) * ids.shape[1]),
            shape=(self.sentences, self.topic_words + self.dictionary),
        )
        counts.sum_duplicates()
        names = [f"t{t + 1}.{n + 1}" for t in range(self.topics) for n in range(self.each)]
        words = [*names, *(f"w{n + 1}" for n in range(self.dictionary))]
        bags = Bags(counts, topic, words, [str(t + 1) for t in range(self.topics)])
        train, valid = (round(share * self.sentences) for share in SHARES[:2])
        cuts = np.split(np.arange(self.sentences), [train, train + valid])
        return Parts(*(bags.take(cut) for cut in cuts))


def read(name: str, *, data_dir: Path | str | None = None) -> Parts:
    """sst2 or sst5 (SST sentences with two or five labels), another labelled corpus, or a file of `label<TAB>text`.

    Tokens without a letter or digit are left out. The dictionary is that of the training part; other words, and
    sentences made of them alone, are left out of the other parts. A single file is split .8 / .1 / .1, and a corpus
    without a validation part gives a ninth of its training part.
    """
    corpus = {SST2: "sst5", SST5: "sst5"}.get(name, name)
    if corpus not in corpora.CORPORA:
        if not Path(name).exists():
            known = [SST2, *(other for other, spec in corpora.CORPORA.items() if spec.kind == "labelled")]
            raise UserError(f"{name!r} is neither a labelled corpus nor a file; {nearest(name, known)}")
        whole = _worded(read_labelled(name))
        order = shuffled(len(whole), 0)
        tenth = len(whole) // 10
        if not tenth:
            raise UserError(f"{name}: {len(whole)} lines are too few to be split; 10 or more are needed")
        parts = [whole.take(order[2 * tenth :]), whole.take(order[:tenth]), whole.take(order[tenth : 2 * tenth])]
        return _bags(parts, name)
    spec = corpora.find(corpus)
    if spec.kind != "labelled":
        raise UserError(f"{name} is a {spec.kind} corpus; labelled text is needed here")
    found = obtain(spec, data_dir)
    paths = {split: found.folder / f"{split}.tsv.xz" for split in ("train", "valid", "test")}
    read = {
        split: _worded(read_labelled(path, cut=tokeniser(found.tokenised)))
        for split, path in paths.items()
        if path.exists()
    }
    if name == SST2:
        read = {split: _renamed(pairs, dict(spec.classes)) for split, pairs in read.items()}
    if "valid" not in read:
        order, ninth = shuffled(len(read["train"]), 0), len(read["train"]) // 9
        read["valid"], read["train"] = (read["train"].take(part) for part in (order[:ninth], np.sort(order[ninth:])))
    return _bags([read["train"], read["valid"], read["test"]], name)


def _worded(pairs: Pairs) -> Pairs:
    """Without the tokens that hold neither a letter nor a digit, and without the sentences that this empties."""
    text = pairs.source
    spoken = np.array([any(char.isalnum() for char in word) for word in text.words])[text.ids]
    lengths = np.bincount(text.rows[spoken], minlength=len(text))
    kept = Text(text.ids[spoken], np.concatenate([[0], lengths.cumsum()]), text.words)
    return Pairs(kept, pairs.target).take(np.flatnonzero(lengths))


def _renamed(pairs: Pairs, names: dict[str, str]) -> Pairs:
    """Labels under new names, several of which may be one; sentences of other labels are left out."""
    labels = pairs.target
    classes = sorted(set(names.values()))
    table = np.array([classes.index(names[label]) if label in names else -1 for label in labels.words], dtype=np.int32)
    renamed = Text(table[labels.ids], labels.offsets, classes)
    return Pairs(pairs.source, renamed).take(np.flatnonzero(renamed.ids >= 0))


def _bags(parts: Sequence[Pairs], name: str) -> Parts:
    """Three parts with the words and labels of the first."""
    import scipy.sparse as sp

    train = parts[0].source
    used = np.flatnonzero(train.counts)
    words = [train.words[n] for n in used]
    classes = sorted({parts[0].target.words[n] for n in np.flatnonzero(parts[0].target.counts)})
    if len(classes) < 2:
        raise UserError(
            f"{name}: every text has the label {', '.join(classes)!r}; with one label there is nothing to learn"
        )
    if len(classes) > 50:
        raise UserError(
            f"{name}: {len(classes)} labels, as {shortened(classes[0])!r}; at most 50 can be told apart here"
        )
    place = {word: n for n, word in enumerate(words)}
    made = []
    for pairs in parts:
        text, labels = pairs.source, pairs.target
        column = np.array([place.get(word, -1) for word in text.words])[text.ids]
        answer = np.array([classes.index(label) if label in classes else -1 for label in labels.words])[labels.ids]
        known = column >= 0
        shape = (len(text), len(words))
        counts = sp.csr_matrix((np.ones(known.sum()), (text.rows[known], column[known])), shape=shape)
        kept = np.flatnonzero((answer >= 0) & (np.diff(counts.indptr) > 0))
        made.append(Bags(counts[kept], answer[kept], words, classes))
    if not all(len(part) for part in made):
        raise UserError(f"{name}: no validation or test text holds a word and a label of the training part")
    return Parts(*made)
