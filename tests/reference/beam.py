"""Search over hypotheses, one sentence at a time, with lists: exhaustive, and by beam."""

from collections.abc import Callable

import torch

Step = Callable[[tuple[int, ...]], torch.Tensor]
"""The log probabilities of the next piece after these pieces, [output]."""
Hypothesis = tuple[float, tuple[int, ...]]


def every(step: Step, end: int, longest: int) -> list[Hypothesis]:
    """All hypotheses that have ended or are cut off, the best first."""
    live, done = [(0.0, ())], []
    for _ in range(longest):
        longer = [
            (score + float(value), (*pieces, piece))
            for score, pieces in live
            for piece, value in enumerate(step(pieces).tolist())
        ]
        done += [one for one in longer if one[1][-1] == end]
        live = [one for one in longer if one[1][-1] != end]
    return sorted(done + live, reverse=True)


def beam(step: Step, end: int, longest: int, beams: int) -> Hypothesis:
    """The best of a beam of this width; hypotheses that have ended stay on it."""
    kept: list[Hypothesis] = [(0.0, ())]
    for _ in range(longest):
        longer: list[Hypothesis] = []
        for score, pieces in kept:
            if pieces and pieces[-1] == end:
                longer.append((score, pieces))
            else:
                longer += [(score + float(value), (*pieces, n)) for n, value in enumerate(step(pieces).tolist())]
        kept = sorted(longer, reverse=True)[:beams]
    return kept[0]
