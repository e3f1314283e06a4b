"""Models with attention inside, and the rules that say what the attention is."""

from attndyn.models.rules import Learned, NoContext, OneHot, Uniform
from attndyn.models.specs import Classifier, Proxy, Seq2Seq, Translator

__all__ = ["Classifier", "Learned", "NoContext", "OneHot", "Proxy", "Seq2Seq", "Translator", "Uniform"]
