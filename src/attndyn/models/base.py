"""What every model with attention offers: α on the inside, and any α from the outside."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attndyn.errors import UserError
from attndyn.models.layers import Embedding, Linear
from attndyn.models.rules import AttentionRule, OneHot, attend
from attndyn.tasks.sampler import Batch


class Model(nn.Module):
    """Three steps; α stands between the second and the third. A classifier has one head and one query."""

    embedding: Embedding
    output: Linear

    def embed(self, batch: Batch) -> Float[Tensor, "replica batch key width"]:
        """The source words as vectors: their embeddings, or a linear map of them, for which e · ∂/∂e is the same."""
        raise NotImplementedError(f"{type(self).__name__} does not show its word vectors")

    def encode_vectors(self, batch: Batch, embedded: Float[Tensor, "replica batch key width"]) -> Any:
        """As `encode`, from these vectors in place of the words' own."""
        raise NotImplementedError(f"{type(self).__name__} does not take other word vectors")

    def encode(self, batch: Batch) -> Any:
        """Everything that does not depend on α."""
        return self.encode_vectors(batch, self.embed(batch))

    def scores(self, states: Any) -> Float[Tensor, "replica batch head query key"]:
        """Attention logits."""
        raise NotImplementedError

    def read(
        self, states: Any, alpha: Float[Tensor, "replica batch head query key"]
    ) -> Float[Tensor, "replica batch query output"]:
        """Output logits under attention α."""
        raise NotImplementedError

    def read_each(self, states: Any) -> Float[Tensor, "replica batch query key output"]:
        """Output logits if all attention sat on one key, for every key.

        This loop is the definition; a model may override it with a closed form.
        """
        scores = self.scores(states)
        return torch.stack([self.read(states, OneHot(key)(scores)) for key in range(scores.shape[-1])], dim=3)

    @torch.no_grad()
    def fill(self, weights: Sequence[Mapping[str, Any]]) -> None:
        """Takes the weights that were kept of a run, those of each replica by their names."""
        for name, parameter in self.named_parameters():
            for place, replica in enumerate(weights):
                if name not in replica:
                    raise UserError(f"the weights hold no {name}; there are {', '.join(sorted(replica))}")
                there, here = tuple(replica[name].shape), tuple(parameter.shape[1:])
                if there != here:
                    sizes = (" × ".join(map(str, shape)) for shape in (there, here))
                    raise UserError("the weights of {} are {}, but this model has {}".format(name, *sizes))
                parameter[place] = torch.as_tensor(replica[name])

    def forward(
        self, batch: Batch, rule: AttentionRule
    ) -> tuple[
        Float[Tensor, "replica batch query output"],
        Float[Tensor, "replica batch head query key"],
    ]:
        states = self.encode(batch)
        alpha = attend(rule, self.scores(states), batch)
        return self.read(states, alpha), alpha
