"""Models as specs: data only, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from attndyn.errors import UserError

if TYPE_CHECKING:
    from attndyn.models.base import Model
    from attndyn.models.classifier import ClassifierModel
    from attndyn.models.multihead import MultiHeadModel
    from attndyn.models.proxy import ProxyModel
    from attndyn.models.seq2seq import Seq2SeqModel
    from attndyn.models.tagger import ContextModel, TaggerModel
    from attndyn.models.translator import TranslatorModel


@dataclass(frozen=True)
class ModelSpec:
    """Data only; `build` makes the model of several seeds, with an answer for each token if not told otherwise."""

    def build(self, vocabulary: int, seeds: Sequence[Any], outputs: int | None = None) -> Model:
        raise NotImplementedError


@dataclass(frozen=True)
class Origins:
    """The random streams of a replica, where they are not all its seed's."""

    base: int
    """Of the initial weights that all heads share."""
    heads: tuple[int, ...]
    """Of the initial weights of each head."""
    data: int


@dataclass(frozen=True)
class Seq2Seq(ModelSpec):
    """The copying translator of `models/seq2seq.py`."""

    hidden: int = 256
    reading: Literal["code", "text"] = "code"

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise UserError(f"hidden must be at least 1, not {self.hidden}")

    def build(self, vocabulary: int, seeds: Sequence[int], outputs: int | None = None) -> Seq2SeqModel:
        from attndyn.models.seq2seq import Seq2SeqModel

        if outputs not in (None, vocabulary):
            raise UserError(f"the copying translator answers with its own {vocabulary} tokens, not with {outputs}")
        return Seq2SeqModel(self, vocabulary, seeds)


@dataclass(frozen=True)
class MultiHead(ModelSpec):
    """The copying translator with several heads of `models/multihead.py`."""

    hidden: int = 256
    reading: Literal["code", "text"] = "code"
    heads: int = 8
    variant: Literal["text", "authors"] = "text"
    """Query maps W^(k) and summed contexts; or GRUs, also a context map for each head, and averaged contexts."""

    def __post_init__(self) -> None:
        for name in ("hidden", "heads"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.variant == "authors" and self.reading == "text":
            raise UserError("the variant of the authors' program has no reading by the paper's equations")

    def build(self, vocabulary: int, seeds: Sequence[int | Origins], outputs: int | None = None) -> MultiHeadModel:
        from attndyn.models.multihead import MultiHeadModel

        return MultiHeadModel(self, vocabulary, seeds)


@dataclass(frozen=True)
class Proxy(ModelSpec):
    """The bag-of-words proxy of `models/proxy.py`."""

    width: int = 256
    bias: bool = True
    spread: float | None = None
    """Standard deviation of embeddings and output weights at the start: 1/√width in the authors' theorem (§4.1), which
    has no bias either. If not given, they start as in their program: embeddings from N(0, 1), the output map as PyTorch
    draws one, within ±1/√width."""

    def __post_init__(self) -> None:
        if self.width < 1 or not (self.spread is None or 0 < self.spread < float("inf")):
            raise UserError(f"width and spread must be above 0, not {self.width} and {self.spread}")

    def build(self, vocabulary: int, seeds: Sequence[int], outputs: int | None = None) -> ProxyModel:
        from attndyn.models.proxy import ProxyModel

        return ProxyModel(self, vocabulary, seeds, vocabulary if outputs is None else outputs)


@dataclass(frozen=True)
class Classifier(ModelSpec):
    """The classifier of `models/classifier.py`."""

    width: int = 300
    """Of the word vectors."""
    hidden: int = 256
    """Of the LSTM, each direction, and of the attention network."""
    directions: int = 2
    scoring: Literal["network", "linear", "tanh"] = "network"
    encoder: Literal["lstm", "average"] = "lstm"
    """An LSTM, or each word for itself (Jain and Wallace's "average")."""

    def __post_init__(self) -> None:
        if min(self.width, self.hidden) < 1 or self.directions not in (1, 2):
            raise UserError(
                f"width and hidden must be at least 1 and directions 1 or 2, not {self.width}, {self.hidden} and "
                f"{self.directions}"
            )

    def build(self, vocabulary: int, seeds: Sequence[int], outputs: int | None = None) -> ClassifierModel:
        from attndyn.models.classifier import ClassifierModel

        if outputs is None or outputs < 2:
            raise UserError(f"a classifier needs at least two classes, not {outputs}")
        return ClassifierModel(self, vocabulary, seeds, outputs)


@dataclass(frozen=True)
class Translator(ModelSpec):
    """The translator of `models/translator.py`."""

    hidden: int = 256
    """Of the embedding and of each direction of each LSTM."""
    layers: int = 2
    dropout: float = 0.5
    """Share of the units that are dropped between two layers of an LSTM, rounded to a multiple of 1/256."""
    head: Literal["hidden", "linear"] = "hidden"
    """Decoder state and context side by side through a hidden layer, or their sum straight to the output (A.1)."""

    def __post_init__(self) -> None:
        if min(self.hidden, self.layers) < 1:
            raise UserError(f"hidden and layers must be at least 1, not {self.hidden} and {self.layers}")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout lies between 0 and 1, not {self.dropout}")

    def build(self, vocabulary: int, seeds: Sequence[int], outputs: int | None = None) -> TranslatorModel:
        from attndyn.models.translator import TranslatorModel

        if outputs not in (None, vocabulary):
            raise UserError(f"the translator answers with its own {vocabulary} pieces, not with {outputs}")
        return TranslatorModel(self, vocabulary, seeds)


@dataclass(frozen=True)
class Tagger(ModelSpec):
    """The one-layer transformer of `models/tagger.py`."""

    width: int = 300
    """Of the word vectors."""
    hidden: int = 128
    """Of everything else."""
    heads: int = 4
    dropout: float = 0.2
    """Share of units dropped, rounded to a multiple of 1/256."""

    def __post_init__(self) -> None:
        if min(self.width, self.hidden, self.heads) < 1 or self.hidden % (2 * self.heads):
            raise UserError(
                "width, hidden and heads must be at least 1 and hidden a multiple of twice the heads, not "
                f"{self.width}, {self.hidden} and {self.heads}"
            )
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout lies between 0 and 1, not {self.dropout}")

    def build(self, vocabulary: int, seeds: Sequence[int], outputs: int | None = None) -> TaggerModel:
        from attndyn.models.tagger import TaggerModel

        if outputs is None or outputs < 2:
            raise UserError(f"a tagger needs at least two tags, not {outputs}")
        return TaggerModel(self, vocabulary, seeds, outputs)


@dataclass(frozen=True)
class ContextTagger(Tagger):
    """The feed-forward tagger of `models/tagger.py`, which sees other words through given attention only."""

    def build(self, vocabulary: int, seeds: Sequence[int], outputs: int | None = None) -> ContextModel:  # type: ignore[override]
        from attndyn.models.tagger import ContextModel

        if outputs is None or outputs < 2:
            raise UserError(f"a tagger needs at least two tags, not {outputs}")
        return ContextModel(self, vocabulary, seeds, outputs)
