"""The influence Δ_{t,l} of each input word on each answer by gradient (Snell et al. §5.1): for all t at once.

The gradients of several answers of one example are different passes back through the same states. Here each pair of an
example and an answer is a row of its own, so that one pass, through a wide batch, gives all of them.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from attndyn.models.rules import AttentionRule
from attndyn.models.translator import TranslatorModel
from attndyn.probes.influence import parameters_fixed, surprise
from attndyn.tasks.sampler import Batch

ROWS, ROWS_ON_GPU = 1 << 12, 1 << 18
"""Words, source and target together, that are read at once by all replicas; on a GPU each takes about 30 kB at the
published size."""


@torch.enable_grad()
def influence_each(
    model: TranslatorModel, rule: AttentionRule, batch: Batch
) -> Float[Tensor, "replica batch query key"]:
    """Δ of every input word on every answer, in units of −log p; 0 at padding. The examples are the same for every
    replica. The model is in evaluation mode."""
    replicas, _, length = batch.source.shape
    delta = model.embedding.weight.new_zeros(*batch.target.shape, length)
    real = torch.ones_like(batch.target[0], dtype=torch.bool) if batch.target_mask is None else batch.target_mask[0]
    rows, queries = real.cpu().nonzero(as_tuple=True)
    order = queries.argsort(stable=True)  # an answer needs no later ones: rows of early answers are short
    rows, queries = rows[order], queries[order]
    limit = ROWS_ON_GPU if delta.is_cuda else ROWS
    size = max(1, limit // (replicas * (length + batch.target.shape[2])))
    with parameters_fixed(model):
        for start in range(0, len(rows), size):
            row, query = (part[start : start + size].to(delta.device) for part in (rows, queries))
            read = slice(int(queries[start : start + size].max()) + 1)
            part = Batch(
                source=batch.source[:, row],
                shifted=batch.shifted[:, row, read],
                target=batch.target[:, row, read],
                align=batch.align[:, row, read],
                source_mask=None if batch.source_mask is None else batch.source_mask[:, row],
            )
            embedded = model.embed(part).requires_grad_()
            states = model.encode_vectors(part, embedded).at(query)
            logits = model.read(states, rule(model.scores(states), part.source_mask))
            losses = surprise(logits, batch.target[:, row, query, None])
            (gradient,) = torch.autograd.grad(losses.sum(), embedded)
            delta[:, row, query] = -(gradient * embedded.detach()).sum(dim=-1)
    return delta
