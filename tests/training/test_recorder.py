"""The only writer of results: what it saved can be taken up, and comes out in one order."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from attndyn.store import checkpoint
from attndyn.store.folder import METRICS
from attndyn.store.metrics import Row, from_parquet
from attndyn.training.recorder import Recorder, join, part

ROWS = [Row("b", 1, 0, "loss", 0.1), Row("a", 2, 5, "loss", float("nan")), Row("a", 2, 0, "accuracy", 1 / 3)]


def recorded(folder: Path, rows: list[Row] = ROWS) -> Recorder:
    recorder = Recorder(folder)
    for row in rows:
        recorder.metric(row)
    return recorder


def test_an_empty_folder_has_nothing_to_resume(tmp_path: Path) -> None:
    assert Recorder(tmp_path).resume() is None


def test_a_save_is_taken_up(tmp_path: Path) -> None:
    recorder = recorded(tmp_path)
    recorder.save(3, 12.5, {"0.values": torch.tensor([1.5, 2.5])})
    recorder.metric(Row("a", 0, 9, "loss", 7.0))  # behind the save: lost, and trained again
    other = Recorder(tmp_path)
    save = other.resume()
    assert save is not None
    assert (save.number, save.chunk, save.seconds) == (1, 3, 12.5)
    assert torch.equal(save.state["0.values"], torch.tensor([1.5, 2.5]))
    assert repr(other.rows) == repr(ROWS)  # repr: NaN is not equal to itself


def test_a_save_does_not_change_when_training_goes_on(tmp_path: Path) -> None:
    values = torch.zeros(3)
    recorder = recorded(tmp_path)
    recorder.save(0, 0.0, {"0.values": values})
    values += 1
    assert torch.equal(checkpoint.latest(tmp_path).state["0.values"], torch.zeros(3))


def test_saves_are_numbered_on_after_resuming(tmp_path: Path) -> None:
    recorded(tmp_path).save(0, 0.0, {})
    other = Recorder(tmp_path)
    other.resume()
    other.save(1, 0.0, {})
    assert checkpoint.latest(tmp_path).number == 2


def test_resuming_from_the_save_before_a_damaged_one_can_save_again(tmp_path: Path) -> None:
    recorder = recorded(tmp_path)
    for chunk in range(2):
        recorder.save(chunk, 0.0, {})
    (tmp_path / "checkpoints" / "save-000002" / checkpoint.MANIFEST).unlink()
    other = Recorder(tmp_path)
    assert other.resume().number == 1
    other.metric(Row("a", 0, 9, "loss", 7.0))
    other.save(1, 0.0, {})
    assert checkpoint.latest(tmp_path).chunk == 1
    assert len(from_parquet(checkpoint.latest(tmp_path).rows)) == len(ROWS) + 1


def test_traces_reach_the_disk_with_a_save(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.trace(2, 7, 30, "alpha", torch.ones(2, 3).T)
    path = tmp_path / "traces" / "chunk-002" / "step-000030.safetensors"
    assert not path.exists()
    recorder.save(2, 0.0, {})
    assert torch.equal(load_file(path)["7.alpha"], torch.ones(3, 2))


def test_a_trace_may_come_in_two_parts(tmp_path: Path) -> None:
    """When Ctrl-C finds the replicas of a chunk at different steps."""
    recorder = Recorder(tmp_path)
    recorder.trace(0, 0, 4, "alpha", torch.zeros(2))
    recorder.save(0, 0.0, {})
    recorder.trace(0, 1, 4, "alpha", torch.ones(2))
    recorder.save(0, 0.0, {})
    whole = load_file(tmp_path / "traces" / "chunk-000" / "step-000004.safetensors")
    assert {name: value.tolist() for name, value in whole.items()} == {"0.alpha": [0, 0], "1.alpha": [1, 1]}


def test_metrics_come_out_in_one_order(tmp_path: Path) -> None:
    analysed = [Row("a", 2, 5, "learned", 1.0)]
    for folder, rows in ((tmp_path / "one", ROWS), (tmp_path / "two", ROWS[::-1])):
        recorded(folder, rows).finish(["b", "a"], analysed)
    first, second = ((tmp_path / name / METRICS).read_bytes() for name in ("one", "two"))
    assert first == second
    rows = [(row["condition"], row["replica"], row["step"], row["metric"]) for row in from_parquet(first).to_pylist()]
    assert rows == [("b", 1, 0, "loss"), ("a", 2, 0, "accuracy"), ("a", 2, 5, "learned"), ("a", 2, 5, "loss")]


def test_a_full_disk_leaves_the_save_before(tmp_path: Path, full_disk) -> None:
    recorder = recorded(tmp_path)
    recorder.save(0, 1.0, {"0.values": torch.ones(2)})
    full_disk("fsync")
    recorder.trace(0, 0, 4, "alpha", torch.zeros(2))
    with pytest.raises(OSError, match="No space left"):
        recorder.save(1, 2.0, {"0.values": torch.zeros(2)})
    assert checkpoint.latest(tmp_path).chunk == 0


def test_part_takes_out_what_join_put_in() -> None:
    states = [{"values": torch.tensor([float(unit)]), "step": torch.tensor(unit)} for unit in range(12)]
    joined = join(enumerate(states))
    for unit, state in enumerate(states):  # 1 and 11 begin alike
        assert part(joined, unit) == state
