import errno
import json
import os
import stat
from pathlib import Path

import pytest

from attndyn.store import atomic


def test_a_file_is_written_whole(tmp_path: Path, listing) -> None:
    path = tmp_path / "new" / "folder" / "file.bin"
    atomic.write_bytes(path, b"\x00\xff" * 1000)
    assert path.read_bytes() == b"\x00\xff" * 1000
    assert listing(tmp_path) == ["new/folder/file.bin"]


def test_a_file_is_replaced(tmp_path: Path, listing) -> None:
    path = tmp_path / "file.bin"
    atomic.write_bytes(path, b"a longer first content")
    atomic.write_bytes(path, b"second")
    assert path.read_bytes() == b"second"
    assert listing(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("name", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("existing", [False, True])
def test_a_full_disk_leaves_the_old_file_and_no_part(
    tmp_path: Path, listing, full_disk, name: str, existing: bool
) -> None:
    path = tmp_path / "file.bin"
    if existing:
        path.write_bytes(b"old")
    full_disk(name)
    with pytest.raises(OSError, match="No space left") as raised:
        atomic.write_bytes(path, b"new")
    assert raised.value.errno == errno.ENOSPC
    assert listing(tmp_path) == (["file.bin"] if existing else [])
    if existing:
        assert path.read_bytes() == b"old"


def test_an_interruption_leaves_no_part(tmp_path: Path, listing, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        atomic.write_bytes(tmp_path / "file.bin", b"new")
    assert listing(tmp_path) == []


def test_the_data_is_synced_before_the_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def noted_replace(source, target) -> None:
        done.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    atomic.write_bytes(tmp_path / "file.bin", b"new")
    assert done == ["file", "rename", "folder"]


def test_others_may_read_the_file_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic.write_bytes(tmp_path / "file.bin", b"new")
        assert stat.S_IMODE((tmp_path / "file.bin").stat().st_mode) == 0o640
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def test_json_is_readable_text(tmp_path: Path) -> None:
    value = {"α": [1, 2.5, None], "text": "β → α"}
    atomic.write_json(tmp_path / "file.json", value)
    text = (tmp_path / "file.json").read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert "β → α" in text
    assert text.endswith("}\n")


def test_what_is_no_json_writes_nothing(tmp_path: Path, listing) -> None:
    with pytest.raises(TypeError):
        atomic.write_json(tmp_path / "file.json", {"it": object()})
    assert listing(tmp_path) == []
