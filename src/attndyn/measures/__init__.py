"""Pure functions of traces and arrays."""
