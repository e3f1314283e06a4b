"""Faults planted in a series of checkpoints are found, and nothing else is."""

import json
import pickle
import re
import tempfile
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from attndyn.audit import audit, scan
from tests.command import call

Weights = dict[str, Tensor]
SHAPES = {"embed": (30, 8), "layers.0.weight": (8, 8), "layers.1.weight": (16, 8), "norm": (8,), "scale": ()}


def made(count: int, drift: float = 0.5, width: int = 8, decay: float = 1.0, seed: int = 0) -> list[Weights]:
    """A walk: each step goes on in one direction and at random, and may be smaller than the one before."""
    draw = torch.Generator().manual_seed(seed)
    shapes = {name: tuple(width if size == 8 else size for size in shape) for name, shape in SHAPES.items()}
    now = {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    course = {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    series = []
    for index in range(count):
        count_of = {"tracked": torch.tensor(1000 * index), "mask": torch.full((4,), float("-inf"))}
        series.append({name: value.clone() for name, value in now.items()} | count_of)
        for name, value in now.items():
            walk = torch.randn(value.shape, generator=draw)
            value += 0.02 * decay**index * (drift * course[name] + (1 - drift) * walk)
    return series


def write(folder: Path, series: list[Weights], every: int = 100) -> list[Path]:
    paths = [folder / f"step-{every * index}.safetensors" for index in range(len(series))]
    for path, weights in zip(paths, series, strict=True):
        save_file(weights, path)
    return paths


def write_shards(folder: Path, series: list[Weights]) -> list[Path]:
    """Hugging Face's folders: two shards and an index."""
    paths = []
    for index, weights in enumerate(series):
        path = folder / f"checkpoint-{100 * index}"
        path.mkdir()
        where = {name: f"model-0000{1 + name.startswith('layers')}-of-00002.safetensors" for name in weights}
        for shard in set(where.values()):
            save_file({name: weights[name] for name in weights if where[name] == shard}, path / shard)
        (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
        paths.append(path)
    return paths


def kinds(paths: list[Path]) -> list[tuple[str, list[int]]]:
    return [(item["kind"], item["steps"]) for item in audit(paths)["findings"]]


walks = st.fixed_dictionaries(
    {
        "count": st.integers(2, 24),
        "drift": st.floats(0, 1),
        "width": st.sampled_from([8, 20, 64]),
        "decay": st.sampled_from([0.8, 0.9, 1.0, 1.1]),
        "seed": st.integers(0, 1000),
    }
)


@given(walks)
def test_nothing_is_found_in_a_clean_series(walk: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert kinds(write(Path(folder), made(**walk))) == []


@given(walks, st.data())
def test_two_exchanged_steps_are_found_and_nothing_else(walk: dict[str, Any], data: st.DataObject) -> None:
    walk |= {"count": max(6, walk["count"]), "decay": 1.0}
    series = made(**walk)
    i = data.draw(st.integers(0, len(series) - 2))
    j = data.draw(st.integers(i + 1, len(series) - 1))
    series[i], series[j] = series[j], series[i]
    with tempfile.TemporaryDirectory() as folder:
        assert kinds(write(Path(folder), series)) == [("swapped", [100 * i, 100 * j])]


@given(walks, st.data())
def test_a_checkpoint_of_another_run_is_found_and_nothing_else(walk: dict[str, Any], data: st.DataObject) -> None:
    walk |= {"count": max(5, walk["count"])}
    series = made(**walk)
    at = data.draw(st.integers(0, len(series) - 1))
    series[at] = made(**walk | {"seed": walk["seed"] + 1})[at]
    ends = {0: [0, 100], len(series) - 1: [100 * at - 100, 100 * at]}
    with tempfile.TemporaryDirectory() as folder:
        assert kinds(write(Path(folder), series)) == [("jump", ends.get(at, [100 * at]))]


@given(walks, st.data())
def test_a_copy_under_another_step_is_found_and_nothing_else(walk: dict[str, Any], data: st.DataObject) -> None:
    series = made(**walk)
    a, b = data.draw(st.lists(st.integers(0, len(series) - 1), min_size=2, max_size=2, unique=True))
    series[b] = series[a]
    with tempfile.TemporaryDirectory() as folder:
        assert kinds(write(Path(folder), series)) == [("duplicate", sorted([100 * a, 100 * b]))]


@given(walks, st.data())
def test_a_shard_of_another_step_is_found_and_nothing_else(walk: dict[str, Any], data: st.DataObject) -> None:
    walk |= {"count": max(6, walk["count"])}
    series = made(**walk)
    at = data.draw(st.integers(0, len(series) - 1))
    other = data.draw(st.integers(0, len(series) - 1).filter(lambda index: abs(index - at) > 1))
    for name in ("layers.0.weight", "layers.1.weight"):
        series[at][name] = series[other][name]
    with tempfile.TemporaryDirectory() as folder:
        found = audit(write_shards(Path(folder), series))["findings"]
    assert [item["kind"] for item in found] == ["foreign shard"]
    assert sorted(found[0]["steps"]) == sorted([100 * at, 100 * other])
    assert "2 of 7 tensors" in found[0]["what"]
    assert "in model-00002-of-00002.safetensors" in found[0]["what"]


def test_the_step_that_holds_the_foreign_shard_is_named_first(tmp_path: Path) -> None:
    series = made(10)
    series[7]["layers.1.weight"] = series[2]["layers.1.weight"]
    assert kinds(write_shards(tmp_path, series)) == [("foreign shard", [700, 200])]


def test_a_shard_of_the_step_before_is_found(tmp_path: Path) -> None:
    series = made(8)
    series[4]["layers.1.weight"] = series[3]["layers.1.weight"]
    [(kind, steps)] = kinds(write_shards(tmp_path, series))
    assert (kind, sorted(steps)) == ("foreign shard", [300, 400])


@pytest.mark.parametrize("frozen", [range(8), range(4), range(5, 8), range(2)])
def test_frozen_layers_are_no_fault(tmp_path: Path, frozen: range) -> None:
    series = made(8)
    for index in frozen:
        series[index]["layers.1.weight"] = series[frozen[0]]["layers.1.weight"]
    assert kinds(write(tmp_path, series)) == []


def test_two_runs_one_after_the_other_are_one_jump(tmp_path: Path) -> None:
    paths = write(tmp_path, made(6) + made(6, seed=1))
    paths = [path for path in paths if path.stem != "step-300"]
    assert kinds(paths) == [("gap", [200, 400]), ("jump", [500, 600])]


@pytest.mark.parametrize(
    ("steps", "missing"),
    [
        ([0, 100, 300, 400], "200"),
        ([0, 100, 200, 400, 600, 700, 800], "300"),
        ([1, 2, 4, 8, 16, 32, 64], None),
        ([0, 100, 200, 300, 400, 2000], None),  # the last one, whenever training ended
        ([0, 10, 20, 30, 40, 100, 200, 300, 400], None),
        ([0, 100, 200, 250, 300, 400], None),
    ],
)
def test_gaps_of_a_regular_series(tmp_path: Path, steps: list[int], missing: str | None) -> None:
    paths = write(tmp_path, made(len(steps)))
    renamed = [path.rename(tmp_path / f"at_{step}.safetensors") for path, step in zip(paths, steps, strict=True)]
    found = audit(renamed)["findings"]
    assert {item["kind"] for item in found} == ({"gap"} if missing else set())
    if missing:
        assert found[0]["what"].endswith(missing)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite(tmp_path: Path, value: float) -> None:
    series = made(6)
    series[3]["layers.0.weight"][2, 1:4] = value
    found = audit(write(tmp_path, series))
    assert [(item["kind"], item["steps"]) for item in found["findings"]] == [("not finite", [300])]
    assert found["findings"][0]["what"] == f"3 {'NaN' if value != value else 'infinite'} in 'layers.0.weight'"
    assert [item["distance"] is None for item in found["distances"]] == [False, False, True, True, False]


def test_names_shapes_and_types(tmp_path: Path) -> None:
    series = made(8)
    series[1]["norm"] = series[1]["norm"].half()
    series[3]["embed"] = series[3]["embed"][:20].clone()
    del series[5]["norm"]
    series[6]["more"] = torch.zeros(2)
    found = audit(write(tmp_path, series))["findings"]
    assert [(item["kind"], item["steps"]) for item in found] == [("layout", [step]) for step in (100, 300, 500, 600)]
    assert [item["what"] for item in found] == [
        "'norm' is float16 8, elsewhere float32 8",
        "'embed' is float32 20×8, elsewhere float32 30×8",
        "'norm' is missing",
        "'more' is in no other",
    ]


def test_an_index_that_does_not_fit_its_shards(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, made(5))
    index = paths[2] / "model.safetensors.index.json"
    index.write_text(index.read_text().replace('"norm"', '"other"'))
    found = audit(paths)["findings"]
    assert [(item["kind"], item["steps"]) for item in found] == [("layout", [200])]
    assert "its index and its shards disagree about 'other' (and 1 more)" in found[0]["what"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_distances_are_those_of_the_definition(
    tmp_path: Path, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "AT_ONCE", 64)  # so that tensors are read in many pieces
    series = [{name: w.to(dtype) if w.is_floating_point() else w for name, w in s.items()} for s in made(5)]
    paths = write(tmp_path, series)
    flat = [np.concatenate([w[name].double().numpy().ravel() for name in SHAPES]) for w in map(load_file, paths)]
    expected = [np.linalg.norm(b - a) for a, b in pairwise(flat)]
    assert [item["distance"] for item in audit(paths)["distances"]] == pytest.approx(expected, rel=1e-10)


def test_every_kind_of_file_gives_the_same_answer(tmp_path: Path) -> None:
    series = made(6)
    series[2], series[4] = series[4], series[2]
    (tmp_path / "single").mkdir()
    answers = [audit(write(tmp_path, series)), audit(write_shards(tmp_path, series))]
    for form in ({}, {"_use_new_zipfile_serialization": False}):
        paths = [tmp_path / f"epoch{index}-step={100 * index}.pt" for index in range(6)]
        for path, weights in zip(paths, series, strict=True):
            torch.save({"model": weights, "epoch": 3}, path, **form)
        answers.append(audit(paths))
    paths = [tmp_path / "single" / str(100 * index) / "model.safetensors" for index in range(6)]
    for path, weights in zip(paths, series, strict=True):
        path.parent.mkdir()
        save_file(weights, path)
    answers += [audit(paths), audit([path.parent for path in paths])]
    assert answers[0]["findings"][0]["kind"] == "swapped"
    for answer in answers[1:]:
        assert answer["findings"] == answers[0]["findings"]
        lengths = [[item["distance"] for item in one["distances"]] for one in (answer, answers[0])]
        assert lengths[0] == pytest.approx(lengths[1], rel=1e-12)


def test_the_command_prints_a_table_and_exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series = made(6)
    paths = write(tmp_path, series)
    assert call(capsys, "audit", *paths) == (
        0, "6 checkpoints, steps 0 to 500, 7 tensors, 446 numbers each: nothing found\n", ""
    )  # fmt: skip
    series[5] = series[1]
    code, out, err = call(capsys, "audit", *reversed(write(tmp_path, series)))
    assert (code, err) == (1, "")
    assert "each: 1 finding\n" in out
    assert re.search(r"duplicate +100, 500 +hold the same weights, bit for bit", out)
    code, out, _ = call(capsys, "audit", *paths, "--json")
    found = json.loads(out)
    assert code == 1
    assert found["findings"] == [
        {"kind": "duplicate", "steps": [100, 500], "what": "hold the same weights, bit for bit"}
    ]
    assert [item["step"] for item in found["checkpoints"]] == [0, 100, 200, 300, 400, 500]
    assert "usage: attndyn audit" in call(capsys, "audit", "--help")[1]


class Harmful:
    def __reduce__(self) -> Any:
        return (print, ("this must never be printed",))


def test_mistakes_are_answered_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path, made(2))

    def refused(says: str, *words: Any) -> None:
        code, out, err = call(capsys, "audit", *words)
        assert (code, out) == (2, "")
        assert says in err
        assert len(err.strip().splitlines()) == 1

    refused("needs at least two")
    refused("needs at least two", good[0])
    refused("did you mean '--json'", *good, "--jsn")
    refused("there is no file or folder", *good, tmp_path / "step-7.safetensors")
    refused("are both of step 100", *good, good[1])
    named = good[0].with_name("final.safetensors")
    named.write_bytes(good[0].read_bytes())
    refused("final.safetensors has no number in its name", *good, named)
    for suffix in (".safetensors", ".pt"):
        cut = tmp_path / f"step-900{suffix}"
        torch.save(made(1)[0], cut) if suffix == ".pt" else save_file(made(1)[0], cut)
        cut.write_bytes(cut.read_bytes()[:-200])
        refused(f"step-900{suffix}", *good, cut)
    code = tmp_path / "step-901.pt"
    torch.save({"weight": Harmful()}, code)
    refused("step-901.pt holds more than weights", *good, code)
    plain = tmp_path / "step-903.pt"
    plain.write_bytes(pickle.dumps({"weight": [1, 2]}, protocol=4))
    with warnings.catch_warnings(record=True) as said:  # what torch warns of would stand before our sentence
        warnings.simplefilter("always")
        refused("step-903.pt holds more than weights", *good, plain)
    assert said == []
    folder = tmp_path / "step-902"
    folder.mkdir()
    refused("step-902 has no model.safetensors", *good, folder)
    index = folder / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "model-1.safetensors"}}')
    refused("names the shard model-1.safetensors, which is not there", *good, folder)
    for text in ("{", "[]", '{"weight_map": {"a": "../step-0.safetensors"}}', '{"weight_map": {"a": 3}}'):
        index.write_text(text)
        refused("is no index of shards", *good, folder)
