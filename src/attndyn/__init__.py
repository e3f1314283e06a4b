"""attndyn: a laboratory for how, when and why attention learns where to look.

    import attndyn
    run = attndyn.run("copying", scale="demo", seeds=8)   # continues if it was interrupted
    run.claims, run.metrics                                # plain objects, an Arrow table
    run.report()                                           # the page; a notebook shows `run` itself
    attndyn.agreement(alpha, beta, mask).mean              # A of your own arrays; kendall_tau and xi beside it
    attndyn.ibm1("train.de", "train.en")                   # what co-occurrence alone says about the words
    attndyn.load_labelled("sms_spam")                      # a corpus, or your own label<TAB>text files, as integers
    w = attndyn.watch(model, examples, out="runs/mine")    # your own model: w.step(n) in the loop, then w.close()

The names below are imported when they are first used, so that `import attndyn` costs nothing.
"""

from typing import Any

__version__ = "0.1.0"

_HOME = {
    "run": "attndyn.verbs",
    "reproduce": "attndyn.verbs",
    "sweep": "attndyn.sweeping.sweep",
    "ibm1": "attndyn.theory.ibm1",
    "load_labelled": "attndyn.tasks.labelled",
    "load_parallel": "attndyn.tasks.parallel",
    "Run": "attndyn.store.folder",
    "agreement": "attndyn.measures.agreement",
    "kendall_tau": "attndyn.measures.agreement",
    "xi": "attndyn.measures.agreement",
    "watch": "attndyn.watching.watch",
    "register": "attndyn.watching.tap",
    "attention": "attndyn.watching.rules",
    "uniform": "attndyn.watching.rules",
    "given": "attndyn.watching.rules",
    "Cell": "attndyn.watching.rules",
    "between": "attndyn.watching.compare",
    "compare": "attndyn.watching.compare",
    "UserError": "attndyn.errors",
    "RunError": "attndyn.errors",
}
_MODULES = {"hf": "attndyn.integrations.hf"}
__all__ = ["__version__", *sorted([*_HOME, *_MODULES])]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'attndyn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_MODULES])
