"""Trained classifiers read on texts: α, the votes of words, the answers, and how much each word moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attndyn.measures.agreement import tau_p_values
from attndyn.measures.flat import Texts
from attndyn.models.rules import Learned
from attndyn.probes.influence import answer_influence, doubt, leave_one_out, parameters_fixed
from attndyn.studies.kept import model_at
from attndyn.studies.read_part import of_slices
from attndyn.tasks.draws import shuffled
from attndyn.tasks.ragged import Parallel, Reference, in_slices, some_of_each
from attndyn.tasks.text import Text

if TYPE_CHECKING:
    from attndyn.models.base import Model
    from attndyn.store.folder import Run
    from attndyn.studies.explained import Explained
    from attndyn.tasks.bare import BareText
    from attndyn.tasks.sampler import Batch
    from attndyn.tasks.text import Pairs
    from attndyn.training.condition import Condition

TOKENS, TOKENS_ON_GPU = 1 << 12, 1 << 18
"""Words that are read at once, with a gradient: of each replica, so that what is read does not hang on how many there
are; on a GPU of all together, where each takes about 10 kB at the published size."""
LEFT_OUT, LEFT_OUT_ON_GPU = 1 << 15, 1 << 20
"""Without a gradient, of all replicas together."""
SIGNIFICANT = 0.05

Followed = tuple[Reference, Sequence[int]]
"""What other models did, and the seeds of the replicas that follow them."""


def evaluated_texts(task: BareText, most: int) -> Pairs:
    """At most so many test texts, drawn once for all, from the shortest to the longest."""
    test = task.data.test
    chosen = np.sort(shuffled(len(test), 0)[:most])
    return test.take(chosen[np.argsort(test.source.lengths[chosen], kind="stable")])


class Few(NamedTuple):
    """Some of the texts."""

    chosen: np.ndarray
    pairs: Pairs
    texts: Texts
    words: Bool[Tensor, " word"]
    """Which words of all the texts are theirs."""


def few_of(pairs: Pairs, texts: Texts, most: int) -> Few:
    """At most so many, evenly from the shortest to the longest."""
    chosen, device = np.arange(0, len(pairs), -(-len(pairs) // most)), texts.lengths.device
    some = pairs.take(chosen)
    words = torch.isin(texts.text, torch.as_tensor(chosen, device=device))
    return Few(chosen, some, Texts(torch.as_tensor(some.source.lengths, device=device)), words)


@dataclass(frozen=True, eq=False)
class Reading:
    """What models of one kind do on texts; words of all texts one after the other."""

    texts: Texts
    alpha: Float[Tensor, "replica word"]
    votes: Float[Tensor, "replica word"]
    """For the second class, on the scale of logits."""
    gradient: Float[Tensor, "replica word"]
    """|e · ∂p/∂e|, with the attention held still."""
    answers: Float[Tensor, "replica text"]
    """The probability of the second class."""
    labels: np.ndarray

    @cached_property
    def mask(self) -> Bool[Tensor, "text key"]:
        position = torch.arange(int(self.texts.lengths.max()), device=self.alpha.device)
        return position < self.texts.lengths[:, None]

    def wide(self, words: Float[Tensor, "replica word"]) -> Float[Tensor, "replica text key"]:
        """The same with the words of each text in a row, and 0 behind them."""
        rows = words.new_zeros(len(words), *self.mask.shape)
        rows[:, self.mask] = words
        return rows

    def scores(self, replica: int) -> dict[str, float]:
        """Accuracy, F1 of the second class and the area under the ROC curve; NaN where texts of one label have none."""
        from sklearn.metrics import f1_score, roc_auc_score

        p = self.answers[replica].cpu().numpy()
        return {
            "test accuracy": float(((p > 0.5) == self.labels).mean()),
            "test F1": float(f1_score(self.labels, p > 0.5, zero_division=np.nan)),
            "test AUC": float(roc_auc_score(self.labels, p)) if len(set(self.labels)) > 1 else float("nan"),
        }


def slices_of(pairs: Pairs, replicas: int, device: str, given: Followed | None = None) -> list[Any]:
    tokens = TOKENS if device == "cpu" else TOKENS_ON_GPU // replicas
    reference, seeds = given or (None, ())
    examples = Parallel(pairs, device, reference, torch.tensor(seeds, dtype=torch.int64, device=device))
    return in_slices(examples, replicas, max(1, tokens))


def read(model: Model, pairs: Pairs, device: str, rule: Any = None, given: Followed | None = None) -> Reading:
    """Every model on every text, in fp32. A rule of given attention takes it from `given`."""
    replicas = len(model.embedding.weight)

    def of_slice(batch: Batch) -> dict[str, Tensor]:
        gradient, alpha, logits = answer_influence(model, rule or Learned(), batch)
        with torch.no_grad():
            votes = model.read_each(model.encode(batch))[:, :, 0]
        words = {"alpha": alpha[:, :, 0, 0], "votes": votes[..., 1] - votes[..., 0], "gradient": gradient}
        found = {name: values[batch.source_mask].view(replicas, -1) for name, values in words.items()}
        return found | {"answers": logits[:, :, 0].softmax(dim=-1)[..., 1]}

    with parameters_fixed(model):  # once for all: the slices of a CPU share the model
        found = of_slices(of_slice, slices_of(pairs, replicas, device, given), device)
    whole = {name: torch.cat([one[name] for one in found], dim=1) for name in found[0]}
    texts = Texts(torch.as_tensor(pairs.source.lengths, device=device))
    return Reading(texts=texts, labels=pairs.target.ids, **whole)


def left_out(model: Model, pairs: Pairs, device: str, rule: Any = None) -> Float[Tensor, "replica word"]:
    """|p without the word − p| of the likelier class, for every word; in fp32, as the two are all but equal."""
    replicas = len(model.embedding.weight)

    def of_slice(batch: Batch) -> Float[Tensor, "replica word"]:
        with torch.no_grad():
            logits, _ = model(batch, rule or Learned())
        predicted = replace(batch, target=logits.argmax(dim=-1))
        tokens = LEFT_OUT if device == "cpu" else LEFT_OUT_ON_GPU
        delta = leave_one_out(model, rule or Learned(), predicted, tokens, doubt).abs()
        return delta[batch.source_mask].view(replicas, -1)

    return torch.cat(of_slices(of_slice, slices_of(pairs, replicas, device), device), dim=1)


def reference(model: Model, pairs: Pairs, device: str) -> Reference:
    """The attention and the answers of all replicas of a model, for others to be trained beside."""
    order = np.argsort(pairs.source.lengths, kind="stable")
    found = read(model, pairs.take(order), device)
    models = len(found.alpha)
    offsets = np.concatenate([[0], np.tile(found.texts.lengths.cpu().numpy(), models).cumsum()])
    p = found.answers.flatten().cpu().numpy()
    ordered = Reference(Text(found.alpha.flatten().cpu().numpy(), offsets, []), np.stack([1 - p, p], axis=1), models)
    return ordered.take(np.argsort(order, kind="stable"))


@dataclass(frozen=True)
class Ranks:
    """Kendall's τ of two scorings in each text."""

    tau: np.ndarray
    """[replica, text]; NaN where it is undefined."""
    p: np.ndarray

    def rows(self, replica: int, predicted: np.ndarray, classes: Sequence[str]) -> dict[str, float]:
        """Mean, standard deviation and share significant: over all texts, and by predicted class."""
        groups = {"": np.ones(self.tau.shape[1], dtype=bool)}
        groups |= {f", predicted {name}": predicted == number for number, name in enumerate(classes)}
        values: dict[str, float] = {}
        for group, chosen in groups.items():
            tau, p = self.tau[replica, chosen], self.p[replica, chosen]
            if not np.isnan(tau).all():
                known = ~np.isnan(tau)
                values |= {group: float(tau[known].mean()), f"{group} sd": float(tau[known].std()),
                           f"{group} significant": float((p[known] <= SIGNIFICANT).mean())}  # fmt: skip
        return values


def ranks(texts: Texts, first: Float[Tensor, "replica word"], second: Float[Tensor, "replica word"]) -> Ranks:
    tau = torch.stack([texts.taus(a, b) for a, b in zip(first, second, strict=True)])
    p = tau_p_values(tau, texts.lengths)
    return Ranks(tau.cpu().numpy(), p.cpu().numpy())


def shown_texts(
    study: Explained, condition: Condition, run: Run, seed: int, best: str, most: int, influence: bool = False
) -> dict[str, np.ndarray]:
    """What the page shows of a few test texts of middling length, of both classes: padded arrays."""
    pairs = evaluated_texts(study.task, study.evaluation)
    some = pairs.take(some_of_each(pairs.target.ids, most))
    model = model_at(condition, run, [seed], best, "cpu")
    found = read(model, some, "cpu", condition.rule)
    kinds = {"alpha": found.alpha, "votes": found.votes}
    if influence:
        kinds |= {"gradient": found.gradient, "left": left_out(model, some, "cpu", condition.rule)}
    mask = found.mask.numpy()
    source = np.zeros(mask.shape, dtype=np.int32)
    source[mask] = some.source.ids
    odds = found.answers[0].double().logit().numpy()
    return {
        **{name: found.wide(values)[0].numpy().astype(np.float16) for name, values in kinds.items()},
        "source": source,
        "lengths": some.source.lengths.astype(np.int32),
        "target": some.target.ids.astype(np.int32),
        "answer": np.where(some.target.ids == 1, odds, -odds).astype(np.float32),
    }
