"""The λ of adversaries, which stand in the place of steps on a slider and in the metrics."""

from collections.abc import Sequence

from attndyn.errors import UserError


def as_step(strength: float, unit: float) -> int:
    return round(strength / unit)


def check_apart(strengths: Sequence[float], unit: float) -> None:
    """Refuses λ that would fall on one step."""
    if not strengths or len({as_step(one, unit) for one in strengths}) < len(strengths):
        given = ", ".join(f"{one:g}" for one in strengths) or "none"
        raise UserError(f"lambdas: every λ once, and no two closer than {unit:g}; not {given}")
