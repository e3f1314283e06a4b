"""Measures by their definitions: plain lists, one example at a time, no padding, no batch.

An example is a dictionary: `rows` holds one list of weights over the source for each target position, `align` the
right source position of each.
"""

import math
from statistics import fmean
from typing import Any

Example = dict[str, Any]


def mean_of(values: list[float]) -> float:
    if not values:
        raise ValueError("nothing to average")
    return fmean(values)


def normalised_entropy(examples: list[Example]) -> float:
    values = []
    for example in examples:
        for row in example["rows"]:
            entropy = -sum(weight * math.log(weight) for weight in row if weight > 0)
            values.append(entropy / math.log(len(row)))
    return mean_of(values)


def peak_share(examples: list[Example], offset: int = 0) -> float:
    found = []
    for example in examples:
        for row, right in zip(example["rows"], example["align"], strict=True):
            position = right + offset
            if 0 <= position < len(row):
                rivals = [value for key, value in enumerate(row) if key != position]
                found.append(float(all(row[position] > rival for rival in rivals)))
    return mean_of(found)


def mass(examples: list[Example], offset: int = 0) -> float:
    found = []
    for example in examples:
        for row, right in zip(example["rows"], example["align"], strict=True):
            if 0 <= right + offset < len(row):
                found.append(row[right + offset])
    return mean_of(found)


def mass_on_last(examples: list[Example]) -> float:
    return mean_of([row[-1] for example in examples for row in example["rows"]])


def mean_state_spread(examples: list[list[list[float]]]) -> float:
    """examples[i][l][d]: root mean square distance of an example's mean state from the mean of all, over the same
    of its single states."""
    width = len(examples[0][0])
    states = [state for example in examples for state in example]
    centre = [fmean(state[d] for state in states) for d in range(width)]

    def squared_distance(state: list[float]) -> float:
        return sum((value - middle) ** 2 for value, middle in zip(state, centre, strict=True))

    means = [[fmean(state[d] for state in example) for d in range(width)] for example in examples]
    of_means = fmean(squared_distance(mean) for mean in means)
    of_states = fmean(squared_distance(state) for state in states)
    return math.sqrt(of_means / of_states)


def accuracy(examples: list[tuple[list[list[float]], list[int]]]) -> float:
    """Each example: one list of logits for each target position, and the right outputs."""
    right = []
    for rows, target in examples:
        for row, wanted in zip(rows, target, strict=True):
            likeliest = max(range(len(row)), key=lambda output: row[output])
            right.append(float(likeliest == wanted))
    return mean_of(right)
