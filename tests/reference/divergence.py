"""Divergences by their definitions: plain lists, one row at a time, no padding."""

import math


def kl(p: list[float], q: list[float]) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def jsd(p: list[float], q: list[float]) -> float:
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return (kl(p, middle) + kl(q, middle)) / 2


def total_variation(p: list[float], q: list[float]) -> float:
    """The largest difference of the probabilities of any event, found by trying every event."""
    size = len(p)
    events = ([k for k in range(size) if number >> k & 1] for number in range(2**size))
    return max(abs(sum(p[k] for k in event) - sum(q[k] for k in event)) for event in events)
