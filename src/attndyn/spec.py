"""Specs are frozen dataclasses: data only, no torch. Here they become JSON, and JSON becomes a hash."""

import dataclasses
import hashlib
import json
import numbers
import operator
import os
import types
from typing import Any, Literal, Union, get_args, get_origin

from attndyn.errors import UserError


def encode(value: Any) -> Any:
    """A spec as plain JSON data; a dataclass also names its class, so that equal fields of two kinds differ."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **fields}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} cannot be part of a spec")


def digest(value: Any) -> str:
    """Same digest = same work."""
    text = json.dumps(encode(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def fitting(name: str, value: Any, hint: Any) -> Any:
    """A setting as the command line would have read it: a list becomes a tuple, a path a string, 1 becomes 1.0 where
    numbers are meant, so that equal settings have equal digests. Refuses what is of another kind."""
    try:
        return _as(value, hint)
    except TypeError:
        raise UserError(f"{name} must be {_in_words(hint)}, not {value!r}") from None


def _in_words(hint: Any) -> str:
    if get_origin(hint) is tuple:
        return f"several of: {_in_words(get_args(hint)[0])}"
    if get_args(hint):
        return " or ".join(map(_in_words, get_args(hint)))
    known = {int: "a whole number", float: "a number", str: "text", bool: "True or False", types.NoneType: "None"}
    return known.get(hint, str(hint))


def _as(value: Any, hint: Any) -> Any:
    kind, parts = get_origin(hint), get_args(hint)
    if kind in (Union, types.UnionType):
        for part in parts:
            try:
                return _as(value, part)
            except TypeError:
                continue
        raise TypeError
    if kind is Literal:
        if value in parts:
            return value
        raise TypeError
    if kind is tuple and isinstance(value, list | tuple):
        wanted = [parts[0]] * len(value) if parts[1:] == (...,) else parts
        if len(wanted) != len(value):
            raise TypeError
        return tuple(_as(item, part) for item, part in zip(value, wanted, strict=True))
    if hint in (int, float) and not isinstance(value, bool):  # also NumPy's
        if hint is float and isinstance(value, numbers.Real):
            return float(value)
        if hasattr(value, "__index__"):
            return hint(operator.index(value))
    if hint is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    if (
        kind is None
        and isinstance(hint, type)
        and isinstance(value, hint)
        and isinstance(value, bool) <= (hint is bool)
    ):
        return value
    raise TypeError
