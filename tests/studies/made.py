"""Metrics whose outcome is known, for the studies' judgements."""

from attndyn.store.metrics import Row

STEPS = 200


def ramp(end: int, height: float = 1.0) -> dict[int, float]:
    """Rises from 0 to `height` at step `end`, then stays."""
    return {step: height * min(1.0, step / end) for step in range(0, STEPS + 1, 10)}


def rows(
    condition: str, seed: int, accuracy: dict[int, float], probe: dict[int, float], attention: dict[int, float]
) -> list[Row]:
    """One replica; what is not given is flat."""
    readings = {"accuracy": accuracy, "probe right": probe, "attention right": attention}
    flat = {name: dict.fromkeys(accuracy, 0.25) for name in (
        "attention mass", "attention mass −1", "attention mass +1", "attention mass end", "attention right −1",
        "attention right +1", "mean state spread",
    )}  # fmt: skip
    flat["attention entropy"] = dict.fromkeys(accuracy, 0.99)
    return [
        Row(condition, seed, step, metric, value)
        for metric, curve in {**readings, **flat}.items()
        for step, value in curve.items()
    ]
