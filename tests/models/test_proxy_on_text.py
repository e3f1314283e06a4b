"""For classification the proxy is a bag-of-words logistic regression (Snell et al. A.10): it ranks words alike."""

import numpy as np
import torch
from scipy.stats import spearmanr

from attndyn.models import Proxy, Uniform
from attndyn.tasks.corpus import LabelledText, loaded
from attndyn.theory.logistic import logistic
from attndyn.training.condition import Adam, Condition, Likelihood
from attndyn.training.loop import Trainer

TASK = LabelledText("sms_spam")


def condition(**changes: object) -> Condition:
    usual = {"name": "proxy", "task": TASK, "model": Proxy(width=16, spread=0.1), "seeds": (0,), "steps": 400,
             "batch": 64, "rule": Uniform(), "objective": Likelihood(total=True),
             "optimiser": Adam(lr=1e-2)}  # fmt: skip
    return Condition(**(usual | changes))


def test_trained_on_real_text_it_ranks_words_as_its_logistic_twin() -> None:
    trainer = Trainer(condition(), [0])
    for _ in range(400):
        trainer.advance()
    batch = trainer.task.slices(1000, "valid", 1_000_000)[0]
    with torch.no_grad():
        logits, _ = trainer.model.eval()(batch, Uniform())
        votes = trainer.model.embedding.weight[0] @ trainer.model.output.weight[0].T
    accuracy = (logits[0, :, 0].argmax(-1) == batch.target[0, :, 0]).double().mean().item()
    assert accuracy > 0.95
    examples = loaded(TASK)
    twin = logistic(examples.train, examples.valid, grid=(100.0,))
    assert twin.chosen.accuracy > 0.95
    seen = np.bincount(examples.train.source.ids, minlength=len(examples.words))
    frequent = [word for word, count in zip(examples.words, seen, strict=True) if count >= 20]
    ours = [float(votes[examples.words.index(word), 0]) for word in frequent]
    theirs = [twin.beta[1, twin.words.index(word)] - twin.beta[0, twin.words.index(word)] for word in frequent]
    assert spearmanr(ours, theirs).statistic > 0.8


def test_padding_and_neighbours_are_invisible() -> None:
    """A seed's steps, whose batches are padded to the longest line of both seeds, are its steps alone."""
    together, alone = Trainer(condition(seeds=(0, 3)), [0, 3]), Trainer(condition(seeds=(3,)), [3])
    start = alone.optimiser.values.clone()
    for _ in range(4):
        together.advance()
        alone.advance()
    torch.testing.assert_close(together.optimiser.values[1], alone.optimiser.values[0], rtol=1e-3, atol=1e-5)
    assert (alone.optimiser.values - start).abs().max() > 1e-3


def test_the_sum_is_the_mean_times_the_answers() -> None:
    batch = TASK.build([0]).slices(8, "valid", 1000)[0]
    logits = torch.randn(1, 8, 1, 2, generator=torch.Generator().manual_seed(0))
    mean, total = (Likelihood(total=t)(logits, logits, batch) for t in (False, True))
    torch.testing.assert_close(total, 8 * mean)
