"""Turns a finished run and the parts a study names into figures and one self-contained page."""
