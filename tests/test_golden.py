"""Every study gives the curves it gave before, and the same bytes whenever it is run and whatever ran before it.

The curves agree within a tolerance, since another CPU or another torch adds in another order; the bytes are compared
between runs of one machine only.
"""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from attndyn.store.folder import CLAIMS, METRICS, Run
from attndyn.studies import STUDIES
from attndyn.verbs import run
from tests.golden import CHANGES, FILES, curves, differences, recorded
from tests.studies.tiny import make_tiny

every_study = pytest.mark.parametrize("study", STUDIES)
QUICK = (
    "copying", "permuted-copying", "probe-locality", "invariant", "initial-derivative", "gated-toy", "topic-words",
)  # fmt: skip
quick_first = pytest.mark.parametrize(
    "study", [pytest.param(study, marks=() if study in QUICK else pytest.mark.slow) for study in STUDIES]
)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    make_tiny(monkeypatch)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """A study's run; it is made when it is first asked for. A study finds there the runs that it builds on."""
    folder = tmp_path_factory.mktemp("first")
    return lambda study: carried_out(study, folder)


def carried_out(study: str, folder: Path) -> Run:
    return run(study, out=folder / study, page=False, device="cpu", **CHANGES.get(study, {}))


def test_there_is_a_file_for_every_study_and_no_other() -> None:
    assert {path.stem for path in FILES.glob("*.json")} == set(STUDIES)
    assert all(recorded(study) for study in STUDIES)


@every_study
def test_the_first_steps_are_those_on_record(study: str, first: Callable[[str], Run]) -> None:
    assert differences(curves(first(study)), recorded(study)) == []


def test_a_slightly_other_training_is_seen(tmp_path: Path) -> None:
    changed = run("copying", out=tmp_path, page=False, device="cpu", lr=2.02e-3, **CHANGES["copying"])
    wanted = recorded("copying")
    found = differences(curves(changed), wanted)
    assert [line.split(":")[0] for line in found if "loss" in line] == sorted(f"{name}, loss" for name in wanted)


@quick_first
def test_the_same_settings_give_the_same_bytes_in_a_process_that_was_used(
    study: str, first: Callable[[str], Run], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After all the others, from another folder, with other random states."""
    folder = tmp_path_factory.getbasetemp() / "again"
    folder.mkdir(exist_ok=True)
    one = first(study)
    monkeypatch.chdir(folder)
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    try:
        other = carried_out(study, folder)
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])
    for name in (METRICS, CLAIMS):
        assert (one.path / name).read_bytes() == (other.path / name).read_bytes(), name


ALONE = """
import sys
from pathlib import Path
import pytest
from tests.golden import CHANGES
from tests.studies.tiny import make_tiny
from attndyn.verbs import run
with pytest.MonkeyPatch.context() as patch:
    make_tiny(patch)
    run(sys.argv[1], out=Path(sys.argv[2]), page=False, device="cpu", **CHANGES.get(sys.argv[1], {}))
"""


@pytest.mark.slow
@every_study
def test_a_process_of_its_own_gives_the_same_bytes(study: str, first: Callable[[str], Run], tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-c", ALONE, study, str(tmp_path / study)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    one = first(study)
    for name in (METRICS, CLAIMS):
        assert (one.path / name).read_bytes() == (tmp_path / study / name).read_bytes(), name
    assert json.loads((tmp_path / study / "run.json").read_text())["settings"] == one.info["settings"]
