"""`attndyn.hf`: watching inside the `Trainer` of Hugging Face transformers.

trainer = Trainer(model, arguments, train_dataset=data)
trainer.add_callback(attndyn.hf.WatchCallback(examples, out="runs/mine", targets=labels, query=0))
trainer.train()
"""

from pathlib import Path
from typing import Any

from attndyn.errors import UserError
from attndyn.watching.watch import Watch, watch

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise UserError("attndyn.hf needs the package transformers: pip install 'attndyn[hf]'") from error


class WatchCallback(TrainerCallback):
    """Reads the model at the start, at the steps that are due and at the end, and leaves the page. The arguments are
    those of `attndyn.watch`."""

    def __init__(self, examples: Any, out: Path | str, every: int = 50, **options: Any) -> None:
        self.examples, self.out, self.every, self.options = examples, out, every, options
        self.watch: Watch | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        if state.is_world_process_zero:
            self.watch = watch(model, self.examples, self.out, self.every, **self.options)
            self.watch.step(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self.watch is not None:
            self.watch.step(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self.watch is not None:
            self.watch.close(state.global_step)
