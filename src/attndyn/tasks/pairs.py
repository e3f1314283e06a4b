"""Made corpora of pairs, and real ones cut to their frequent words: what a theory of co-occurrence is tried on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attndyn.tasks.text import Pairs, Text

if TYPE_CHECKING:
    import numpy as np

UNKNOWN = "<unk>"


def translation(inputs: int, outputs: int, pairs: int, *, skew: float) -> Pairs:
    """Sentences of 4 to 12 words and their translations, word by word, in which each word is swapped for any other
    with probability .2. Word k is drawn as often as (k + 1)^−skew: 0 is even, 1 is Zipf's law."""
    import numpy as np

    random = np.random.Generator(np.random.PCG64(1))
    offsets = _offsets(random.integers(4, 13, pairs))
    tokens = int(offsets[-1])
    source = _words(random, inputs, skew, tokens)
    swapped = random.random(tokens) < 0.2
    target = np.where(swapped, _words(random, outputs, skew, tokens), source * outputs // inputs)
    return Pairs(_text(source, offsets, inputs), _text(target, offsets, outputs))


def labelled(inputs: int, pairs: int) -> Pairs:
    """Documents of 10 to 30 words under Zipf's law with one of two labels, about equally frequent. Each word leans to
    one label, and the label is drawn by how the words of the document lean together."""
    import numpy as np

    random = np.random.Generator(np.random.PCG64(2))
    offsets = _offsets(random.integers(10, 31, pairs))
    source = _words(random, inputs, 1.0, int(offsets[-1]))
    leaning = random.standard_normal(inputs)
    score = np.add.reduceat(leaning[source], offsets[:-1])
    label = (random.random(pairs) < 1 / (1 + np.exp(score.mean() - score))).astype(np.int32)
    return Pairs(_text(source, offsets, inputs), _text(label, np.arange(pairs + 1), 2))


def frequent(text: Text, words: int) -> Text:
    """The most frequent words keep a number of their own, the rest share one: at most `words` in all."""
    import numpy as np

    if len(text.words) <= words:
        return text
    kept = np.argsort(-text.counts, kind="stable")[: words - 1]
    number = np.zeros(len(text.words), np.int32)
    number[kept] = np.arange(1, words)
    return Text(number[text.ids], text.offsets, [UNKNOWN, *(text.words[word] for word in kept)])


def _offsets(lengths: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.concatenate([[0], lengths.cumsum()])


def _words(random: np.random.Generator, words: int, skew: float, size: int) -> np.ndarray:
    import numpy as np

    weights = np.arange(1, words + 1) ** -skew
    return random.choice(words, size, p=weights / weights.sum()).astype(np.int32)


def _text(ids: np.ndarray, offsets: np.ndarray, words: int) -> Text:
    return Text(ids, offsets, [str(word) for word in range(words)])
