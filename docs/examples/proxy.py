"""What can words alone tell? The bag-of-words proxy on labelled text, beside logistic regression, its twin.

    python docs/examples/proxy.py [CORPUS | FOLDER | FILE.tsv] [EPOCHS]

The recipe of Snell et al. (A.10 and their program): width 256, word vectors from N(0, 1), a bias, Adam at 1.5e-4 (5e-5
for the three large corpora), batches of 64, summed loss, 60 epochs, the epoch with the lowest loss on the evaluation
examples. Without an argument: SMS Spam, which ships with attndyn.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import attndyn
from attndyn.errors import UserError
from attndyn.measures.readings import Answers
from attndyn.models import Proxy, Uniform
from attndyn.models.proxy import votes_of_words
from attndyn.studies.base import Study
from attndyn.tasks.corpus import LabelledText, loaded
from attndyn.theory.logistic import logistic
from attndyn.training.condition import Adam, Condition, Likelihood

LARGE = ("imdb", "yelp_sentences", "amazon_reviews")


@dataclass(frozen=True, kw_only=True)
class WordsAlone(Study):
    name: ClassVar[str] = "words-alone"
    title: ClassVar[str] = "What words alone tell about a label"

    corpus: str = "sms_spam"
    epochs: int = 60
    seeds: int = 2

    @property
    def task(self) -> LabelledText:
        return LabelledText(self.corpus)

    def conditions(self) -> Iterator[Condition]:
        epoch = self.task.epoch(64)
        yield Condition(
            name="proxy",
            task=self.task,
            model=Proxy(),
            rule=Uniform(),
            objective=Likelihood(total=True),
            optimiser=Adam(lr=5e-5 if self.corpus in LARGE else 1.5e-4),
            seeds=tuple(range(self.seeds)),
            steps=self.epochs * epoch,
            batch=64,
            evaluation=4000,
            readings=(Answers(every=epoch),),
            best=("lowest loss",),
        )


def compare(run: attndyn.Run, study: WordsAlone) -> None:
    examples = loaded(study.task)
    twin = logistic(examples.train, examples.valid)
    print(f"logistic regression: accuracy {twin.chosen.accuracy:.3f} with C = {twin.chosen.c:g}")
    for number, label in enumerate(examples.answers):
        ours = votes_of_words(run.weights("proxy", 0, "lowest loss")).numpy()
        margin = ours[:, number] - np.delete(ours, number, axis=1).max(axis=1)
        seen = np.bincount(examples.train.source.ids, minlength=len(examples.words)) >= 10
        best = [examples.words[n] for n in np.argsort(-np.where(seen, margin, -np.inf))[:8]]
        frequent = [word for word, _ in twin.ranking(label) if seen[examples.words.index(word)]][:8]
        print(f"{label:>10}  proxy: {', '.join(best)}\n{'':>10}  twin:  {', '.join(frequent)}")


def main(corpus: str = "sms_spam", epochs: str = "60") -> None:
    if not epochs.isdecimal() or not int(epochs):
        raise UserError(f"EPOCHS must be a whole number above 0, not {epochs!r}")
    study = WordsAlone(corpus=corpus, epochs=int(epochs))
    run = attndyn.run(study)
    print(run.info["finding"])
    compare(run, study)
    print(f"page  {run.path / 'report.html'}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except UserError as error:
        sys.exit(str(error))
