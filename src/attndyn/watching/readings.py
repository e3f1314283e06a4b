"""One reading: everything that is measured at one step, as rows of metrics and as arrays for the maps.

A condition is a layer ("layer 0"), one of its heads ("layer 0 head 1"), or "model" for what belongs to the answer.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attndyn.errors import UserError
from attndyn.measures import focus
from attndyn.store.metrics import Row
from attndyn.watching import numbers, probes
from attndyn.watching.examples import IGNORED, Examples, logits_of
from attndyn.watching.rules import Cell
from attndyn.watching.tap import Call, Tap

WORDS = "words"
MODEL = "model"
MOST_ROWS = 12
"""Heads beside each other on a map of words; of more, the layers' means are shown."""


def layer_facts(name: str, call: Call) -> dict[str, Any]:
    _, heads, queries, keys = call.weights.shape
    return {"module": name, "heads": heads, "queries": queries, "keys": keys}


def head_label(layer: int, head: int) -> str:
    return f"layer {layer} head {head}"


class Reader:
    """Measures a model on its examples. The model is in evaluation mode while it does."""

    def __init__(
        self, model: nn.Module, examples: Examples, layers: list[str], cells: list[Cell], embedding: nn.Module | None,
        *, query: int | None, mask: Tensor | None, align: Tensor | None, probe: int, seed: int,
    ) -> None:  # fmt: skip
        self.model, self.examples, self.layers, self.cells, self.embedding = model, examples, layers, cells, embedding
        self.query, self.mask, self.align, self.seed = query, mask, align, seed
        self.few = examples.first(probe)
        self.labels = [f"layer {i}" for i in range(len(layers))]
        self.without: list[str] = []
        """What is left out, and why."""
        self.words: dict[str, Tensor] = {}
        if not examples.scored:
            self.without.append("Δ and β: they need the right outputs, targets= or score=")
        elif embedding is None:
            self.without.append("Δ: no nn.Embedding reads the input; name the layer with embedding=")

    def check(self, calls: dict[str, Call]) -> None:
        """Finds mistakes in the arguments before training begins."""
        for call in calls.values():
            queries = call.weights.shape[2]
            if self.query is not None and not -queries <= self.query < queries:
                raise UserError(f"there are {queries} queries, so there is no query {self.query}")
        if self.align is not None:
            if self.align.ndim == 1:
                self.align = self.align[:, None]
            if self.align.ndim != 2 or len(self.align) != self.examples.count:
                raise UserError(f"align is [example] or [example, output], not {[*self.align.shape]}")

    @torch.no_grad()
    def read(self, step: int, probing: bool) -> tuple[list[Row], dict[str, Tensor]]:
        with Tap(self.model) as tap:
            answer = self.examples.run(self.model)
        calls = dict(tap.calls)
        if list(calls) != self.layers:
            raise UserError(f"the attention layers have changed since the start: {', '.join(calls)}")
        right = self.examples.right(answer) if self.examples.scored else None
        values = [*self._attention(calls, right), *self._answers(answer, right)]
        tensors = self._maps(calls, right)
        if probing and right is not None:
            more, arrays = self._probe(calls, right[: self.few.count])
            values += more
            tensors |= arrays
        rows = [Row(condition, self.seed, step, metric, float(value)) for condition, metric, value in values]
        return rows, tensors

    def _attention(self, calls: dict[str, Call], right: Tensor | None) -> Iterator[tuple[str, str, float]]:
        for layer, call in enumerate(calls.values()):
            queries = numbers.real_queries(call, self.mask)
            found = numbers.where_it_sits(call, queries)
            if self.align is not None and right is not None:
                alpha = numbers.rows_for(call, right.shape[1], self.query, queries)
                found["attention right"] = self._right(alpha, call, right)
            for metric, heads in found.items():
                yield self.labels[layer], metric, heads.mean().item()
                if len(heads) > 1:
                    for head, value in enumerate(heads.tolist()):
                        yield head_label(layer, head), metric, value

    def _right(self, values: Tensor, call: Call, right: Tensor) -> Tensor:
        """Share of outputs whose right position has the largest value; [head]."""
        assert self.align is not None
        heads, batch = values.shape[:2]
        align = self.align[:batch].to(values.device).expand(heads, -1, -1)
        seen = probes.visible(call.mask[:batch], self.query, right.shape[1]).expand(values.shape[1:])
        values = values.masked_fill(~seen, -torch.inf)
        counts = right[:batch].isfinite().expand(heads, -1, -1) & (align >= 0)
        return focus.peak_share(values, align.clamp_min(0), target_mask=counts)

    def _answers(self, answer: Any, right: Tensor | None) -> Iterator[tuple[str, str, float]]:
        if right is None:
            return
        yield MODEL, "probability of the right output", right.nanmean().item()
        if self.examples.targets is not None:
            guess = logits_of(answer).argmax(dim=-1)
            targets = self.examples.targets.to(guess.device)
            counts = targets != IGNORED
            yield MODEL, "accuracy", (guess == targets)[counts].float().mean().item()

    def _maps(self, calls: dict[str, Call], right: Tensor | None) -> dict[str, Tensor]:
        """α of the first examples, and the rows of it that belong to outputs."""
        tensors = {}
        for layer, call in enumerate(calls.values()):
            tensors[f"{layer}.alpha"] = call.weights[: self.few.count]
            if right is not None:
                queries = numbers.real_queries(call, self.mask)
                rows = numbers.rows_for(call, right.shape[1], self.query, queries)[:, : self.few.count]
                seen = probes.visible(call.mask[: self.few.count], self.query, right.shape[1])
                tensors[f"{layer}.rows"] = rows
                tensors[f"{layer}.seen"] = seen.expand(rows.shape[1:]).to(torch.uint8)
            for name in ("source", "target", "align"):
                tensors[f"{layer}.{name}"] = self.words[f"{layer}.{name}"]
        return tensors

    def _probe(self, calls: dict[str, Call], right: Tensor) -> tuple[list[tuple[str, str, float]], dict[str, Tensor]]:
        """β, Δ, and how they agree with α and with each other."""
        values: list[tuple[str, str, float]] = []
        tensors: dict[str, Tensor] = {}
        deltas: dict[str, Tensor] = {}
        if self.embedding is not None:
            deltas["Δ"] = probes.gradient(self.model, self.few, self.embedding)
            words = deltas["Δ"].new_ones(deltas["Δ"][:, 0].shape, dtype=torch.bool)
            for call in calls.values():  # the words that someone may look at
                if call.mask.shape[-1] == words.shape[1]:
                    words = call.mask[: self.few.count].any(dim=1).any(dim=1)
                    break
            deltas["Δ left out"] = probes.leave_one_out(self.model, self.few, self.embedding, words, right)
        betas = {cell: probes.lexical(self.model, self.few, cell, calls) for cell in self.cells}
        few = {name: Call(call.weights[: self.few.count], call.mask[: self.few.count]) for name, call in calls.items()}
        pairs: list[tuple[str, str, numbers.Pair]] = []
        for layer, call in enumerate(few.values()):
            alpha = numbers.rows_for(call, right.shape[1], self.query, numbers.real_queries(call, self.mask))
            seen = probes.visible(call.mask, self.query, right.shape[1]) & right.isfinite()[..., None]
            fitting = {name: delta for name, delta in deltas.items() if delta.shape[-1] == alpha.shape[-1]}
            for cell, beta in betas.items():
                if cell.layer not in (layer, None):
                    continue
                where = self.labels[layer] if cell.head is None else head_label(layer, cell.head)
                highest = beta.nan_to_num(-1).amax(dim=-1)
                values.append((where, "β highest", highest[highest >= 0].mean().item()))
                if self.align is not None:
                    values.append((where, "probe right", self._right(beta.nan_to_num(-1)[None], call, right).item()))
                for head in range(len(alpha)) if cell.head is None else [cell.head]:
                    whose = head_label(layer, head) if len(alpha) > 1 else self.labels[layer]
                    pairs.append(_pair(whose, "α, β", alpha[head], beta, seen))
                for name, delta in fitting.items():
                    pairs.append(_pair(where, f"β, {name}", beta, delta, seen))
                tensors[f"{layer}.beta {'all' if cell.head is None else cell.head}"] = beta
            for name, delta in fitting.items():
                for head in range(len(alpha)):
                    whose = head_label(layer, head) if len(alpha) > 1 else self.labels[layer]
                    pairs.append(_pair(whose, f"α, {name}", alpha[head], delta, seen))
        if len(deltas) == 2:
            first, second = deltas.values()
            pairs.append(_pair(MODEL, "Δ, Δ left out", first, second, torch.isfinite(first)))
        for (condition, name, _), agreed in zip(pairs, numbers.agree([pair for *_, pair in pairs]), strict=True):
            columns = zip(("A", "Â", "low", "high", "n"), agreed, strict=True)
            values += [(condition, f"{column}({name})", float(value)) for column, value in columns]
        tensors |= self._word_map(few, betas, deltas, right)
        return values, tensors

    def _word_map(
        self, calls: dict[str, Call], betas: dict[Cell, Tensor], deltas: dict[str, Tensor], right: Tensor
    ) -> dict[str, Tensor]:
        """For one output of each example: a row for each α, β and Δ, a column for each word. Δ as a share of its
        largest value."""
        keys = {call.weights.shape[-1] for call in calls.values()}
        if right.shape[1] > 1 or len(keys) > 1:
            return {}
        rows, names = [], []
        many = sum(call.weights.shape[1] for call in calls.values()) > MOST_ROWS
        for layer, call in enumerate(calls.values()):
            alpha = numbers.rows_for(call, 1, self.query, numbers.real_queries(call, self.mask))[:, :, 0]
            for head, row in enumerate([alpha.mean(dim=0)] if many or len(alpha) == 1 else alpha):
                rows.append(row)
                names.append(f"α {layer}" if many or len(alpha) == 1 else f"α {layer}.{head}")
        for cell, beta in betas.items():
            if cell.head is None:
                rows.append(beta[:, 0])
                names.append("β" if cell.layer is None else f"β {cell.layer}")
        for name, delta in deltas.items():
            if delta.shape[-1] in keys:
                rows.append(delta[:, 0] / delta[:, 0].nan_to_num().amax(dim=-1, keepdim=True).clamp_min(1e-30))
                names.append(name.replace("Δ left out", "loo"))
        place = len(self.layers)
        labels = torch.tensor([self.texts.index(name) for name in names], dtype=torch.int32)
        return {
            f"{place}.alpha": torch.stack(rows, dim=1).nan_to_num().float(),
            f"{place}.source": self.words["0.source"],
            f"{place}.target": labels.expand(self.few.count, -1),
            f"{place}.align": torch.full((self.few.count, len(names)), -1, dtype=torch.int32),
        }

    def name_words(
        self, calls: dict[str, Call], ids: Tensor | None, tokens: Callable[[int], str] | Sequence[str] | None
    ) -> dict[str, list[str]]:
        """Numbers the words of the first examples for the maps; returns the text of each number."""
        self.texts: list[str] = []
        place: dict[str, int] = {}

        def number(text: str) -> int:
            if text not in place:
                place[text] = len(self.texts)
                self.texts.append(text)
            return place[text]

        def spell(token: int) -> str:
            if tokens is None:
                return str(token)
            if callable(tokens):
                return str(tokens(token))
            return tokens[token] if token < len(tokens) else str(token)

        for layer, call in enumerate(calls.values()):
            _, heads, queries, keys = call.weights.shape
            sides = {"source": keys, "target": queries}
            for side, length in sides.items():
                table = torch.full((self.few.count, length), -1, dtype=torch.int32)
                for example in range(self.few.count):
                    looked_at = call.mask[example].any(dim=0).any(dim=0)  # [key]
                    known = ids is not None and ids.shape[1] == length
                    real = int(looked_at.nonzero().max()) + 1 if length == keys and looked_at.any() else length
                    for position in range(real):
                        text = spell(int(ids[example, position])) if known and ids is not None else str(position + 1)
                        table[example, position] = number(text)
                self.words[f"{layer}.{side}"] = table
            align = torch.full((self.few.count, queries), -1, dtype=torch.int32)
            if self.align is not None and self.align.shape[1] == queries:
                align = self.align[: self.few.count].to(torch.int32).cpu()
            self.words[f"{layer}.align"] = align
            for name in (f"α {layer}", f"β {layer}", *(f"α {layer}.{head}" for head in range(heads))):
                number(name)
        for name in ("β", "Δ", "loo"):
            number(name)
        return dict.fromkeys((*self.labels, WORDS), self.texts)


def _pair(condition: str, name: str, u: Tensor, v: Tensor, seen: Tensor) -> tuple[str, str, numbers.Pair]:
    u, v = torch.broadcast_tensors(u, v)
    return condition, name, (u, v, seen.expand(u.shape))
