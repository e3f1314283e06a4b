"""Metrics whose outcome is known, for the studies' judgements; and made text."""

from pathlib import Path

from attndyn.store.metrics import Row

STEPS = 200
COLOURS = {"red": "rot", "green": "grün", "blue": "blau", "white": "weiß", "black": "schwarz"}
THINGS = {"house": "haus", "tree": "baum", "dog": "hund", "boat": "boot", "ball": "ball"}
PLACES = {"here": "hier", "there": "dort", "far away": "weit weg", "down": "unten"}


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


def parallel(folder: Path) -> str:
    """A folder with a hundred pairs of sentences, German and English."""
    pairs = [
        (f"das haus ist {c} und der {t} ist {p}", f"the house is {colour} and the {thing} is {place}")
        for colour, c in COLOURS.items()
        for thing, t in THINGS.items()
        for place, p in PLACES.items()
    ]
    folder.mkdir()
    for split, part in (("train", pairs), ("valid", pairs[::9]), ("test", pairs[:3])):
        for side, language in enumerate(("de", "en")):
            (folder / f"{split}.{language}").write_text("".join(f"{pair[side]}\n" for pair in part))
    return str(folder)
