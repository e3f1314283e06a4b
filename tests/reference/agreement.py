"""A, Â, τ and ξ by their definitions: plain lists, one row at a time, no padding."""

import math
from itertools import permutations
from statistics import fmean


def agreement(u: list[float], v: list[float], percent: int = 5) -> float:
    peak = max(range(len(u)), key=lambda l: u[l])  # the first of several
    above = sum(value > v[peak] for value in v)
    return float(100 * above < percent * len(v))


def chance(v: list[float], percent: int = 5) -> float:
    """The mean over all orders of a row of scores without ties."""
    return fmean(agreement(list(order), v, percent) for order in permutations(range(len(v))))


def kendall_tau(u: list[float], v: list[float]) -> float:
    """τ_b from all pairs; NaN where u or v has no untied pair."""
    score, untied_u, untied_v = 0, 0, 0
    for i in range(len(u)):
        for j in range(i):
            in_u, in_v = (u[i] > u[j]) - (u[i] < u[j]), (v[i] > v[j]) - (v[i] < v[j])
            score, untied_u, untied_v = score + in_u * in_v, untied_u + abs(in_u), untied_v + abs(in_v)
    return score / math.sqrt(untied_u * untied_v) if untied_u and untied_v else math.nan


def xi(threshold: float, agreements: list[list[float]], performances: list[list[float]]) -> float:
    """agreements[seed][checkpoint]."""
    for checkpoint in range(len(agreements[0])):
        if fmean(seed[checkpoint] for seed in agreements) > threshold:
            return fmean(seed[checkpoint] for seed in performances)
    return math.nan
