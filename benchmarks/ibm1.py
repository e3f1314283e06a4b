"""IBM Model 1, five iterations on 29,000 pairs: attndyn against NLTK's IBMModel1, in one run.

    attndyn bench ibm1

Both sides go from token lists to the table. NLTK's constructor goes on to align every pair; that is left out here, and
its AlignedSent objects are made before the clock starts. The corpus is Multi30k German-English from $ATTNDYN_DATA;
without it, a made one of the same size: Zipf-distributed words, each output word with one partner. The tables are
compared entry by entry. NLTK counts a word that is repeated in an output line once (it adds its normaliser up over the
repetitions), so its table is compared with ours of the lines without repetitions. Where `eflomal-align` is installed,
its model 1 is timed too; it samples, so there is no table to compare.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from nltk import __version__ as nltk_version
from nltk.translate import AlignedSent, IBMModel1

from attndyn.tasks.text import pairs, read_lines, tokenise
from attndyn.theory.ibm1 import Ibm1, ibm1

PAIRS, ITERATIONS, ROUNDS = 29_000, 5, 3
Lines = list[list[str]]


def corpus() -> tuple[str, Lines, Lines]:
    folder = Path(os.environ.get("ATTNDYN_DATA", "")) / "multi30k"
    paths = [folder / f"train.{language}.xz" for language in ("de", "en")]
    if all(path.exists() for path in paths):
        source, target = ([tokenise(line) for line in read_lines(path)] for path in paths)
        return "Multi30k German-English", source, target
    random = np.random.default_rng(0)
    lengths = random.poisson(11, PAIRS) + 2
    source = [[f"s{word}" for word in np.minimum(random.zipf(1.35, length), 18_000)] for length in lengths]
    target = [[word.replace("s", "t") for word in line if random.random() < 0.9] + ["t0"] for line in source]
    return "a made corpus", source, target


def ours(source: Lines, target: Lines) -> Ibm1:
    return ibm1(pairs(source, target), iterations=ITERATIONS, null=True)


class TableOnly(IBMModel1):
    def align_all(self, parallel_corpus: list[AlignedSent]) -> None:
        pass


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def largest_difference(table: Ibm1, theirs: IBMModel1) -> float:
    entries = table.trans.tocoo()
    inputs = [*table.source_words[:-1], None]
    rows = zip(entries.row, entries.col, entries.data, strict=True)
    return max(abs(value - theirs.translation_table[table.target_words[o]][inputs[i]]) for i, o, value in rows)


def eflomal(source: Lines, target: Lines) -> float | None:
    """Seconds of its model 1 with its usual number of iterations, one direction."""
    program = shutil.which("eflomal-align")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / side for side in ("source", "target", "links")]
        for path, lines in zip(files, (source, target), strict=False):
            path.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
        command = [program, "-m", "1", "-s", files[0], "-t", files[1], "-f", files[2], "--overwrite"]
        return timed(lambda: subprocess.run(command, check=True, capture_output=True))[0]


def main() -> None:
    name, source, target = corpus()
    aligned = [AlignedSent(output, line) for line, output in zip(source, target, strict=True)]
    own = [timed(lambda: ours(source, target))[0] for _ in range(ROUNDS)]
    peer, theirs = timed(lambda: TableOnly(aligned, ITERATIONS))
    sampler = eflomal(source, target)
    once = ours(source, [list(dict.fromkeys(line)) for line in target])
    print(f"IBM Model 1, {ITERATIONS} iterations, {len(source):,} pairs of {name}, from token lists to table")
    print(f"  NLTK {nltk_version}   {peer:7.2f} s")
    print(f"  attndyn       {statistics.median(own):7.2f} s   ({', '.join(f'{seconds:.2f}' for seconds in own)})")
    print(f"  ratio         {peer / statistics.median(own):7.1f}     ({peer / max(own):.1f} to {peer / min(own):.1f})")
    print(f"  largest difference of the tables {largest_difference(once, theirs):.1e}, {once.trans.nnz:,} entries")
    if sampler is None:
        print("  eflomal-align is not installed here")
    else:
        print(
            f"  eflomal's model 1, one direction {sampler:.2f} s, {sampler / statistics.median(own):.1f} times as long"
        )


if __name__ == "__main__":
    main()
