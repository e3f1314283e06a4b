"""The command line; thin. Nothing here imports torch: names and values are checked before it is needed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, make_dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from attndyn import __version__
from attndyn.errors import RunError, UserError, nearest
from attndyn.options import RunOptions, SweepOptions, check_flags, parse_run, take_flags, take_value
from attndyn.usage import HELP, help_of

FULL = ("CUDA out of memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED")
"""How PyTorch, the driver, cuBLAS and cuDNN say that a GPU has no memory left."""
NO_BENCHMARKS = "the benchmarks are not part of the installed package; run this from a checkout"
CONTINUED = ("run", "reproduce", "sweep")
"""Commands that save what they do."""
WIDE = 26
"""The column of names in `attndyn list`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Exit codes: 0 done, 1 failed while running, 2 a mistake in the command, 130 stopped after saving."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        dispatch(words)
    except UserError as error:
        stop(error, 2)
    except RunError as error:
        stop(error, 1)
    except BrokenPipeError:  # the reader of our output has gone, as in `attndyn list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        stop(f"{where}{error.strerror or error}; what was saved before is untouched", 1)
    except RuntimeError as error:
        if not is_full(error):
            raise
        stop(
            "the memory of the GPU is full (nvidia-smi shows which programs hold some of it); what was saved before is "
            "untouched, and the same command again continues from there",
            1,
        )
    except KeyboardInterrupt:
        stop(
            "stopped" + "; the same command again continues from here" * (words[:1] != [] and words[0] in CONTINUED),
            130,
        )


def is_full(error: BaseException | None) -> bool:
    """Whether a GPU had no memory left. What meets that while a graph is recorded breaks off the recording, too, and
    it is this second error that arrives here."""
    return error is not None and (any(sign in str(error) for sign in FULL) or is_full(error.__context__))


def stop(sentence: object, code: int) -> None:
    print(f"attndyn: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def dispatch(words: list[str]) -> None:
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP, end="")
    elif words[0] == "--version":
        print(f"attndyn {__version__}")
    else:
        verbs: dict[str, Callable[[list[str]], None]] = {
            "list": do_list, "run": do_run, "reproduce": do_reproduce, "report": do_report, "diagnose": do_diagnose,
            "data": do_data, "watch": do_watch, "audit": do_audit, "runs": do_runs, "doctor": do_doctor,
            "bench": do_bench, "sweep": do_sweep,
        }  # fmt: skip
        if words[0] not in verbs:
            raise UserError(f"there is no command {words[0]!r}; {nearest(words[0], verbs)}")
        if words[0] in ("list", "reproduce", "report", "doctor", "bench") and {"-h", "--help"} & set(words):
            print(help_of(words[0]), end="")  # the others tell more
            if words[0] == "bench":
                print(f"NAME is one of: {', '.join(benchmarks())}" if benchmarks() else NO_BENCHMARKS)
        else:
            verbs[words[0]](words[1:])


def do_list(words: list[str]) -> None:
    from attndyn import data, tasks
    from attndyn.studies import STUDIES, find

    extra, flags = take_flags(words, ["--json"])
    if extra:
        raise UserError(f"list takes no {extra[0]!r}")
    studies = [find(name) for name in STUDIES]
    entries = [
        {
            "name": study.name,
            "title": study.title,
            "source": study.source,
            "claims": [s.id for s in study.statements],
        }
        for study in studies
    ]
    kinds = {kind.__name__: (kind.__doc__ or "").splitlines()[0] for kind in tasks.KINDS}
    corpora = data.entries(whole=False)
    if "--json" in flags:
        here = {corpus["name"]: corpus["folder"] for corpus in corpora}
        print(json.dumps({"studies": entries, "tasks": kinds, "corpora": here}, indent=1, ensure_ascii=False))
        return
    print("Studies")
    for entry in entries:
        print(f"  {entry['name']:<{WIDE}}{entry['title']}")
        print(f"{'':{2 + WIDE}}{entry['source']}; {len(entry['claims'])} claims")
    print("\nTasks")
    for name, about in kinds.items():
        print(f"  {name:<{WIDE}}{about}")
    print("\nCorpora (attndyn data list says more)")
    for corpus in corpora:
        print(f"  {corpus['name']:<{WIDE}}{'here' if corpus['folder'] else 'not here'}; {corpus['title']}")


def do_run(words: list[str]) -> None:
    from attndyn.studies import STUDIES, find

    if not words or words[0] in ("-h", "--help"):
        print(f"usage: attndyn run STUDY [settings]\n\nSTUDY is one of: {', '.join(STUDIES)}")
        print("attndyn run STUDY --help shows every setting.")
        if not words:
            raise UserError("run needs the name of a study")
        return
    if words[0].startswith("-"):
        raise UserError(f"the study comes first: attndyn run STUDY {words[0]} …")
    kind = find(words[0])
    options, study = parse_run(kind, words[1:])
    show_run(study, options)


def show_run(study: Any, options: RunOptions) -> None:
    from attndyn import verbs
    from attndyn.console import Live, print_claims
    from attndyn.provenance import by_other_code

    live = Live(study.headline)
    folder = options.out or verbs.default_folder(study, options.scale)
    page = has_charts()
    begun = verbs.check_folder(study.name, folder, options.fresh)
    if begun is not None and not options.fresh and by_other_code(begun):
        print(f"{folder} is a run of another version of attndyn; --fresh runs it again with this one", file=sys.stderr)
    if not verbs.is_finished(folder):
        from attndyn.process import keep_freed_memory

        keep_freed_memory()
    try:
        run = verbs.run(
            study,
            scale=options.scale,
            out=folder,
            device=options.device,
            precision=options.precision,
            deterministic=options.deterministic,
            fresh=options.fresh,
            page=page,
            progress=live,
        )
    finally:
        live.close()
    print(f"{run.info['finding']}\n")
    print_claims(run.claims)
    print(f"page  {page_of(folder)}")


def do_sweep(words: list[str]) -> None:
    """Exit code 1 where cells are missing."""
    from attndyn.studies import find
    from attndyn.sweeping.grid import read_grid, take_grid

    names = list(takewhile(lambda word: not word.startswith("-"), words))
    if not names:
        print(f"{help_of('sweep')}\nattndyn sweep STUDY --help shows every setting.")
        if not {"-h", "--help"} & set(words):
            raise UserError("sweep needs the name of a study, before anything else: attndyn sweep STUDY --grid …")
        return
    kinds = [find(name) for name in names]
    rest, axes = take_grid(words[len(names) :])
    for name in axes:
        flag = name.replace("_", "-")
        if {f"--{flag}", f"--no-{flag}"} & {word.split("=")[0].replace("_", "-") for word in rest}:
            raise UserError(f"{name} is given both in --grid and as --{flag}; choose one")
    about = "--grid NAME=VALUE,VALUE,… gives the settings that differ between cells; all others are the same."
    parsed = [parse_run(kind, rest, SweepOptions, "sweep", about) for kind in kinds]
    show_sweep([study for _, study in parsed], [read_grid(kind, axes) for kind in kinds], parsed[0][0])


def show_sweep(bases: list[Any], grids: list[Any], options: SweepOptions) -> None:
    from attndyn.console import Live
    from attndyn.sweeping.cells import Told
    from attndyn.sweeping.sweep import sweep_from
    from attndyn.sweeping.table import print_swept

    class Terminal(Told):
        live: Live | None = None

        def say(self, line: str) -> None:
            self.close()
            print(line, file=sys.stderr, flush=True)

        def progress(self, study: Any) -> Live:
            from attndyn.process import keep_freed_memory

            keep_freed_memory()
            self.close()
            self.live = Live(study.headline)
            return self.live

        def close(self) -> None:
            if self.live is not None:
                self.live.close()

    terminal = Terminal()
    try:
        swept = sweep_from(bases, grids, options, terminal)
    finally:
        terminal.close()
    if options.json:
        print(json.dumps(swept.found, indent=1, ensure_ascii=False))
    else:
        print_swept(swept)
    if swept.problems:
        raise RunError(swept.problems_in_words())


def page_of(folder: Path) -> Path | str:
    page = folder / "report.html"
    return page if page.exists() else f"{folder} (attndyn report {folder} makes the page where altair is)"


def has_charts() -> bool:
    """Whether this machine can draw: a run also finishes where it cannot."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def do_reproduce(words: list[str]) -> None:
    from attndyn import verbs
    from attndyn.console import Live, print_claims, tally_in_words
    from attndyn.studies.base import SCALES

    words, scale = take_value(words, "--scale")
    if scale is not None and scale not in SCALES:
        raise UserError(f"--scale is one of {', '.join(SCALES)}")
    names, flags = take_flags(words, ["--json", "--scale"])
    studies = verbs.chosen(names)
    claims = []
    for number, study in enumerate(studies, 1):
        print(f"{study.name}, {number} of {len(studies)}", file=sys.stderr, flush=True)
        live = Live(study.headline)
        try:
            found = verbs.reproduced(study, scale or SCALES[0], live)
        finally:
            live.close()
        claims += found
        if "--json" not in flags:
            print(f"\n{study.name}: {study.title}\n")
            print_claims(found)
    if "--json" in flags:
        print(json.dumps(claims, indent=1, ensure_ascii=False))
    else:
        print(f"\n{tally_in_words(claims)}")


def do_report(words: list[str]) -> None:
    from attndyn import verbs

    folders, flags = take_flags(words, ["--pdf"])
    if len(folders) != 1:
        raise UserError("report needs one run folder: attndyn report DIR")
    formats = ("svg", "png", "pdf") if "--pdf" in flags else ("svg", "png")
    print(f"page  {verbs.report(folders[0], formats)}")


@dataclass(frozen=True)
class DiagnoseOptions:
    out: Path | None = None
    """The folder of the page; runs/diagnose/HASH if not given."""
    json: bool = False
    """Print everything as JSON, and write no page unless --out is given."""


def do_diagnose(words: list[str]) -> None:
    import tyro

    from attndyn.diagnose import Data

    check_flags("diagnose", words, DiagnoseOptions, Data)
    command = make_dataclass("Command", [("data", Data, field()), ("output", DiagnoseOptions, field())], frozen=True)
    parsed: Any = tyro.cli(
        command,
        config=(tyro.conf.OmitArgPrefixes,),
        prog="attndyn diagnose",
        description="What attention will find easy or hard in your data, before anything is trained.",
        args=words,
    )
    show_diagnosis(parsed.data, parsed.output)


def show_diagnosis(data: Any, options: DiagnoseOptions) -> None:
    import time

    from attndyn.console import print_answers
    from attndyn.diagnose import diagnose
    from attndyn.diagnose.page import DIAGNOSIS, default_folder, write
    from attndyn.verbs import check_folder

    folder = options.out or default_folder(data)
    wants_page = has_charts() and not (options.json and options.out is None)
    if wants_page:
        check_folder("diagnose", folder)
    started = time.perf_counter()
    found = diagnose(data)
    page = write(data, found, folder, time.perf_counter() - started) if wants_page else None
    if options.json:
        print(json.dumps(found, ensure_ascii=False, allow_nan=False))
        return
    print_answers(found["finding"], found["answers"])
    if page is not None:
        print(f"\npage  {page}\nall words, as JSON  {folder / DIAGNOSIS}")


def do_data(words: list[str]) -> None:
    from attndyn import data

    verbs = {"list": data.do_list, "check": data.do_check, "facts": data.do_facts, "fetch": data.do_fetch}
    if not words or words[0] in ("-h", "--help"):
        print("usage: attndyn data list|check|facts|fetch [NAME …] [--data-dir DIR] [--json]")
        if not words:
            raise UserError("data needs one of: " + ", ".join(verbs))
        return
    if words[0] not in verbs:
        raise UserError(f"there is no command 'data {words[0]}'; {nearest(words[0], verbs)}")
    rest, folder = take_value(words[1:], "--data-dir")
    if folder == "":
        raise UserError("--data-dir needs a folder")
    names, flags = take_flags(rest, ["--json", "--data-dir"])
    verbs[words[0]](names, Path(folder) if folder else None, "--json" in flags)


def do_watch(words: list[str]) -> None:
    import tyro

    from attndyn.watching.posthoc import Stored, watch_stored

    check_flags("watch", words, Stored)
    asked = tyro.cli(
        Stored,
        prog="attndyn watch",
        description="How the attention of your own model changed, from its stored checkpoints.",
        args=words,
    )
    run = watch_stored(asked)
    print(f"{run.info['finding']}\npage  {page_of(run.path)}")


def do_runs(words: list[str]) -> None:
    from attndyn import housekeeping

    if not words or words[0] in ("-h", "--help"):
        print(housekeeping.USAGE)
        if not words:
            raise UserError("runs needs one of: " + ", ".join(housekeeping.VERBS))
        return
    if words[0] not in housekeeping.VERBS:
        raise UserError(f"there is no command 'runs {words[0]}'; {nearest(words[0], housekeeping.VERBS)}")
    act, known = housekeeping.VERBS[words[0]]
    rest, under = take_value(words[1:], "--under") if "--under" in known else (words[1:], None)
    if under == "":
        raise UserError("--under needs a folder")
    names, flags = take_flags(rest, known)
    act(names, Path(under) if under else None, flags)


def do_doctor(words: list[str]) -> None:
    from attndyn import doctor

    extra, flags = take_flags(words, ["--json"])
    if extra:
        raise UserError(f"doctor takes no {extra[0]!r}")
    doctor.do_doctor("--json" in flags)


def do_audit(words: list[str]) -> None:
    """Exit code 1 where something was found."""
    if "-h" in words or "--help" in words:
        print("usage: attndyn audit CHECKPOINTS … [--json]\n\nCHECKPOINTS are .safetensors or torch files, or Hugging")
        print("Face folders; the last number in a name is the step. Exit code 1 if anything is wrong with the series.")
        return
    from attndyn.audit import audit

    paths, flags = take_flags(words, ["--json"])
    found = audit(paths)
    if "--json" in flags:
        print(json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        from attndyn.console import print_audit

        print_audit(found)
    if found["findings"]:
        raise SystemExit(1)


def do_bench(words: list[str]) -> None:
    import runpy

    known = benchmarks()
    if not known:
        raise UserError(NO_BENCHMARKS)
    names, _ = take_flags(words, [])
    for name in names:
        if name not in known:
            raise UserError(f"there is no benchmark {name!r}; {nearest(name, known)}")
    for name in names or known:
        runpy.run_path(str(known[name]), run_name="__main__")


def benchmarks() -> dict[str, Path]:
    """Their files by name; none where attndyn is installed without them."""
    folder = Path(__file__).resolve().parents[2] / "benchmarks"
    return {path.stem: path for path in sorted(folder.glob("*.py"))}
