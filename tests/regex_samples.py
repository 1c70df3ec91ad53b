"""Random regular expressions of the common subset, and texts to match."""

from __future__ import annotations

import random

__all__ = ["pattern", "texts"]

SIGNS = [chr(code) for code in range(1, 128)] + ["é", "ß", "Σ", "٣", "\u2028", "\x85", "😀", "\U0010ffff"]
PIECES = [
    "a", "b", "E", "1", r"\.", r"\-", r"\\", r"\]", r"\$", " ", "-", ",", "&", "é", "😀", ".", r"\d", r"\D", r"\w",
    r"\W",
    r"\s", r"\S", r"\n", r"\t", "[abc]", "[^abc]", "[a-f0-3]", "[^a-f\\d]", r"[\w.-]", r"[\]\\^-]", "[^\\s]", "[.]",
    "[$|(]",
    "[é-ü]", "(a|b)", "(?:ab|cd|e)", "(a|b[12])?", "\"", "'", "[-a]", "[a-]", "[+--]",
]  # fmt: skip
REPEATS = ["", "", "", "", "?", "{2}", "{0,3}", "{1,2}"]


def pattern(draw: random.Random) -> str:
    def one() -> str:
        parts = []
        for _ in range(draw.randint(1, 4)):
            piece = draw.choice(PIECES)
            parts.append(piece + ("" if piece[0] == "(" else draw.choice(REPEATS)))
        if draw.random() < 0.3:
            parts[0] = draw.choice(["a", ".", r"\w"]) + draw.choice("*+")
        return f"{draw.choice(['', '^'])}{''.join(parts)}{draw.choice(['', '$'])}"

    return "|".join(one() for _ in range(draw.choice([1, 1, 2])))


def texts(draw: random.Random) -> list[str]:
    made = ["".join(draw.choice(["a", "b", "E", "1", ".", "\n", draw.choice(SIGNS)]) for _ in range(draw.randint(0, 6)))
            for _ in range(60)]  # fmt: skip
    return [*made, *SIGNS, "", "a\n", "ab\n", "\na", "E11.9"]
