"""IBM Model 1 (Brown et al. 1993) as Snell et al. §4.2 read it: what mere co-occurrence says about who translates whom.

The count table C adds 1/L for each pair of an input and an output token of one sentence pair, L tokens being in the
input; it is also the C of their equation 13, which drives a bag-of-words model when training starts. From it follow
Trans(o|i) = C_io / Σ_o' C_io', the probe β_IBM = Trans(y_t|x_l) and the alignment α_IBM: β_IBM divided by its sum over
the input. Expectation maximisation goes on from there: each output token is shared out among the inputs by α_IBM, no
longer evenly. Its first iteration is the count table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from attndyn.errors import UserError
from attndyn.tasks.text import Pairs, Text, read_parallel

NULL = "<NULL>"
"""The empty word, which an output without a partner may choose; NLTK's None."""

CHUNK = 8_000_000
"""Co-occurrences that are looked up at once: 64 MB of keys."""

Ints = Int[np.ndarray, "_"]
Floats = Float[np.ndarray, "_"]


def count_table(pairs: Pairs) -> sp.csr_array:
    """C [input word, output word] of equation 13; a pair with an empty side adds nothing."""
    share = np.repeat(1 / np.maximum(pairs.source.lengths, 1), pairs.source.lengths)
    table = (matrix(pairs.source, share).T.tocsr() @ matrix(pairs.target)).astype(np.float64)
    table.sort_indices()
    return table


def translation(counts: sp.csr_array) -> sp.csr_array:
    """Trans(o|i): the rows of the count table, each divided by its sum; a word that met no output has an empty row."""
    totals = counts.sum(axis=1)
    per_entry = np.repeat(totals, np.diff(counts.indptr))
    return sp.csr_array((counts.data / per_entry, counts.indices, counts.indptr), shape=counts.shape)


def matrix(text: Text, weights: np.ndarray | None = None) -> sp.csr_array:
    """[line, word], repeated words added up."""
    weights = np.ones(len(text.ids)) if weights is None else weights
    matrix = sp.csr_array((weights, text.ids, text.offsets), shape=(len(text), len(text.words)), copy=True)
    matrix.sum_duplicates()
    return matrix


@dataclass(frozen=True, eq=False)
class Ibm1:
    """A trained table. `repr` and the methods speak in words; `counts` and `trans` are [input word, output word]."""

    source_words: list[str]
    target_words: list[str]
    counts: sp.csr_array
    """The count table C (with the empty word as its last row, if there is one)."""
    trans: sp.csr_array
    """Trans(o|i) after `iterations`; after one it is the count table with its rows normalised."""
    iterations: int
    null: bool
    perplexity: list[float] = field(repr=False)
    """Of an output word given its input line, before each iteration but the first; it never rises."""

    def __repr__(self) -> str:
        inputs, outputs = self.trans.shape
        null = f" and {NULL}" if self.null else ""
        return (
            f"<IBM Model 1: {inputs - self.null:,} input words{null}, {outputs:,} output words, "
            f"{self.trans.nnz:,} co-occurrences, {self.iterations} iterations>"
        )

    def partners(self, word: str, most: int = 5) -> list[tuple[str, float]]:
        """The input words that give an output word the highest probability."""
        column = self.trans[:, [self._number(word, self.target_words)]].tocoo()
        best = np.argsort(-column.data, kind="stable")[:most]
        return [(self.source_words[column.row[k]], float(column.data[k])) for k in best]

    def beta(self, source: Sequence[str], target: Sequence[str]) -> Float[np.ndarray, "query key"]:
        """β_IBM [output position, input position]: Trans(y_t|x_l); 0 where the two never met."""
        if isinstance(source, str) or isinstance(target, str):
            raise UserError(
                "a sentence is a list of words, not a text: line.split(), or whatever cut the training text"
            )
        values = np.zeros((len(target), len(source)))
        rows, columns = (
            np.array([known.get(word, -1) for word in line])
            for known, line in ((self._inputs, source), (self._outputs, target))
        )
        inside = np.ix_(columns >= 0, rows >= 0)
        values[inside] = self.trans[rows[rows >= 0]][:, columns[columns >= 0]].toarray().T
        return values

    def alpha(self, source: Sequence[str], target: Sequence[str]) -> Float[np.ndarray, "query key"]:
        """α_IBM: β_IBM divided by its sum over the input; uniform where nothing is known of the output word."""
        beta = self.beta(source, target)
        total = beta.sum(axis=1, keepdims=True)
        return np.where(total > 0, beta / np.where(total > 0, total, 1), 1 / max(1, len(source)))

    def align(self, pairs: Pairs) -> Ints:
        """For each output token the input position with the largest α, the first of equals; −1 for the empty word and
        where no input of the line ever met the output. The pairs must be numbered as those of the training."""
        if len(pairs.source.words) + self.null != len(self.source_words):
            raise ValueError("the pairs have another vocabulary than the table")
        source = with_null(pairs.source) if self.null else pairs.source
        best = np.full(len(pairs.target.ids), -1)
        for entries in look_up(source, pairs.target.rows, pairs.target.ids, self.trans):
            values = np.append(self.trans.data, 0.0)[entries.index]
            first = entries.peaks(values) - entries.starts
            nothing = np.maximum.reduceat(values, entries.starts) == 0
            empty_word = first == entries.lengths - 1 if self.null else False
            best[entries.tokens] = np.where(nothing | empty_word, -1, first)
        return best

    @cached_property
    def _inputs(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.source_words)}

    @cached_property
    def _outputs(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.target_words)}

    def _number(self, word: str, words: list[str]) -> int:
        if word not in words:
            raise UserError(f"the table has no word {word!r}")
        return words.index(word)


def with_null(text: Text) -> Text:
    """The empty word, with the last number, at the end of each line that is not empty."""
    filled = text.lengths > 0
    ids = np.insert(text.ids, text.offsets[1:][filled], len(text.words))
    offsets = text.offsets + np.concatenate([[0], filled.cumsum()])
    return Text(ids, offsets, [*text.words, NULL])


@dataclass(frozen=True)
class Entries:
    """Some output tokens with all inputs of their lines, token after token."""

    tokens: Ints
    """Which of the output tokens."""
    starts: Ints
    """Where the inputs of each of them begin."""
    inputs: Ints
    """The input word of each co-occurrence,"""
    index: Ints
    """and where it stands in the table; the table's size, where it stands nowhere."""

    @property
    def lengths(self) -> Ints:
        return np.diff(np.append(self.starts, len(self.index)))

    def peaks(self, values: Floats) -> Ints:
        """For each token the first co-occurrence of those with its largest value."""
        peak = np.repeat(np.maximum.reduceat(values, self.starts), self.lengths)
        return np.minimum.reduceat(np.where(values == peak, np.arange(len(values)), len(values)), self.starts)


def look_up(source: Text, rows: Ints, outputs: Ints, table: sp.csr_array) -> Iterator[Entries]:
    """All co-occurrences of the output tokens, given by their line and their word, with the inputs of their lines."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows_of = np.repeat(np.arange(table.shape[0], dtype=np.int64), np.diff(table.indptr))
    keys = pa.array(rows_of * table.shape[1] + table.indices)
    tokens = np.flatnonzero(source.lengths[rows])  # a token beside an empty input has no partner
    lengths = source.lengths[rows[tokens]]
    ends = lengths.cumsum()
    cuts = np.searchsorted(ends, np.arange(CHUNK, lengths.sum() + CHUNK, CHUNK), side="right")
    for first, last in itertools.pairwise([0, *cuts]):
        some, count = tokens[first:last], lengths[first:last]
        if not len(some):
            continue
        starts = np.concatenate([[0], count[:-1].cumsum()])
        place = np.arange(count.sum()) + np.repeat(source.offsets[rows[some]] - starts, count)
        inputs = source.ids[place]
        wanted = pa.array(inputs.astype(np.int64) * table.shape[1] + np.repeat(outputs[some], count))
        index = pc.fill_null(pc.index_in(wanted, value_set=keys), table.nnz)
        yield Entries(some, starts, inputs, index.to_numpy())


def ibm1(
    source: Path | str | Pairs, target: Path | str | None = None, *,
    iterations: int = 5, null: bool = True, tolerance: float = 0.0, tokenised: bool = False,
) -> Ibm1:  # fmt: skip
    """Trains on two parallel text files, or on `Pairs`.

    It stops after `iterations`, or earlier when the perplexity falls by less than the share `tolerance`. With
    `iterations=1` and `null=False` it is the count table of Snell et al.
    """
    if iterations < 1:
        raise UserError(f"iterations must be at least 1, not {iterations}")
    if isinstance(source, Pairs):
        pairs = source
    elif target is None:
        raise UserError("ibm1 needs two files: attndyn.ibm1(source, target)")
    else:
        pairs = read_parallel(source, target, tokenised=tokenised)
    inputs = with_null(pairs.source) if null else pairs.source
    counts = count_table(Pairs(inputs, pairs.target))
    if not counts.nnz:
        raise UserError("no pair has words on both sides")
    trans, perplexity = translation(counts), []
    done = 1
    if iterations > 1:
        # A word that comes twice in one output line is shared out twice in the same way.
        outputs = matrix(pairs.target).tocoo()
        chunks = list(look_up(inputs, outputs.row, outputs.col, trans))
        while done < iterations:
            trans, logs = _iteration(trans, chunks, outputs.data, inputs.lengths[outputs.row])
            perplexity.append(float(np.exp(-logs / outputs.data.sum())))
            done += 1
            if len(perplexity) > 1 and perplexity[-2] - perplexity[-1] < tolerance * perplexity[-2]:
                break
    return Ibm1(inputs.words, pairs.target.words, counts, trans, done, null, perplexity)


def _iteration(
    trans: sp.csr_array, chunks: list[Entries], repeats: Floats, lengths: Ints
) -> tuple[sp.csr_array, float]:
    """One step of expectation maximisation, and the log likelihood of the outputs before it."""
    counts, logs = np.zeros(trans.nnz), 0.0
    for chunk in chunks:
        beta = trans.data[chunk.index]
        total = np.add.reduceat(beta, chunk.starts)
        weight = repeats[chunk.tokens]
        logs += float(weight @ np.log(total / lengths[chunk.tokens]))
        beta *= np.repeat(weight / total, chunk.lengths)
        counts += np.bincount(chunk.index, beta, trans.nnz)
    return translation(sp.csr_array((counts, trans.indices, trans.indptr), shape=trans.shape)), logs
