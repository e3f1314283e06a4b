"""The copying translator with several heads, one replica, straight from its equations: a loop over heads.

α^k_t = softmax_l (W_k s_t + b_k) · h_l,   c^k_t = Σ_l α^k_tl h_l
text:    logits = W_o tanh(W_h [s_t; W_c (Σ_k c^k_t) + b_c] + b_h) + b_o   (reading `text`: relu, no W_c, b_k = 0)
authors: logits = W_o tanh(W_h [s_t; mean_k (W^k_c c^k_t + b^k_c)] + b_h) + b_o, GRUs and two embeddings
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from attndyn.models.multihead import MultiHeadModel


def slow_forward(
    model: MultiHeadModel, variant: str, reading: str, replica: int, source: Tensor, shifted: Tensor
) -> tuple[Tensor, Tensor]:
    """(logits [batch, query, output], α [batch, head, query, key]) of one replica of `model`."""
    weights = {name: parameter[replica] for name, parameter in model.named_parameters()}
    hidden = weights["hidden.bias"].shape[0]
    heads = weights["query.weight"].shape[0] // hidden

    def recurrent(name: str, inputs: Tensor, start):
        kind = torch.nn.GRU if variant == "authors" else torch.nn.LSTM
        network = kind(hidden, hidden, batch_first=True)
        for part, value in network.named_parameters():
            value.data = weights[f"{name}.{part}"].detach()
        return network(inputs, start)

    tables = ("embedding", "decoder_embedding") if variant == "authors" else ("embedding", "embedding")
    keys, last = recurrent("encoder", F.embedding(source, weights[f"{tables[0]}.weight"]), None)
    decoded, _ = recurrent("decoder", F.embedding(shifted, weights[f"{tables[1]}.weight"]), last)
    alphas, contexts = [], []
    for head in range(heads):
        rows = slice(head * hidden, (head + 1) * hidden)
        bias = weights["query.bias"][rows] if "query.bias" in weights else None
        scores = torch.einsum("btd,bld->btl", F.linear(decoded, weights["query.weight"][rows], bias), keys)
        alphas.append(torch.softmax(scores, dim=-1))
        context = torch.einsum("btl,bld->btd", alphas[-1], keys)
        if variant == "authors":
            context = F.linear(context, weights["context.weight"][rows], weights["context.bias"][rows]) / heads
        contexts.append(context)
    context = sum(contexts)
    if variant == "text" and reading == "code":
        context = F.linear(context, weights["context.weight"], weights["context.bias"])
    inside = F.linear(torch.cat([decoded, context], dim=-1), weights["hidden.weight"], weights["hidden.bias"])
    inside = torch.relu(inside) if reading == "text" else torch.tanh(inside)
    return F.linear(inside, weights["output.weight"], weights["output.bias"]), torch.stack(alphas, dim=1)
