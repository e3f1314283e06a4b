"""What is read of models with several heads: which of them look, and what one does without the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attndyn.measures.readings import Reading, Values

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from attndyn.probes.trace import Trace

LOOKS = 0.5
"""A head looks at the right word if its peak is there at more than this share of the target positions."""


@dataclass(frozen=True, kw_only=True)
class Heads(Reading):
    """Which head's peak sits most often on the right source position, how often, and how many heads look; and the
    accuracy of the best single head if the others are cut off: as it is, and counted as often as there were heads."""

    def run(self, trace: Trace) -> Values:
        import torch

        from attndyn.measures import focus

        alpha, batch = trace.alpha, trace.batch
        heads = range(alpha.shape[2])
        right = torch.stack([focus.peak_share(alpha[:, :, head], batch.align) for head in heads], dim=1)
        yield "attention right", right.amax(dim=1)
        yield "head that looks", right.argmax(dim=1).to(torch.float32)
        yield "heads that look", (right > LOOKS).sum(dim=1).to(torch.float32)
        left = torch.stack([self.alone(trace, head, 1.0) for head in heads], dim=1)
        in_place = torch.stack([self.alone(trace, head, float(len(heads))) for head in heads], dim=1)
        yield "one head left", left.amax(dim=1)
        yield "one head in place of all", in_place.amax(dim=1)
        yield "head that is left", torch.maximum(left, in_place).argmax(dim=1).to(torch.float32)

    @staticmethod
    def alone(trace: Trace, head: int, weight: float) -> Float[Tensor, " replica"]:
        """Accuracy with this head's attention alone, times `weight`."""
        import torch

        from attndyn.measures import scores

        kept = torch.zeros_like(trace.alpha)
        kept[:, :, head] = weight * trace.alpha[:, :, head]
        with torch.no_grad():
            return scores.accuracy(trace.model.read(trace.states, kept), trace.batch.target)
