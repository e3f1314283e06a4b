"""Labelled text as plain lists: the slow definition of what `attndyn.tasks.labelled` does with arrays."""

from collections import Counter


def vocabulary(texts: list[list[str]], *, vectors: set[str], integers_unknown: bool) -> set[str]:
    counts = Counter(word for text in texts for word in text)
    kept = set()
    for word, count in counts.items():
        if word in ("<pad>", "<unk>", "<bos>", "<eos>"):
            continue
        if integers_unknown and word.isdecimal() and len(word) >= 2:
            continue
        if count >= 3 or word in vectors:
            kept.add(word)
    return kept


def framed(text: list[str], kept: set[str], longest: int) -> list[str]:
    return ["<bos>", *(word if word in kept else "<unk>" for word in text[: longest - 2]), "<eos>"]
