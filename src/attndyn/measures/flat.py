"""The measures of agreement for texts of different lengths whose words stand one after the other, without padding.

Many scorings of the same texts are compared with each other, so what A(u, v) needs of each is computed once: of u the
place of its peak, of v the lowest value that still counts. There may be many v at once, such as those of all steps.
"""

from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attndyn.measures.agreement import Rows, Undefined, kendall_tau

TOKENS = 1 << 22
"""Of the padded rows that are compared at once by Kendall's τ."""
WIDER = 1.5
"""The longest of the texts that are padded together, over the shortest: pairs grow with its square."""


class Texts:
    """The lengths of the texts; a scoring is one array with a value for each word of each text."""

    def __init__(self, lengths: Int[Tensor, " text"]) -> None:
        if not len(lengths) or int(lengths.min()) < 1:
            raise ValueError("every text needs a word")
        self.lengths = lengths
        self.first = lengths.cumsum(0) - lengths
        """The place of each text's first word."""
        self._slices: dict[int, list[Any]] = {}

    @cached_property
    def text(self) -> Int[Tensor, " word"]:
        """The text of each word."""
        return torch.repeat_interleave(torch.arange(len(self.lengths), device=self.lengths.device), self.lengths)

    def peaks(self, scores: Float[Tensor, " word"]) -> Int[Tensor, " text"]:
        """Where each text has its largest value; of equal ones, the first."""
        self._check(scores)
        highest = scores.new_full(self.lengths.shape, -torch.inf).scatter_reduce(0, self.text, scores, "amax")
        place = torch.arange(len(scores), device=scores.device)
        place = torch.where(scores == highest[self.text], place, len(scores))
        return torch.full_like(self.lengths, len(scores)).scatter_reduce(0, self.text, place, "amin")

    def limits(self, scores: Float[Tensor, "*many word"], percent: float = 5.0) -> Float[Tensor, "*many text"]:
        """The lowest value of each text that is among its highest 5 %: the ⌈.05 L⌉-th largest."""
        self._check(scores)
        ordered = scores.sort(dim=-1, descending=True, stable=True)
        by_text = self.text[ordered.indices].sort(dim=-1, stable=True).indices
        rank = torch.ceil(percent * self.lengths.to(torch.float64) / 100).to(torch.int64).clamp_min(1)
        return ordered.values.gather(-1, by_text[..., self.first + rank - 1])

    def agreement(
        self, peaks: Int[Tensor, " text"], scores: Float[Tensor, "*many word"], limits: Float[Tensor, "*many text"]
    ) -> Bool[Tensor, "*many text"]:
        """A(u, v) of each text, from the peaks of u, v and the limits of v."""
        return scores[..., peaks] >= limits

    def total(self, values: Float[Tensor, "*many word"]) -> Float[Tensor, "*many text"]:
        return values.new_zeros(*values.shape[:-1], len(self.lengths)).index_add(-1, self.text, values)

    def entropy(self, alpha: Float[Tensor, " word"]) -> Float[Tensor, " text"]:
        """Of attention, over the logarithm of the length: 1 = uniform. NaN for a text of one word."""
        return self.total(-torch.xlogy(alpha, alpha)) / self.lengths.to(alpha.dtype).log()

    def kendall_tau(self, u: Float[Tensor, " word"], v: Float[Tensor, "*many word"], every: int = 1) -> Rows:
        """Kendall's τ_b of the texts 0, `every`, 2 `every`, … for each v."""
        self._check(u)
        self._check(v)
        many = v.shape[:-1]
        joined = torch.full((*many, -(-len(self.lengths) // every)), torch.nan, dtype=torch.float64, device=u.device)
        undefined = 0
        for rows, place, mask in self._padded(every):
            alone = (1,) * len(many) + place.shape
            try:
                found = kendall_tau(u[place].view(alone), v[..., place], mask.view(alone))
            except Undefined:  # in every row of the slice
                undefined += len(rows) * many.numel()
            else:
                joined[..., rows] = found.values
                undefined += found.n_undefined
        if undefined == joined.numel():
            raise Undefined(f"Kendall's τ is undefined in all of the {undefined} texts")
        return Rows(joined, joined.numel() - undefined, undefined)

    def taus(self, u: Float[Tensor, " word"], v: Float[Tensor, "*many word"], every: int = 1) -> Tensor:
        """The same, as numbers alone; NaN where it is undefined, be it in all: [*many, text]."""
        try:
            return self.kendall_tau(u, v, every).values
        except Undefined:
            shape = *v.shape[:-1], -(-len(self.lengths) // every)
            return torch.full(shape, torch.nan, dtype=torch.float64, device=u.device)

    def _padded(self, every: int) -> list[tuple[Int[Tensor, " row"], Int[Tensor, "row key"], Bool[Tensor, "row key"]]]:
        """The texts 0, `every`, 2 `every`, … in slices of about one length: which of them, the places of their words,
        and where there is one."""
        if every not in self._slices:
            self._slices[every] = slices = []
            lengths = self.lengths[::every].cpu()
            order = lengths.argsort(stable=True)
            while len(order):
                longest = lengths[order]
                fits = (longest * torch.arange(1, len(order) + 1) <= TOKENS) & (longest <= WIDER * longest[0])
                size = max(1, int(fits.sum()))
                rows, order = order[:size].to(self.lengths.device), order[size:]
                position = torch.arange(int(longest[size - 1]), device=rows.device)
                mask = position < self.lengths[rows * every][:, None]
                place = self.first[rows * every][:, None] + position
                slices.append((rows, torch.where(mask, place, 0), mask))
        return self._slices[every]

    def _check(self, scores: Tensor) -> None:
        if scores.shape[-1] != len(self.text):
            raise ValueError(f"{scores.shape[-1]} values for {len(self.text)} words")
        if bool(scores.isnan().any()):
            raise ValueError("a scoring holds values that are not numbers")
