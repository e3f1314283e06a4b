"""The smallest demo of every study that still has all of its parts: seconds, not minutes."""

from typing import Any

import pytest

from attndyn.studies import find

_COPY = {"length": 4, "words": 6, "hidden": 8, "batch": 8, "seeds": 2, "steps": 4}
_PIECES = {"vocabulary": 300, "hidden": 8, "batch": 8, "steps": 2, "every": 2, "early": (), "evaluation": 4, "cut": 5,
           "seeds": 2, "uniform": 1, "epochs": 1}  # fmt: skip
_EXPLAINED = {"seeds": 2, "averages": 1, "epochs": 1, "batch": 512, "width": 8, "hidden": 4, "evaluation": 30}

TINY: dict[str, dict[str, Any]] = {
    "copying": _COPY | {"controls": False, "longer": 1},
    "permuted-copying": _COPY | {"patience": 4},
    "probe-locality": _COPY | {"width": 8, "evaluation": 8},
    "learnability": _COPY | {
        "extra": (0, 1), "alphabets": (4,), "exponents": (1.0,), "weak": 1, "batches": (4,), "proxies": 1,
    },
    "head-rescue": {name: _COPY[name] for name in ("length", "hidden", "batch", "steps")} | {
        "heads": 2, "pool": 2, "candidates": 4, "combinations": 2, "counts": (1, 2), "bases": 2, "probes": 1,
    },
    "invariant": _COPY | {
        "keyword_length": 4, "keyword_hidden": 8, "keyword_steps": 8, "width": 8, "every": 2, "lengths": (4,),
        "topic_seeds": 1, "epochs": 120, "sentences": 100, "widths": (16,),
    },
    "initial-derivative": {"seeds": 2, "widths": (16, 64)},
    "gated-toy": {"seeds": 2, "starts": 20, "depths": (2.0,)},
    "salient-words": {
        "seeds": 2, "uniform": 1, "blog": 1, "proxies": 1, "steps": 4, "every": 2, "early": (), "epochs": 1, "width": 8,
        "hidden": 8, "evaluation": 30,
    },
    "word-translation": _PIECES | {"corpus": "tatoeba-sample", "linear": 0},
    "attention-as-alignment": _PIECES | {
        "corpus": "tatoeba-cipher", "source_language": "en", "target_language": "cipher",
    },
    "tagger-adversary": {
        "width": 8, "hidden": 8, "heads": 2, "batch": 500, "epochs": 1, "evaluation": 10, "seeds": 1, "probes": 1,
        "corpus": "made", "vectors": None, "lambdas": (0.0, 3.0), "probed": (3.0,), "unmasked": False,
    },
    "topic-words": {
        "seeds": 2, "epochs": 100, "ablation_epochs": 100, "sentences": 100, "dictionary": 20, "others": 3,
        "dictionaries": (20,), "rates": (2.0, 1.0), "texts": (),
    },
    "feature-importance": _EXPLAINED,
    "counterfactual-attention": _EXPLAINED | {"permutations": 3},
    "deceptive-attention": _EXPLAINED | {
        "lambdas": (0.1,), "guide": 0.1, "adversaries": 1, "reversed": 0, "adversary_epochs": 1, "guides": 1,
    },
}  # fmt: skip


def make_tiny(patch: pytest.MonkeyPatch) -> None:
    """Every study's demo is tiny, and no corpus is found but those that ship."""
    for name, settings in TINY.items():
        patch.setattr(find(name), "demo", settings)
    patch.delenv("ATTNDYN_DATA", raising=False)
