"""Runs recorded studies again, by the commands on record: python docs/results/rerun.py [--at-once N] [--apart S] NAME …

Names are folders of docs/results; `a+b` runs b after a (one that builds on the other). `--add NAME "--uniform 2"` puts
words behind the command of one of them, where it is to be recorded otherwise from now on. At most N such chains run at
the same time, started at least S seconds after each other (each study takes half of the GPU memory that is free when it
starts). Runs lie in runs/, as always; finished ones are not run again. `--pack FILE.tar.xz` collects what
`attndyn report` and `record.py` need, in a folder for each name, and NAME-needs-N for each run that it builds on.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEAVY = ("checkpoints", "weights", "report.html")
"""What a page is not made from."""


def command(name: str, added: str = "") -> list[str]:
    """The words behind `attndyn run`."""
    recorded = json.loads((HERE / name / "run.json").read_text(encoding="utf-8"))["command"]
    return shlex.split(f"{recorded} {added}")[2:]


def folders(name: str, added: str = "") -> list[Path]:
    """Of the run, and of those that it needs."""
    from attndyn.options import parse_run
    from attndyn.studies import find
    from attndyn.verbs import default_folder

    study, *words = command(name, added)
    options, declared = parse_run(find(study), words)
    return [default_folder(one, options.scale) for one in (declared, *declared.needs())]


def chain(names: list[str], added: dict[str, str], begun: float, failed: list[str]) -> None:
    for name in names:
        started = time.monotonic()
        words = [sys.executable, "-m", "attndyn", "run", *command(name, added.get(name, ""))]
        with open(f"{name}.log", "w", encoding="utf-8") as log:
            done = subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, check=False)
        now = time.monotonic()
        print(f"{name}: exit {done.returncode}, {now - started:.1f} s, {now - begun:.0f} s after the start", flush=True)
        if done.returncode:
            failed.append(name)
            print(*Path(f"{name}.log").read_text(encoding="utf-8").splitlines()[-5:], sep="\n", flush=True)
            return


def pack(names: list[str], path: Path, added: dict[str, str] | None = None) -> None:
    """The runs that are needed, too: a run that fails at its last stage leaves these."""
    with tarfile.open(path, "w:xz") as tar:
        for name in names:
            for number, folder in enumerate(folders(name, (added or {}).get(name, ""))):
                if (folder / "claims.json").exists():
                    tar.add(folder, f"{name}-needs-{number}" if number else name, filter=light)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


def light(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if set(Path(member.name).parts) & set(HEAVY) else member


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--apart", type=float, default=30)
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--add", nargs=2, action="append", default=[], metavar=("NAME", "WORDS"))
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    chains = [each.split("+") for each in given.names]
    names = list(dict.fromkeys(name for each in chains for name in each))
    for name in names:
        if not (HERE / name / "run.json").exists():
            parser.error(f"there is no {name} in docs/results")
    added = dict(given.add)
    for name in added.keys() - set(names):
        parser.error(f"--add {name}: it is not among the names to be run")
    room, begun, failed, threads = threading.Semaphore(given.at_once), time.monotonic(), [], []

    def work(each: list[str]) -> None:
        with room:
            chain(each, added, begun, failed)

    for number, each in enumerate(chains):
        if number and given.at_once > 1:
            time.sleep(given.apart)
        threads.append(threading.Thread(target=work, args=(each,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    if given.pack:
        pack(names, given.pack, added)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
