"""Slow implementations, written from the definitions, that the fast ones are tested against."""
