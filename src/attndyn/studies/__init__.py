"""The studies, by name. Looking one up imports that one alone; no study imports torch when it is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attndyn.errors import UserError, nearest

if TYPE_CHECKING:
    from attndyn.studies.base import Study

STUDIES = {
    "copying": ("attndyn.studies.copying", "Copying"),
    "permuted-copying": ("attndyn.studies.permuted_copying", "PermutedCopying"),
    "head-rescue": ("attndyn.studies.head_rescue", "HeadRescue"),
    "probe-locality": ("attndyn.studies.probe_locality", "ProbeLocality"),
    "learnability": ("attndyn.studies.learnability", "Learnability"),
    "initial-derivative": ("attndyn.studies.initial_derivative", "InitialDerivative"),
    "gated-toy": ("attndyn.studies.gated_toy", "GatedToy"),
    "word-translation": ("attndyn.studies.word_translation", "WordTranslation"),
    "attention-as-alignment": ("attndyn.studies.attention_as_alignment", "AttentionAsAlignment"),
    "salient-words": ("attndyn.studies.salient_words", "SalientWords"),
    "invariant": ("attndyn.studies.invariant", "Invariant"),
    "tagger-adversary": ("attndyn.studies.tagger_adversary", "TaggerAdversary"),
    "topic-words": ("attndyn.studies.topic_words", "TopicWords"),
    "feature-importance": ("attndyn.studies.feature_importance", "FeatureImportance"),
    "counterfactual-attention": ("attndyn.studies.counterfactual_attention", "CounterfactualAttention"),
    "deceptive-attention": ("attndyn.studies.deceptive_attention", "DeceptiveAttention"),
}


def find(name: str) -> type[Study]:
    """The study of that name; a typo is answered with the nearest name."""
    import importlib

    if name not in STUDIES:
        raise UserError(f"there is no study {name!r}; {nearest(name, STUDIES)}")
    module, attribute = STUDIES[name]
    study: type[Study] = getattr(importlib.import_module(module), attribute)
    return study
