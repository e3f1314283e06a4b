"""Runs of several seeds, compared: the numbers, the page, and what a user can get wrong."""

import shutil
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

import attndyn
from attndyn.cli import main
from attndyn.store.metrics import Metrics
from tests.watching.models import bert, padded, tokens

CLASSES = torch.tensor([0, 1, 2, 0, 1])
HEADS = [f"layer {i} head {j}" for i in (0, 1) for j in (0, 1)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three runs of two steps; the third repeats the first."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attndyn.report.page.build", lambda run, parts, finding, formats: run.path / "report.html")
        for seed in (0, 1, 2):
            torch.manual_seed(seed % 2)
            model = bert()
            w = attndyn.watch(
                model, padded(tokens()), out=folder / str(seed), steps=[0, 3], targets=CLASSES, query=0, seed=seed,
                probe=5,
            )  # fmt: skip
            w.step(0)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter += 0.2 * torch.randn_like(parameter)
            w.close(3)
    return [folder / str(seed) for seed in (0, 1, 2)]


def peak_agrees(u: np.ndarray, v: np.ndarray, mask: np.ndarray) -> float:
    """A(u, v) of one row, from its definition."""
    places = np.flatnonzero(mask)
    peak = max(places, key=lambda place: u[place])
    return float(sum(v[place] > v[peak] for place in places) < 0.05 * len(places))


def test_numbers_head_by_head(runs: list[Path]) -> None:
    same = attndyn.between([runs[0], runs[2]])
    assert [entry["A"] for entry in same] == [1.0] * 4
    assert [entry["where"] for entry in same] == HEADS
    three = attndyn.between(runs, step=0)
    assert len(three) == 12
    assert any(entry["A"] < 1 for entry in three)
    assert all(
        entry["n"] == 5 and 0 < entry["chance"] < 0.5 and entry["low"] <= entry["A"] <= entry["high"] for entry in three
    )


def test_a_page_over_time(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = attndyn.compare(runs, out=tmp_path / "compared")
    metrics = Metrics(run.metrics)
    traces = {(i, step): attndyn.Run(runs[i]).trace("layer 1", i, step) for i in range(3) for step in (0, 3)}
    for step in (0, 3):
        expected = []
        for i, j in permutations(range(3), 2):
            one, other = traces[i, step], traces[j, step]
            rows = [peak_agrees(one["rows"][1][e, 0], other["rows"][1][e, 0], one["seen"][e, 0] > 0) for e in range(5)]
            expected.append(np.mean(rows))
        curve = metrics.curves("layer 1 head 1", "A(α, α′)")
        assert curve.values[:, curve.steps == step][:, 0].tolist() == pytest.approx(expected)
        pooled = {name: metrics.curves("layer 1 head 1", f"{name}(α, α′)") for name in ("all", "low", "high", "n")}
        at = {name: curve.values[0, curve.steps == step][0] for name, curve in pooled.items()}
        assert at["all"] == pytest.approx(np.mean(expected))
        assert at["low"] <= at["all"] <= at["high"]
        assert at["n"] == 30
    assert metrics.curves("layer 0 head 0", "A(α, own end)").last.tolist() == [1.0] * 3
    assert metrics.curves("layer 0", "all(β, β′)").steps.tolist() == [0, 3]
    page = (run.path / "report.html").read_text(encoding="utf-8")
    for part in ("Do the runs look at the same places?", "When they get to where they end", "layer 1 head 1", "chance"):
        assert part in page
    assert "3 runs: the agreement of attention between runs went from" in run.info["finding"]
    (run.path / "report.html").unlink()
    main(["report", str(run.path)])
    assert "page" in capsys.readouterr().out
    assert (run.path / "report.html").exists()


def test_the_probe_is_compared_where_all_runs_took_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings 0, 1 and 2 have β, and the last: step 12 is the fourth of a run that goes on to 16."""
    monkeypatch.setattr("attndyn.report.page.build", lambda run, parts, finding, formats: run.path / "report.html")
    folders = [tmp_path / str(seed) for seed in range(3)]
    for seed, (folder, end) in enumerate(zip(folders, (12, 12, 16), strict=True)):
        torch.manual_seed(seed)
        w = attndyn.watch(bert(), padded(tokens()), out=folder, every=4, targets=CLASSES, query=0, seed=seed, probe=2)
        for step in range(end):
            w.step(step)
        w.close(end)
    metrics = Metrics(attndyn.compare(folders, out=tmp_path / "compared").metrics)
    assert metrics.curves("layer 0", "all(β, β′)").steps.tolist() == [0, 4, 8]
    assert metrics.curves("layer 0 head 0", "all(α, α′)").steps.tolist() == [0, 4, 8, 12]


def test_mistakes_say_so(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(attndyn.UserError, match="has no reading at step 2; there are: 0, 3"):
        attndyn.between(runs[:2], step=2)
    with pytest.raises(attndyn.UserError, match="two runs or more"):
        attndyn.between(runs[:1])
    with pytest.raises(attndyn.UserError, match="as a list of folders"):
        attndyn.compare(str(runs[0]), out=tmp_path / "compared")
    with pytest.raises(attndyn.UserError, match="is one of the runs to compare"):
        attndyn.compare(runs, out=runs[1])
    with pytest.raises(attndyn.UserError, match="there is no folder"):
        attndyn.compare([runs[0], tmp_path / "nowhere"], out=tmp_path / "compared")
    w = attndyn.watch(bert(), padded(tokens(1)), out=tmp_path / "other", targets=CLASSES, query=0, probe=5)
    with pytest.raises(attndyn.UserError, match="were watched with other examples"):
        attndyn.compare([runs[0], w.folder], out=tmp_path / "compared")
    w = attndyn.watch(bert(), padded(tokens()), out=tmp_path / "alpha")
    with pytest.raises(attndyn.UserError, match="watched with targets= or score="):
        attndyn.compare([runs[0], w.folder], out=tmp_path / "compared")
    shutil.copytree(runs[1], tmp_path / "lost")
    shutil.rmtree(tmp_path / "lost" / "traces")
    with pytest.raises(attndyn.UserError, match="lost has lost its traces"):
        attndyn.compare([runs[0], tmp_path / "lost"], out=tmp_path / "compared")
    assert not (tmp_path / "compared").exists()
