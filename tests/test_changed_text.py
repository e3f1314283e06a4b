"""Text that changed since a run was begun: it is neither continued nor shown as if nothing had happened."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import attndyn
from attndyn.errors import UserError
from attndyn.measures.readings import Answers
from attndyn.models import Proxy, Uniform
from attndyn.options import SweepOptions
from attndyn.store.folder import Run
from attndyn.studies import find
from attndyn.studies.base import Study
from attndyn.sweeping.cells import Told
from attndyn.sweeping.sweep import sweep_from
from attndyn.sweeping.table import Swept
from attndyn.tasks.corpus import LabelledText
from attndyn.training.condition import Condition
from tests.studies.tiny import TINY


@dataclass(frozen=True, kw_only=True)
class Words(Study):
    name: ClassVar[str] = "words"
    title: ClassVar[str] = "Words"

    corpus: str
    steps: int = 4

    def conditions(self) -> Iterator[Condition]:
        yield Condition(name="proxy", task=LabelledText(self.corpus), model=Proxy(width=4), rule=Uniform(), seeds=(0,),
                        steps=self.steps, batch=4, readings=(Answers(every=1),))  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "own.tsv"
    path.write_text("".join(f"{'yes' if n % 2 else 'no'}\tword{n % 5} and {n}\n" for n in range(40)))
    return path


def edit(path: Path) -> None:
    path.write_text(path.read_text().replace("word3 and", "and word3"))  # same words, same lengths


def test_a_finished_run_is_not_shown_for_other_text(corpus: Path, tmp_path: Path) -> None:
    study, out = Words(corpus=str(corpus)), tmp_path / "run"
    first = attndyn.run(study, out=out, page=False)
    assert attndyn.run(study, out=out, page=False).info == first.info
    edit(corpus)
    with pytest.raises(
        UserError, match=r"the files that 'proxy' in .*run was trained on have changed since; .* --fresh would"
    ):
        attndyn.run(study, out=out, page=False)
    again = attndyn.run(study, out=out, page=False, fresh=True)
    assert again.info["data"] != first.info["data"]
    corpus.unlink()
    assert attndyn.run(study, out=out, page=False).info == again.info


def test_an_interrupted_run_is_not_continued_with_other_text(corpus: Path, tmp_path: Path) -> None:
    study, out = Words(corpus=str(corpus)), tmp_path / "run"

    def stop(*where: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attndyn.run(study, out=out, page=False, progress=stop)
    edit(corpus)
    with pytest.raises(UserError, match="have changed since"):
        attndyn.run(study, out=out, page=False)


@pytest.mark.parametrize("status", ["finished", "running"])
def test_a_cell_of_a_sweep_is_not_shown_or_continued_for_other_text(status: str, corpus: Path, tmp_path: Path) -> None:
    def swept(out: Path) -> Swept:
        return sweep_from([Words(corpus=str(corpus))], [{"steps": [2, 4]}], SweepOptions(out=out), Told())

    out = tmp_path / "sweep"
    assert swept(out).problems == swept(out).problems == {}
    for info in out.glob("cells/*/run.json"):
        info.write_text(info.read_text().replace('"status": "finished"', f'"status": "{status}"'))
    edit(corpus)
    with pytest.raises(UserError, match="have changed since; choose another --out for the sweep"):
        swept(out)
    assert swept(tmp_path / "other").problems == {}


def test_vectors_of_ones_own_that_changed_are_noticed_and_read_again(tmp_path: Path) -> None:
    vectors, out = tmp_path / "vectors.txt", tmp_path / "run"
    study = find("salient-words").at("demo", **TINY["salient-words"] | {"vectors": str(vectors)})
    words = ("call", "free", "you", "now", "ok")

    def given(value: float) -> Callable[[], Run]:
        vectors.write_text("".join(f"{word} {value} {value}\n" for word in words))
        return lambda: attndyn.run(study, out=out, page=False)

    first = given(0.5)()
    changed = given(0.25)
    with pytest.raises(UserError, match=r"'given vectors' in .* have changed since"):
        changed()
    with pytest.raises(UserError, match="have changed since"):
        first.report()
    again = attndyn.run(study, out=out, page=False, fresh=True)
    assert again.info["data"] != first.info["data"]
    assert not again.metrics.equals(first.metrics)


def test_a_study_on_borrowed_models_notices_changed_text_too(corpus: Path, tmp_path: Path) -> None:
    study = find("counterfactual-attention").at(
        "demo", **TINY["counterfactual-attention"] | {"corpus": str(corpus), "batch": 8, "shortest": 2}
    )
    out = tmp_path / "run"
    first = attndyn.run(study, out=out, page=False)
    assert attndyn.run(study, out=out, page=False).info == first.info
    edit(corpus)
    with pytest.raises(UserError, match="have changed since"):
        attndyn.run(study, out=out, page=False)
    with pytest.raises(UserError, match=r"attndyn run feature-importance .* --fresh would"):
        attndyn.run(study, out=out, page=False, fresh=True)


def test_the_page_is_made_again_from_anywhere(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus.parent)
    draw = random.Random(0)
    texts = (
        f"{('no', 'yes')[n % 2]}\t{' '.join(draw.choices('abcdefghij', k=6))} {('dull', 'fine')[n % 2]}\n"
        for n in range(80)
    )
    corpus.write_text("".join(texts))
    settings = TINY["salient-words"] | {"corpus": corpus.name, "batch": 8}
    run = attndyn.run("salient-words", out=tmp_path / "runs" / "run", **settings)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    page = run.path / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert attndyn.Run(Path("..") / "runs" / "run").report().resolve() == page
    assert page.read_bytes() == before
