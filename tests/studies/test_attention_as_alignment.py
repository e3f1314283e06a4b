"""attention-as-alignment by its real command, on the cipher and on links of one's own, and what it refuses."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import attndyn
from attndyn.cli import main
from attndyn.errors import UserError
from attndyn.measures.alignment import score
from attndyn.measures.verdicts import DIFFERS, HOLDS, INCONCLUSIVE
from attndyn.store.metrics import Metrics, Row, to_table
from attndyn.studies import find
from attndyn.studies.alignment_claims import STATEMENTS, Judge
from attndyn.studies.alignment_tables import LinkedPairs
from attndyn.tasks.draws import shuffled

WORDS = {"dog": "hund", "man": "mann", "bird": "vogel", "tree": "baum", "ball": "ball", "hill": "berg", "door": "tür"}
TINY = {
    "source_language": "de", "target_language": "en", "vocabulary": 40, "seeds": 2, "uniform": 1, "steps": 4,
    "batch": 8, "hidden": 8, "every": 4, "early": (1,), "evaluation": 12, "cut": 6, "epochs": 1,
}  # fmt: skip


def made(folder: Path) -> dict[str, str]:
    """A hundred pairs, and the links of twelve of them: the last two words change places."""
    pairs = [
        (f"der {a} sieht den {b} nicht", f"the {x} sees not the {y}")
        for x, a in WORDS.items()
        for y, b in WORDS.items()
    ] * 2
    for split, some in (("train", pairs), ("valid", pairs[:3]), ("few", pairs[:36:3])):
        for side, language in enumerate(("de", "en")):
            (folder / f"{split}.{language}").write_text("".join(f"{pair[side]}\n" for pair in some))
    (folder / "few.gold").write_text("0-0 1-1 2-2 5-3 3-4 4-5\n" * 11 + "0-0 1?2\n")
    return {"corpus": str(folder), "gold": str(folder / "few")}


def options(values: dict) -> list[str]:
    words = []
    for name, value in values.items():
        words += [f"--{name.replace('_', '-')}", *map(str, value if isinstance(value, tuple) else [value])]
    return words


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict:
    return TINY | made(tmp_path_factory.mktemp("corpus")) | {"traces": "all"}


@pytest.fixture(scope="module")
def run(settings: dict, tmp_path_factory: pytest.TempPathFactory) -> attndyn.Run:
    out = tmp_path_factory.mktemp("runs") / "run"
    main(["run", "attention-as-alignment", "--out", str(out), "--device", "cpu", *options(settings)])
    return attndyn.Run(out)


@pytest.fixture
def part(settings: dict, run: attndyn.Run) -> LinkedPairs:
    return find("attention-as-alignment").at("demo", **settings).part(Metrics(run.metrics), run)


def test_every_statement_is_judged(run: attndyn.Run) -> None:
    assert [claim["id"] for claim in run.claims] == [statement.id for statement in STATEMENTS]
    verdicts = {claim["id"]: claim["verdict"] for claim in run.claims}
    assert verdicts["S-33"] == "holds"
    assert "not judged at this scale" not in verdicts.values()
    assert "Alignment error rate along training" in (run.path / "report.html").read_text()


def test_the_error_rate_is_that_of_a_loop_over_positions(part: LinkedPairs, run: attndyn.Run) -> None:
    """From the stored α, piece by piece: its first peak, the words of both pieces, the links of the pair."""
    metrics = Metrics(run.metrics)
    for name, condition, array, seed in (("α", "standard", "alpha", 1), ("β_uf", "uniform attention", "beta", 1000)):
        values, place, found = run.array(condition, seed, 4, array), 0, []
        for n in range(len(part.pairs)):
            source, target = (
                side.ids[side.offsets[n] : side.offsets[n + 1]] for side in (part.words_of.source, part.words_of.target)
            )
            links = set()
            for word in target:
                row = values[place : place + len(source)]
                best = source[int(np.argmax(row))]
                if word >= 0 and best >= 0:
                    links.add((int(best), int(word)))
                place += len(source)
            found.append(frozenset(links))
        assert place == len(values)
        curve = metrics.curves("alignment", f"AER of {name}")
        measured = curve.values[curve.replicas.tolist().index(seed), -1]
        assert measured == pytest.approx(score(found, part.gold).aer)


def test_a_perfect_alignment_makes_no_error_and_a_shifted_one_does(part: LinkedPairs) -> None:
    right = torch.as_tensor(part.marks(), dtype=torch.float32)
    assert set(right.tolist()) == {0.0, 1.0, 2.0}
    chosen = part.chosen(right)
    found = part.counted_links(chosen)
    full = found[:, 1] == 6  # where every word has a sure link
    assert full.sum() == 11
    assert (found[full] == 6).all()
    late = part.shifted(chosen, 1)
    assert part.counted_links(late)[:, 2].sum() < found[:, 2].sum()
    assert np.array_equal(part.shifted(late, -1)[1:], np.where(ends(part)[1:], -1, chosen[1:]))


def ends(part: LinkedPairs) -> np.ndarray:
    """Where a row has no row before it."""
    found = np.zeros(len(part.sentence), bool)
    found[part.pairs.target.offsets[:-1]] = True
    return found


def test_the_rows_of_the_end_link_nothing_and_the_ends_are_no_partner(part: LinkedPairs) -> None:
    for choice in (0, -1):  # <s> and </s>
        chosen = np.concatenate([
            np.full(b - a, choice % part.pairs.source.lengths[n])
            for n, (a, b) in enumerate(pairwise(part.pairs.target.offsets))
        ])  # fmt: skip
        assert part.counted_links(chosen)[:, 0].sum() == 0


def test_what_stays_is_enough_for_the_page(settings: dict, tmp_path: Path) -> None:
    shown = settings | {"traces": "shown"}
    run = attndyn.run("attention-as-alignment", out=tmp_path / "run", device="cpu", **shown)
    trace = run.trace("standard", 0, step=4)
    examples, heads, queries, keys = trace["alpha"].shape
    assert heads == 1
    for name in ("beta", "beta_uf", "delta", "gold", "align"):
        assert trace[name].shape == (examples, queries, keys)
    rows = trace["target"] >= 0
    for name in ("beta", "beta_uf"):
        np.testing.assert_allclose(trace[name].sum(axis=-1, dtype=np.float64)[rows], 1, atol=1e-2)
    assert trace["align"].any()
    assert "outline the gold links" in (run.path / "report.html").read_text()
    assert not (run.path / "weights").exists()


def test_a_corpus_without_links(settings: dict, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    with pytest.raises(SystemExit) as stop:
        main(["run", "attention-as-alignment", "--out", str(out), *options(settings | {"gold": ""})])
    assert stop.value.code == 2
    assert "has no gold links: --gold data/test would read them from data/test.de" in capsys.readouterr().err
    assert not out.exists()


def test_links_of_ones_own_beside_the_cipher_of_the_demo() -> None:
    with pytest.raises(UserError, match="--gold data/test cannot be used with tatoeba-cipher"):
        find("attention-as-alignment").at("demo", gold="data/test")


def test_with_gold_links_nothing_is_held_out(tmp_path: Path) -> None:
    made(tmp_path)
    two = {"corpus": str(tmp_path / "train"), "gold": str(tmp_path / "few")}
    examples = find("attention-as-alignment").at("demo", **TINY | two).task.load()
    assert (len(examples.train), len(examples.valid)) == (98, 12)


def test_no_sure_link_among_what_is_read(settings: dict, tmp_path: Path) -> None:
    few = made(tmp_path)
    lines = ["0?0\n"] * 12
    lines[shuffled(12, 0)[-1]] = "0-0\n"  # the last that would be drawn
    (tmp_path / "few.gold").write_text("".join(lines))
    study = find("attention-as-alignment").at("demo", **settings | few | {"evaluation": 5})
    with pytest.raises(UserError, match="none of the 5 gold pairs that are read has a sure link"):
        list(study.conditions())


def test_the_links_are_counted(run: attndyn.Run) -> None:
    metrics = Metrics(run.metrics)
    assert metrics.curves("summary", "sure links").values.item() == 67
    assert metrics.curves("summary", "possible links").values.item() == 1


@pytest.mark.parametrize(
    ("uniform", "attention", "verdict"),
    [
        ([0.9, 0.4, 0.3, 0.3], [0.9, 0.85, 0.8, 0.2], HOLDS),
        ([0.9, 0.9, 0.9, 0.3], [0.9, 0.3, 0.3, 0.2], DIFFERS),
        ([0.9, 0.4, 0.3, 0.3], [0.9, 0.3, 0.3, 0.2], INCONCLUSIVE),
        ([0.9, 0.4, 0.3, 0.3], [0.9, 0.9, 0.9, 0.88], INCONCLUSIVE),
    ],
)
def test_who_comes_first(uniform: list[float], attention: list[float], verdict: str) -> None:
    """Halfway from chance to the lowest; an alignment that stays at chance has no halfway."""
    rows = [Row("summary", 0, 0, "AER of chance", 0.9)]
    for name, values in (("β_uf", uniform), ("α", attention)):
        rows += [Row("alignment", 0, 100 * n, f"AER of {name}", value) for n, value in enumerate(values)]
    judge = Judge(find("attention-as-alignment").at("demo"), Metrics(to_table(rows)))
    assert judge.before("β_uf", matched=False).verdict == verdict


def stages(uniform: list[list[float]], attention: list[list[float]], chance: float = 0.9) -> Judge:
    rows = [Row("summary", 0, 0, "AER of chance", chance)]
    for name, runs in (("β_uf", uniform), ("α", attention)):
        for seed, values in enumerate(runs):
            rows += [Row("alignment", seed, 100 * n, f"AER of {name}", value) for n, value in enumerate(values)]
    return Judge(find("attention-as-alignment").at("demo"), Metrics(to_table(rows)))


def test_both_are_also_measured_at_one_error_rate() -> None:
    """Halfway to its own lowest, α comes late because it gets far; at .8, halfway for β_uf, both come together."""
    judge = stages([[0.9, 0.79, 0.7, 0.7]] * 2, [[0.9, 0.78, 0.7, 0.2], [0.9, 0.9, 0.9, 0.2]])
    found = judge.before("β_uf", matched=False)
    assert found.verdict == HOLDS
    assert found.measured == (
        "β_uf at 100, 100, α at 300, 300; both at an AER of 0.80: β_uf at 100, 100, α at 100, 300"
    )


def test_a_run_that_stays_at_chance_is_never_there() -> None:
    judge = stages([[0.9, 0.5, 0.3]], [[0.9, 0.95, 0.98], [0.9, 0.5, 0.3]])
    assert judge.before("β_uf", matched=False).measured.endswith("both at an AER of 0.75: β_uf at 100, α at never, 100")
    apart = stages([[0.9, 0.5, 0.3]], [[0.9, 0.95, 0.98]]).before("β_uf", matched=False)
    assert apart.measured == "β_uf at 100, α at never"


def test_the_rule_of_the_first_claim_says_what_is_done() -> None:
    """It differs only if every run is later than every other: one that is earlier, or as early, leaves it open."""
    late, early = [0.9, 0.9, 0.3], [0.9, 0.3, 0.3]
    for uniform, attention, verdict in (
        ([late, late], [early, early], DIFFERS),
        ([late, early], [early, early], INCONCLUSIVE),
        ([early, early], [early, early], INCONCLUSIVE),
    ):
        assert stages(uniform, attention).before("β_uf", matched=False).verdict == verdict
    rule = next(statement.rule for statement in STATEMENTS if statement.id == "A-01")
    assert "differs if every one has it at a later checkpoint than every standard run" in rule


def test_counts_are_written_in_full(run: attndyn.Run) -> None:
    rows = [
        row for row in run.metrics.to_pylist() if (row["condition"], row["metric"]) != ("summary", "training pairs")
    ]
    made = [Row(**row) for row in rows] + [Row("summary", 0, 0, "training pairs", 21_079.0)]
    facts = dict(Judge(find("attention-as-alignment").at("demo"), Metrics(to_table(made))).facts().rows)
    assert facts["training pairs"] == "21,079"
    assert facts["sure links"] == "67"


def test_the_runs_that_an_interval_draws_are_counted(run: attndyn.Run) -> None:
    """Two standard runs and one under uniform attention, with which alone the proxy is compared."""
    counts = {claim["id"]: claim["n"] for claim in run.claims}
    assert counts == counts | {"A-03": 2, "A-04": 2, "A-05": 1, "A-07": 2}


def test_few_gold_pairs_decide_nothing_but_an_identity(run: attndyn.Run) -> None:
    stages = {"AER of β_uf": [0.9, 0.5, 0.5], "AER of β": [0.9, 0.5, 0.5], "AER of α": [0.9, 0.9, 0.4]}
    curves = [Row("alignment", seed, 10 * n, name, value) for name, values in stages.items() for seed in range(3)
              for n, value in enumerate(values)]  # fmt: skip
    known = {("summary", "AER of random links"): 0.9}
    known |= {("summary", f"AER of {name}{end}"): 0.2 for name in ("β_uf minus α", "β_px minus β_uf")
             for end in (" low", " high")}  # fmt: skip
    for pairs, verdict in ((9.0, INCONCLUSIVE), (10.0, HOLDS)):
        changes = known | {("summary", "pairs"): pairs}
        rows = [row for row in run.metrics.to_pylist() if (row["condition"], row["metric"]) not in changes]
        made = [Row(**row) for row in rows if row["metric"] not in stages or row["condition"] == "summary"] + curves
        made += [Row(of, 0, 0, name, value) for (of, name), value in changes.items()]
        found = dict(Judge(find("attention-as-alignment").at("demo"), Metrics(to_table(made))).all())
        assert [found[id].verdict for id in ("A-01", "A-02", "A-03")] == [verdict] * 3
        assert ("fewer than 10 gold pairs read (9)" in found["A-05"].why) == (pairs == 9)
        assert found["S-33"].verdict == HOLDS
    one = dict(Judge(find("attention-as-alignment").at("demo", uniform=1), Metrics(to_table(made))).all())
    assert (one["A-03"].verdict, one["A-03"].why) == (INCONCLUSIVE, "one run under uniform attention")
    assert (one["A-01"].verdict, one["A-02"].verdict) == (INCONCLUSIVE, HOLDS)
    one = dict(Judge(find("attention-as-alignment").at("demo", seeds=1), Metrics(to_table(made))).all())
    assert [(one[id].verdict, one[id].why) for id in ("A-01", "A-02", "A-03")] == [
        (INCONCLUSIVE, "one standard run")
    ] * 3


def test_impossible_settings() -> None:
    with pytest.raises(UserError, match="uniform must be at least 1"):
        find("attention-as-alignment").at("demo", uniform=0)


def test_the_epochs_of_the_authors(settings: dict) -> None:
    """20 epochs where nothing else is known; the last batch of an epoch need not be full: 98 pairs, 16 at a time."""
    assert find("attention-as-alignment").at("demo", **settings | {"steps": None, "batch": 16}).length == 20 * 7
