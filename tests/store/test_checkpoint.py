"""Saves: the newest whole one counts, whatever happened to the others."""

import json
import os
from pathlib import Path

import pytest
import torch

from attndyn.errors import UserError
from attndyn.store import checkpoint
from attndyn.store.checkpoint import MANIFEST, ROWS, STATE, Save


def make_save(number: int) -> Save:
    state = {"0.values": torch.arange(5.0) + number, "0.step": torch.tensor(number)}
    return Save(number=number, chunk=number + 10, seconds=number / 4, rows=f"rows {number}".encode(), state=state)


def write(folder: Path, *numbers: int) -> None:
    for number in numbers:
        checkpoint.write(folder, make_save(number))


def path_of(folder: Path, number: int) -> Path:
    return folder / "checkpoints" / f"save-{number:06d}"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


damages = pytest.mark.parametrize("damage", [truncate, empty, flip, Path.unlink])
files = pytest.mark.parametrize("name", [STATE, ROWS, MANIFEST])


def test_a_save_comes_back_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, 7)
    save, wanted = checkpoint.latest(tmp_path), make_save(7)
    assert (save.number, save.chunk, save.seconds, save.rows) == (7, wanted.chunk, wanted.seconds, wanted.rows)
    assert set(save.state) == set(wanted.state)
    for name, value in wanted.state.items():
        assert torch.equal(save.state[name], value)
        assert save.state[name].dtype == value.dtype


def test_a_save_may_hold_no_state(tmp_path: Path) -> None:
    checkpoint.write(tmp_path, Save(1, 2, 0.0, b"rows", {}))
    assert checkpoint.latest(tmp_path).state == {}


def test_no_save_is_none(tmp_path: Path) -> None:
    assert checkpoint.latest(tmp_path) is None


def test_the_newest_counts_and_two_are_kept(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3, 4)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["save-000003", "save-000004"]
    assert checkpoint.latest(tmp_path).number == 4


def test_numbers_sort_as_numbers(tmp_path: Path) -> None:
    write(tmp_path, 9, 10, 11, 99, 100)
    assert checkpoint.latest(tmp_path).number == 100


@damages
@files
def test_a_damaged_save_is_passed_over(tmp_path: Path, name: str, damage) -> None:
    write(tmp_path, 1, 2)
    damage(path_of(tmp_path, 2) / name)
    assert checkpoint.latest(tmp_path).number == 1
    assert torch.equal(checkpoint.latest(tmp_path).state["0.values"], make_save(1).state["0.values"])


def test_a_changed_number_in_the_manifest_is_damage(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    manifest = path_of(tmp_path, 2) / MANIFEST
    manifest.write_text(manifest.read_text().replace('"chunk": 12', '"chunk": 13'))
    assert checkpoint.latest(tmp_path).number == 1


@pytest.mark.parametrize("content", ["[]", "3", '{"sha256": null}', "{}", '"text"'])
def test_a_manifest_of_another_kind_is_damage(tmp_path: Path, content: str) -> None:
    write(tmp_path, 1, 2)
    (path_of(tmp_path, 2) / MANIFEST).write_text(content)
    assert checkpoint.latest(tmp_path).number == 1


def test_if_all_are_damaged_it_says_so(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    for number in (1, 2):
        truncate(path_of(tmp_path, number) / STATE)
    with pytest.raises(UserError, match=r"every checkpoint in .*checkpoints is damaged.*--fresh"):
        checkpoint.latest(tmp_path)


def test_a_half_written_save_is_no_save(tmp_path: Path) -> None:
    part = tmp_path / "checkpoints" / ".save-000009.part"
    part.mkdir(parents=True)
    (part / STATE).write_bytes(b"half")
    assert checkpoint.latest(tmp_path) is None
    write(tmp_path, 1)
    assert checkpoint.latest(tmp_path).number == 1


def test_a_save_takes_the_place_of_its_half_written_one(tmp_path: Path) -> None:
    part = tmp_path / "checkpoints" / ".save-000001.part"
    part.mkdir(parents=True)
    (part / "stranger").write_bytes(b"half")
    write(tmp_path, 1)
    assert not part.exists()
    assert sorted(path.name for path in path_of(tmp_path, 1).iterdir()) == sorted([STATE, ROWS, MANIFEST])


def test_a_save_takes_the_place_of_a_damaged_one(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    truncate(path_of(tmp_path, 2) / STATE)
    write(tmp_path, 2)
    assert checkpoint.latest(tmp_path).number == 2


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_full_disk_leaves_the_saves_before_and_no_part(tmp_path: Path, listing, full_disk, name: str) -> None:
    write(tmp_path, 1, 2)
    before = listing(tmp_path)
    full_disk(name)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, 3)
    assert listing(tmp_path) == before
    assert not list((tmp_path / "checkpoints").glob(".*"))
    assert checkpoint.latest(tmp_path).number == 2


def test_a_save_becomes_visible_by_one_rename_when_all_of_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks before that rename sees the save before; after it, all files of the new one."""
    write(tmp_path, 1)
    done: list[str] = []
    seen: list[int] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(handle: int) -> None:
        done.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).name.split('.')[1:2] or 'folder'}")
        seen.append(checkpoint.latest(tmp_path).number)
        fsync(handle)

    def noted_replace(source, target) -> None:
        seen.append(checkpoint.latest(tmp_path).number)
        done.append(f"rename to {Path(target).name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    write(tmp_path, 2)
    assert done[-2:] == ["rename to save-000002", "sync folder"]
    names = [line.removeprefix("rename to ") for line in done[:-2] if line.startswith("rename")]
    assert names == [STATE, ROWS, MANIFEST]
    for name in names:  # data before its rename, and the folder after it
        place = done.index(f"rename to {name}")
        assert done[place - 1].startswith("sync [")
        assert done[place + 1].startswith("sync")
    assert seen == [1] * (len(seen) - 1) + [2]


def test_the_manifest_is_json(tmp_path: Path) -> None:
    write(tmp_path, 4)
    manifest = json.loads((path_of(tmp_path, 4) / MANIFEST).read_text())
    assert (manifest["chunk"], manifest["seconds"]) == (14, 1.0)
    assert set(manifest["sha256"]) >= {STATE, ROWS}


def test_clear_removes_all(tmp_path: Path) -> None:
    checkpoint.clear(tmp_path)  # nothing there: nothing to do
    write(tmp_path, 1, 2)
    (tmp_path / "other").write_text("stays")
    checkpoint.clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
