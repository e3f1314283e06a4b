"""feature-importance, counterfactual-attention and deceptive-attention on a made corpus, as a user runs them."""

import contextlib
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from reference import divergence as slow
from scipy.stats import kendalltau
from sklearn.metrics import roc_auc_score

import attndyn
from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.measures.verdicts import VERDICTS
from attndyn.models.rules import Given, Learned
from attndyn.plan import Replica, Unit
from attndyn.probes.counterfactual import permuted_answers
from attndyn.runner import Worker
from attndyn.store.folder import Run
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies import explained_read, find, read_part
from attndyn.studies.counterfactual_attention import CounterfactualAttention
from attndyn.studies.deceptive_attention import DeceptiveAttention
from attndyn.studies.deceptive_names import (
    ADVERSARY_BEST,
    BY_ADVERSARY,
    BY_BASE,
    BY_UNIFORM,
    EPSILONS,
    SEEDS,
    UNIFORM,
    adversary,
    instance,
)
from attndyn.studies.explained import AVERAGE, BEST, BILSTM
from attndyn.studies.explained_read import evaluated_texts, left_out, read, reference
from attndyn.studies.feature_importance import GRADIENT, LEFT_OUT, FeatureImportance
from attndyn.studies.kept import model_at
from attndyn.tasks.bare import REFERENCES
from attndyn.training.loop import Trainer

COMMON = {
    "seeds": 2, "averages": 2, "epochs": 2, "batch": 16, "lr": 1e-2, "width": 8, "hidden": 4, "evaluation": 40,
}  # fmt: skip
DECEIT = {
    "lambdas": (0.01, 0.1, 0.5),
    "adversaries": 2,
    "reversed": 1,
    "adversary_epochs": 2,
    "guides": 2,
    "guide": 0.1,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Texts of 3 to 20 words; one of two says the label."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("corpus") / "own.tsv"
    lines = []
    for n in range(240):
        words = [f"w{draw.randrange(12)}" for _ in range(draw.randrange(2, 20))]
        words.insert(draw.randrange(len(words) + 1), ("dull", "fine")[n % 2])
        lines.append(f"{('bad', 'good')[n % 2]}\t{' '.join(words)}\n")
    path.write_text("".join(lines))
    return str(path)


@pytest.fixture(scope="module")
def runs(corpus: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: attndyn.run(name, corpus=corpus, out=folder / name, **COMMON, **(DECEIT if "deceptive" in name else {}))
        for name in ("deceptive-attention", "counterfactual-attention")
    }


@pytest.fixture(scope="module")
def study(corpus: str) -> DeceptiveAttention:
    return DeceptiveAttention(corpus=corpus, **COMMON, **DECEIT)


def test_every_statement_has_a_verdict_and_the_page_is_there(runs: dict[str, Run]) -> None:
    for run in (*runs.values(), *runs["deceptive-attention"].needed):
        assert {claim["id"] for claim in run.claims} == {s.id for s in find(run.info["study"]).statements}
        assert {claim["verdict"] for claim in run.claims} <= set(VERDICTS)
        page = (run.path / "report.html").read_text()
        assert "No traces were kept" not in page
        assert "No values of" not in page
    judged = {claim["id"]: claim["verdict"] for claim in runs["deceptive-attention"].claims}
    assert "not judged at this scale" not in judged.values()


def test_the_weights_that_are_kept_tell_the_labels_apart_best(runs: dict[str, Run], study: DeceptiveAttention) -> None:
    """At the epoch of the highest AUC on the development texts, as the authors choose it."""
    run, condition = runs["deceptive-attention"].needed[0], next(study.bases())
    curves = Metrics(run.metrics).curves(BILSTM, "AUC")
    sampler = study.task.build([0])
    for seed, along in zip(curves.replicas.tolist(), curves.values, strict=True):
        model, votes, labels = model_at(condition, run, [seed], BEST, "cpu"), [], []
        for batch in sampler.slices(study.evaluation, "valid", 1000):
            with torch.no_grad():
                logits = model(batch, Learned())[0][0, :, 0]
            votes += (logits[:, 1] - logits[:, 0]).tolist()
            labels += batch.target[0, :, 0].tolist()
        assert roc_auc_score(labels, votes) == pytest.approx(along.max(), abs=1e-6)
    assert len(set(curves.values.ravel().tolist())) > 2
    assert "vote" not in Metrics(run.metrics).curves_of(BILSTM)


def test_texts_of_one_label_are_refused_and_measured_all_the_same(study: DeceptiveAttention) -> None:
    """No epoch can be chosen on them; yet the memory that reading some texts takes can be measured on any of them."""
    worker = Worker(Unit((Replica(next(study.bases()), 0, 0),)), "cpu")
    (first, *_) = worker.examples["valid"]
    worker.examples = {"valid": [replace(first, target=torch.ones_like(first.target))]}
    worker.peek()
    with pytest.raises(UserError, match="all texts that are judged have one label"):
        worker.observe()


def test_the_classifiers_are_trained_once(runs: dict[str, Run], study: DeceptiveAttention) -> None:
    """All runs build on one run of feature-importance; the guided models on one run without them."""
    deceptive, counterfactual = runs["deceptive-attention"], runs["counterfactual-attention"]
    assert deceptive.needed[0].path == counterfactual.needed[0].path == deceptive.needed[1].needed[0].path
    assert [one["condition"] for one in deceptive.needed[0].info["replicas"]] == [BILSTM] * 2 + [AVERAGE] * 2
    assert counterfactual.info["replicas"] == []
    assert BILSTM not in deceptive.info["conditions"]
    assert BILSTM not in deceptive.needed[1].info["conditions"]
    before = (deceptive.needed[0].path / "run.json").stat().st_mtime_ns
    again = attndyn.run("counterfactual-attention", corpus=study.corpus, out=counterfactual.path.parent / "again",
                        permutations=3, page=False, **COMMON)  # fmt: skip
    assert again.needed[0].path == deceptive.needed[0].path
    assert (deceptive.needed[0].path / "run.json").stat().st_mtime_ns == before


def base_of(study: DeceptiveAttention, runs: dict[str, Run]):
    condition = next(study.bases())
    run = runs["deceptive-attention"].needed[0]
    return model_at(condition, run, condition.seeds, BEST, "cpu"), run


def test_tau_is_scipys_text_by_text(study: DeceptiveAttention, runs: dict[str, Run]) -> None:
    model, run = base_of(study, runs)
    pairs = evaluated_texts(study.task, study.evaluation)
    found, delta = read(model, pairs, "cpu"), left_out(model, pairs, "cpu")
    cuts = pairs.source.offsets[1:-1]
    for name, scores in ((GRADIENT, found.gradient), (LEFT_OUT, delta)):
        for replica in range(2):
            rows = zip(
                np.split(found.alpha[replica].numpy(), cuts), np.split(scores[replica].numpy(), cuts), strict=True
            )
            each = [kendalltau(a, b) for a, b in rows]
            stored = Metrics(run.metrics)
            assert stored.curves(BILSTM, name).last[replica] == pytest.approx(np.mean([one.statistic for one in each]))
            assert stored.curves(BILSTM, f"{name} sd").last[replica] == pytest.approx(
                np.std([one.statistic for one in each])
            )
            share = np.mean([one.pvalue <= 0.05 for one in each])
            assert stored.curves(BILSTM, f"{name} significant").last[replica] == pytest.approx(share, abs=0.026)


def test_distances_from_the_base_are_those_of_the_definitions(study, runs: dict[str, Run]) -> None:
    model, _ = base_of(study, runs)
    run = runs["deceptive-attention"].needed[1]
    condition = next(one for one in study.deceivers() if one.name == adversary("adversary-base", 0.1))
    other = model_at(condition, run, condition.seeds, ADVERSARY_BEST, "cpu")
    pairs = evaluated_texts(study.task, study.evaluation)
    base, found = read(model, pairs, "cpu"), read(other, pairs, "cpu")
    cuts = pairs.source.offsets[1:-1]
    for replica in range(2):  # each of its own base
        rows = zip(*(np.split(each.numpy(), cuts) for each in (found.alpha[replica], base.alpha[replica])), strict=True)
        wanted = np.mean([slow.jsd(a.tolist(), b.tolist()) for a, b in rows])
        moved = (found.answers[replica] - base.answers[replica]).abs().mean().item()
        for name, value in (("JSD", wanted), ("TVD", moved)):
            assert Metrics(run.metrics).curves(condition.name, name).last[replica] == pytest.approx(value, abs=1e-5)


def test_the_plane_holds_all_kinds_of_model(runs: dict[str, Run]) -> None:
    metrics = Metrics(runs["deceptive-attention"].metrics)
    assert metrics.curves("adversaries, KL(adv || base)", "JSD").values.size == 6
    assert metrics.curves("adversaries, KL(base || adv)", "TVD").values.size == 3
    for name in (SEEDS, UNIFORM, AVERAGE, BY_UNIFORM, BY_ADVERSARY, BY_BASE, *map(instance, EPSILONS)):
        assert len(metrics.curves(name, "JSD").last) == len(metrics.curves(name, "TVD").last) == 2  # a seed, a replica
    for epsilon in EPSILONS:
        assert max(metrics.curves(instance(epsilon), "TVD").last) <= epsilon + 1e-5
    assert metrics.curves(BY_BASE, "JSD").last == pytest.approx([0, 0], abs=1e-5)
    assert min(metrics.curves(BY_BASE, "TVD").last) > 0
    theirs = metrics.curves(adversary("adversary-base", 0.1), "JSD").last
    assert metrics.curves(BY_ADVERSARY, "JSD").last == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize(("adversaries", "seeds"), [(3, 2), (3, 3), (2, 3)])
def test_a_guided_model_stands_beside_the_base_of_its_guide(corpus: str, adversaries: int, seeds: int) -> None:
    """Its attention is that of the adversary at the place of its seed among them, which follows its own base."""
    study = DeceptiveAttention(corpus=corpus, adversaries=adversaries, seeds=seeds, guides=4)
    guide = study.guiding()
    for condition in study.conditions():
        for seed in condition.seeds:
            own = guide.seeds[seed % adversaries] if condition.name == BY_ADVERSARY else seed
            assert study.base_of(condition.name, seed) == own % study.followed


def test_two_seeds_are_one_pair(runs: dict[str, Run]) -> None:
    for name, id in (("counterfactual-attention", "W-04"), ("deceptive-attention", "W-02")):
        claim = next(one for one in runs[name].claims if one["id"] == id)
        assert (claim["verdict"], claim["interval"], claim["n"]) == ("inconclusive", None, 2)
        assert "two seeds are one pair" in claim["why"]


def test_the_median_of_an_even_number_of_permutations_lies_between_both_middles(study, runs: dict[str, Run]) -> None:
    model, _ = base_of(study, runs)
    found = read(model, evaluated_texts(study.task, study.evaluation), "cpu")
    alpha, votes = found.wide(found.alpha), found.wide(found.votes)
    shuffled = permuted_answers(alpha, votes, found.mask, 100).numpy()
    answers = (alpha * votes).sum(dim=2).sigmoid().numpy()[..., None]
    stored = Metrics(runs["counterfactual-attention"].metrics).curves(BILSTM, "median change by permuting").last
    assert stored == pytest.approx(np.median(abs(shuffled - answers), axis=2).mean(axis=1), rel=1e-6)


def test_words_are_left_out_in_full_precision_on_every_device(study, runs: dict[str, Run], monkeypatch) -> None:
    model, _ = base_of(study, runs)
    pairs, asked, cut = evaluated_texts(study.task, 4), [], explained_read.slices_of
    monkeypatch.setattr(explained_read, "slices_of", lambda pairs, replicas, device: cut(pairs, replicas, "cpu"))
    monkeypatch.setattr(read_part, "products", lambda name: asked.append(name) or contextlib.nullcontext())
    left_out(model, pairs, "cuda")
    assert asked == ["fp32"]


def test_a_larger_lambda_moves_attention_farther(runs: dict[str, Run]) -> None:
    metrics = Metrics(runs["deceptive-attention"].metrics)
    low, high = (metrics.curves(adversary("adversary-base", lam), "JSD").last.mean() for lam in (0.01, 0.5))
    assert high > low


def test_given_attention_is_the_base_models_and_does_not_move(study, runs: dict[str, Run], monkeypatch) -> None:
    """A guided model, before and after training, attends exactly as its guide does."""
    model, _ = base_of(study, runs)
    data, name = study.task.data, study.reference(BY_BASE)
    known = {part: reference(model, pairs, "cpu") for part, pairs in (("train", data.train), ("valid", data.valid))}
    monkeypatch.setitem(REFERENCES, name, known)
    condition = next(one for one in study.conditions() if one.name == BY_BASE)
    trainer = Trainer(condition, condition.seeds)
    slices = trainer.task.slices(20, "valid", 10_000)
    before = [trainer.model(batch, condition.rule) for batch in slices]
    for _ in range(8):
        trainer.advance()
    for batch, (logits, alpha) in zip(slices, before, strict=True):
        again, same = trainer.model(batch, condition.rule)
        assert torch.equal(same, alpha)
        assert torch.equal(same, batch.given)
        assert (again - logits).abs().max() > 1e-3  # it did learn
        with torch.no_grad():
            guides = model(replace(batch, given=None), Learned())[1]
        torch.testing.assert_close(same, guides)  # the first follows the first base, the second the second


def test_replicas_of_different_objectives_train_as_they_would_alone(study, runs: dict[str, Run], monkeypatch) -> None:
    """What a GPU does: adversaries of several λ and both directions as one program, guided models beside each other."""
    model, _ = base_of(study, runs)
    data = study.task.data
    for name in (BILSTM, BY_BASE, BY_ADVERSARY):
        flip = -1 if name == BY_ADVERSARY else 1
        known = {part: reference(model, pairs, "cpu") for part, pairs in (("train", data.train), ("valid", data.valid))}
        known = {part: replace(one, alpha=replace(one.alpha, ids=one.alpha.ids[::flip].copy()))
                 for part, one in known.items()}  # fmt: skip
        monkeypatch.setitem(REFERENCES, study.reference(name), known)
    groups = [list(study.deceivers())[::2], [one for one in study.conditions() if isinstance(one.rule, Given)]]
    for conditions in groups:
        assert len({one.shape for one in conditions}) == 1
        unit = Unit(tuple(Replica(one, one.seeds[0], place) for place, one in enumerate(conditions)))
        together = Trainer(unit.condition, unit.seeds)
        alone = [Trainer(one, one.seeds[:1]) for one in conditions]
        for _ in range(5):
            for trainer in (together, *alone):
                trainer.advance()
        for row, trainer in enumerate(alone):
            torch.testing.assert_close(
                together.optimiser.values[row], trainer.optimiser.values[0], rtol=1e-4, atol=1e-5
            )


def test_conditions_of_a_run_hold_what_their_names_say(study: DeceptiveAttention) -> None:
    lone = replace(study, guided=False)
    lambdas = {one.name: (one.objective.lam, one.objective.direction) for one in lone.deceivers()}
    assert lambdas[adversary("base-adversary", 0.5)] == (0.5, "base-adversary")
    assert len(lambdas) == 6
    seeds = [seed for one in (*study.bases(), *lone.conditions(), *study.conditions()) for seed in one.seeds]
    assert len(set(seeds)) == len(seeds)  # no two runs share a seed


@pytest.mark.parametrize(("adversaries", "seeds", "followed"), [(3, 8, 3), (4, 2, 2), (1, 3, 1)])
def test_every_adversary_has_a_base(corpus: str, adversaries: int, seeds: int, followed: int) -> None:
    study = DeceptiveAttention(corpus=corpus, adversaries=adversaries, seeds=seeds, guided=False)
    assert study.followed == followed
    for one in study.deceivers():
        assert [seed % followed for seed in one.seeds] == [n % followed for n in range(len(one.seeds))]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["deceptive-attention", "--lambdas", "0.1", "-0.2", "--guide", "0.1"], "λ must be a number of at least 0"),
        (["deceptive-attention", "--guide", "0.7"], "guide must be one of the lambdas"),
        (["deceptive-attention", "--lambdas", "0.1", "0.1"], "every λ once"),
        (["deceptive-attention", "--lambdas", "0.1", "0.100001", "--guide", "0.1"], "no two closer than 1e-05"),
        (["deceptive-attention", "--reversed", "-1"], "reversed must be at least 0"),
        (["counterfactual-attention", "--epsilons", "1.5"], "epsilons lie between 0 and 1"),
        (["counterfactual-attention", "--epsilons", "0.01", "0.05", "0.01"], "every ε once, not 0.01, 0.05, 0.01"),
        (["counterfactual-attention", "--permutations", "0"], "permutations must be at least 1"),
        (["feature-importance", "--shortest", "1"], "shortest must be at least 2, not 1"),
        (["feature-importance", "--corpus", "multi30k"], "multi30k is a parallel corpus"),
        (["counterfactual-attention", "--corpus", "smss"], "did you mean 'sms'?"),
    ],
)
def test_bad_settings_are_answered_in_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["run", *words, "--out", str(tmp_path / "run")])
    assert stopped.value.code == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_text_of_one_word_stops_every_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"bad\tno{n}\ngood\tyes yes{n}\n" for n in range(30)]
    (tmp_path / "own.tsv").write_text("".join(lines))
    for name in ("feature-importance", "counterfactual-attention", "deceptive-attention"):
        with pytest.raises(SystemExit) as stopped:
            main(["run", name, "--corpus", str(tmp_path / "own.tsv"), "--out", str(tmp_path / "run")])
        assert stopped.value.code == 2
        assert "has fewer than two words, so attention has no choice in it; --shortest 2" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_published_figures_judge_the_published_setting_only() -> None:
    assert "not the published epochs and hidden" in FeatureImportance.at("demo").caveat
    assert FeatureImportance.at("paper").published == {}  # SMS is none of their corpora


@pytest.mark.parametrize(
    ("shares", "counts", "verdict", "measured"),
    [
        ([0.39, 0.6, 0.58], [304, 900, 1100], "inconclusive", "in 52 % (39 to 60) of the 304 to 1,100 texts of a seed"),
        ([0.1, 0.75, 0.8, 0.78], [3, 200, 200, 200], "holds", "in 78 % (75 to 80) of the 200 texts"),
        ([0.2, 0.25, 0.15], [20, 40, 60], "differs", "in 20 % (15 to 25) of the 20 to 60 texts of a seed"),
        ([0.9, 0.4], [25, 2], "inconclusive", "in 90 % of the 25 texts"),
        ([0.9, 1.0], [2, 2], "inconclusive", "no seed has 20 such texts"),
    ],
)
def test_all_seeds_decide_together_whether_shuffling_changes_little(
    shares: list[float], counts: list[int], verdict: str, measured: str
) -> None:
    study, peaked = CounterfactualAttention(corpus="sms", seeds=1), "little change, largest weight ≥ 0.5"
    rows = [
        Row(BILSTM, seed, 0, name, value)
        for seed, (share, n) in enumerate(zip(shares, counts, strict=True))
        for name, value in (
            (peaked, share), (f"{peaked}: of", float(n)),
            *((f"JSD {what}at ε {e:g}{of}", value) for e in study.epsilons
              for what, of, value in (("≥ 0.6 ", "", 0.9 + 0.01 * seed), ("≥ 0.6 ", ": of", 5.0), ("", "", 0.6))),
        )
    ]  # fmt: skip
    found = dict(study.decide(Metrics(to_table(rows))))
    assert (found["J-05"].verdict, found["J-05"].measured) == (verdict, measured)
    assert found["J-06"].verdict == "holds"
    assert found["J-06"].n == len(shares)


def test_needed_runs_have_the_settings_of_the_one_that_needs_them() -> None:
    (need,) = CounterfactualAttention.at("demo", lr=0.5).needs()
    assert need == FeatureImportance.at("demo", lr=0.5)
    first, second = DeceptiveAttention.at("paper", decay=0.1).needs()
    assert first == FeatureImportance(decay=0.1)
    assert second == DeceptiveAttention(decay=0.1, guided=False)


def test_weights_that_are_gone_are_named(study: DeceptiveAttention, runs: dict[str, Run]) -> None:
    with pytest.raises(UserError, match="no weights of 'BiLSTM' were kept at 'lowest loss'"):
        model_at(next(study.bases()), runs["deceptive-attention"].needed[0], [0], "lowest loss", "cpu")
