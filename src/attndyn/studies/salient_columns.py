"""The agreement columns of Snell et al.'s table 1 on one part of a corpus, in both readings (`salient_tables.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch import Tensor

from attndyn.measures.agreement import xi
from attndyn.measures.estimates import of_pairs
from attndyn.store.metrics import Row
from attndyn.studies.read_part import entry, highest, of_others
from attndyn.studies.salient_entries import by_gold_run, final
from attndyn.studies.salient_names import CODE, COLUMNS, FROZEN, LAST, STANDARD, TEXT, TRAIN, UNIFORM, WITHOUT
from attndyn.studies.salient_part import Part, influence_at_gold


class Columns:
    """What agrees with what on one part: every standard run is gold in turn."""

    def __init__(self, part: Part) -> None:
        self.part = part
        accuracy = part.accuracy(STANDARD)
        self.seeds, steps = part.study.seeds_of(STANDARD), part.steps
        self.golds = range(len(self.seeds))
        self.gold = [int(row.argmax()) for row in accuracy]
        """The place of each run's gold checkpoint."""
        texts = part.texts
        peaks: dict[Any, Tensor] = {}
        for i, seed in enumerate(self.seeds):
            for reading, at in ((CODE, self.gold[i]), (TEXT, -1)):
                peaks["α", reading, i] = texts.peaks(part.scores(STANDARD, seed, steps[at], "alpha"))
        self.deltas = self._deltas()
        peaks |= {key: texts.peaks(values) for key, values in self.deltas.items()}
        for i, beta in enumerate(part.proxies):
            peaks["β_px", i] = texts.peaks(beta)
        peaks["β_log"], peaks["β_count"] = texts.peaks(part.logistic), texts.peaks(part.counted)
        golds = {key: places for key, places in peaks.items() if key[0] == "α"}
        self.peaks = peaks
        self.uniform = part.agreeing(peaks, UNIFORM, "beta")
        self.probe = part.agreeing(golds, STANDARD, "beta")
        self.attention = part.agreeing(golds, STANDARD, "alpha")
        self.frozen = part.agreeing(golds, FROZEN, "alpha")

    def _deltas(self) -> dict[Any, Tensor]:
        part = self.part
        if part.name == "train":
            return {("Δ", CODE, i): delta for i, delta in enumerate(influence_at_gold(part))}
        return {
            ("Δ", reading, i): part.scores(STANDARD, seed, part.steps[at], "delta")
            for i, seed in enumerate(self.seeds)
            for reading, at in ((CODE, self.gold[i]), (TEXT, -1))
        }

    def against(self, values: Tensor) -> np.ndarray:
        """A(β_uf, v) for a fixed v, at the last checkpoint: [seed, text]."""
        part = self.part
        limits, found = part.texts.limits(values), []
        for seed in part.study.seeds_of(UNIFORM):
            peaks = part.texts.peaks(part.scores(UNIFORM, seed, part.steps[-1], "beta"))
            found.append(part.texts.agreement(peaks, values, limits).cpu().numpy())
        return np.stack(found)

    def with_fixed(self, values: dict[int, Tensor]) -> np.ndarray:
        """A(α_g, v_g) for a fixed v of each gold run: [gold, text]."""
        texts = self.part.texts
        agreed = (texts.agreement(self.peaks["α", CODE, g], v, texts.limits(v)) for g, v in values.items())
        return np.stack([each.cpu().numpy() for each in agreed])

    def by_code(self, name: str, take: Callable[[np.ndarray], np.ndarray] = highest) -> np.ndarray:
        """[gold, seed, text], or [proxy, seed, text], at the checkpoint of each seed that `take` chooses; NaN where a
        run would be compared with itself."""
        if name == COLUMNS[1]:
            return np.stack([take(self.uniform["β_px", i]) for i in range(len(self.part.proxies))])
        if name == COLUMNS[3]:
            return of_others(np.stack([take(self.probe["α", CODE, g]) for g in self.golds]))
        kind = "α" if name == COLUMNS[0] else "Δ"
        return np.stack([take(self.uniform[kind, CODE, g]) for g in self.golds])

    def by_text(self, name: str) -> np.ndarray:
        """As by the code: only the first column takes the largest over checkpoints, and β is that of the gold run."""
        if name == COLUMNS[0]:
            return np.stack([highest(self.uniform["α", TEXT, g]) for g in self.golds])
        if name == COLUMNS[1]:
            return np.stack([self.against(beta) for beta in self.part.proxies])
        if name == COLUMNS[2]:
            return np.stack([final(self.uniform["Δ", TEXT, g]) for g in self.golds])
        return np.stack([self.probe["α", TEXT, g][[g], -1] for g in self.golds])

    def others(self, g: int, reading: str, without: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """A(α_g, α(τ)) and the accuracy of the other standard runs, or of those without one more: [seed, step]."""
        away = [g] if without is None else [g, without]
        curve = np.delete(self.attention["α", reading, g], away, axis=0).mean(axis=2)
        return curve, np.delete(self.part.accuracy(STANDARD), away, axis=0)

    def rows(self) -> Iterator[Row]:
        part = self.part
        for reading in (CODE, TEXT) if part.name == "valid" else (CODE,):
            table = reading if part.name == "valid" else TRAIN
            yield Row(table, 0, 0, "chance", float(part.chance.mean()))
            for name in COLUMNS:
                yield from self._column(table, name, reading)
            for seed, curve in zip(self.seeds, part.accuracy(STANDARD), strict=True):
                yield Row(table, seed, 0, "ξ*", float(curve.max() if reading == CODE else curve[-1]))

    def _column(self, table: str, name: str, reading: str) -> Iterator[Row]:
        """An entry of table 1, its parts by gold run, and its ξ. A proxy has no gold run: its ξ is that of the mean."""
        values = self.by_code(name) if reading == CODE else self.by_text(name)
        paired = reading == CODE and name == COLUMNS[3]
        chance = self.part.chance
        if reading == TEXT and name == COLUMNS[1]:  # v is a table of words
            chance = np.mean([self.part.chance_of(beta) for beta in self.part.proxies], axis=0)
        yield from entry(table, name, values, chance, of_pairs(values) if paired else None)
        if reading == CODE:
            yield Row(table, 0, 0, name + LAST, float(np.nanmean(self.by_code(name, final))))
        of_golds = name != COLUMNS[1]
        if of_golds:
            yield from by_gold_run(table, name, values, self.seeds)
        for g, seed in enumerate(self.seeds):
            own = values[g] if of_golds else values
            threshold, others = float(np.nanmean(own)), self.others(g, reading)
            yield Row(table, seed, 0, f"ξ of {name}", float(xi(threshold, *others)))
            if table == CODE and name in COLUMNS[:3]:
                for k in range(len(self.seeds)) if len(self.seeds) > 2 else ():
                    if k != g:
                        found = xi(threshold, *self.others(g, reading, without=k))
                        yield Row(table, seed, k, f"ξ of {name}{WITHOUT[STANDARD]}", float(found))
                runs = own.shape[-2]
                for k in range(runs) if runs > 1 else ():
                    found = xi(float(np.nanmean(np.delete(own, k, axis=-2))), *others)
                    yield Row(table, seed, k, f"ξ of {name}{WITHOUT[UNIFORM]}", float(found))
