"""Names in the metrics of `deceptive-attention`."""

UNIFORM = "uniform attention"
BY_UNIFORM = "each word for itself, uniform attention"
BY_BASE = "each word for itself, the base's attention"
BY_ADVERSARY = "each word for itself, an adversary's attention"
SEEDS = "other seeds of the base"
EPSILONS = (0.01, 0.05)
"""Of the adversaries of each text alone."""
ADVERSARIES = {
    "adversary-base": "adversaries, KL(adv || base)",
    "base-adversary": "adversaries, KL(base || adv)",
}
ADVERSARY_BEST = "lowest train objective"
LAMBDA_UNIT = 1e-5
"""λ is a whole number of these where it takes the place of a step."""


def instance(epsilon: float) -> str:
    return f"adversaries of each text alone, ε {epsilon:g}"


def adversary(direction: str, lam: float) -> str:
    return f"{ADVERSARIES[direction].replace('adversaries', 'adversary', 1)}, λ {lam:g}"
