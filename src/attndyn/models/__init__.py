"""Models with attention inside, and the rules that say what the attention is."""

from attndyn.models.rules import Learned, NoContext, OneHot, Uniform
from attndyn.models.specs import Proxy, Seq2Seq

__all__ = ["Learned", "NoContext", "OneHot", "Proxy", "Seq2Seq", "Uniform"]
