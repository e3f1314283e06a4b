"""The two ways a command can fail; the command line turns each into one sentence and an exit code."""


class UserError(Exception):
    """A mistake in what was asked for: a name, a value, a file, a device. Exit code 2."""


class RunError(Exception):
    """Something failed while running. What was finished before stays readable. Exit code 1."""
