"""The logistic regression of `salient-words` in a process of its own, beside a GPU at work.

python -m attndyn.studies.salient_twin TASK RESULT fits the corpus of the task (JSON) and writes a .npz file. A thread
would make every step of the training wait for the interpreter.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import weakref
from dataclasses import asdict
from pathlib import Path

import numpy as np

from attndyn.errors import RunError
from attndyn.tasks.corpus import LabelledText
from attndyn.theory.logistic import Fit, Logistic, logistic


class Twin:
    """Starts at once; `result` waits for it. Nothing is left of it when the object goes."""

    def __init__(self, task: LabelledText) -> None:
        self.task, folder = task, tempfile.TemporaryDirectory(prefix="attndyn-")
        self.found: Logistic | None = None
        self.path = Path(folder.name) / "logistic.npz"
        command = [sys.executable, "-m", __name__, json.dumps(asdict(task)), str(self.path)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        weakref.finalize(self, _end, self.process, folder)

    def result(self) -> Logistic:
        if self.found is None:
            self.found = self._read()
        return self.found

    def _read(self) -> Logistic:
        _, errors = self.process.communicate()
        if self.process.returncode:
            raise RunError(f"the logistic regression failed: {(errors.strip().splitlines() or ['killed'])[-1]}")
        with np.load(self.path, allow_pickle=False) as found:
            path = [Fit(float(c), float(a), float(g), bool(done)) for c, a, g, done in found["path"]]
            beta, intercept, chosen = found["beta"], found["intercept"], path[int(found["chosen"])]
        data = self.task.data
        return Logistic(data.train.source.words, data.train.target.words, beta, intercept, chosen, path)


def _end(process: subprocess.Popen[str], folder: tempfile.TemporaryDirectory[str]) -> None:
    with process:  # waits, and closes its pipe
        process.kill()
    folder.cleanup()


def main(task: str, result: str) -> None:
    data = LabelledText(**json.loads(task)).data
    fitted = logistic(data.train, data.valid)
    np.savez(
        result,
        beta=fitted.beta,
        intercept=fitted.intercept,
        chosen=np.array(fitted.path.index(fitted.chosen)),
        path=np.array(fitted.path, dtype=np.float64),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
