"""Specs are frozen dataclasses: data only, no torch. Here they become JSON, and JSON becomes a hash."""

import dataclasses
import hashlib
import json
from typing import Any


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
