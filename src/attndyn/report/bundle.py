"""Vega, Vega-Lite and Vega-Embed as one script, kept in the user's cache: making it takes two seconds."""

import os
from importlib.metadata import version
from pathlib import Path

from attndyn.errors import RunError, UserError
from attndyn.store.atomic import write_bytes

# charts.js asks for no more than this.
SNIPPET = "window.vegaEmbed = vegaEmbed;"


def vega_bundle() -> str:
    import vl_convert

    cached = _cache() / f"vega-{version('vl-convert-python')}.js"
    try:
        return cached.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        bundle: str = vl_convert.javascript_bundle(SNIPPET)
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(cached, bundle.encode())
    except (OSError, RunError, UserError):
        pass  # a page must not fail for want of a cache
    return bundle


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attndyn"
