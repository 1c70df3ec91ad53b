"""A name of the row's own identifier column leaves the row's text in every spelling."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import polars as pl
import pytest

import sfumato

NAMED = [
    ("Zdeněk Quvořák", ["Zdeněk Quvořák", "QUVOŘÁK", "quvořák", "Quvorak", "QUVORAK", "zdenek"]),
    ("Zdeněk Quvořák", [unicodedata.normalize("NFD", "Zdeněk Quvořák"), "Quvořák’s", "Quvořák's", "Quvoraks"]),
    ("Ann O'Brixx", ["O’Brixx", "o’brixx", "O'BRIXX", "obrixx", "O’Brixx's", "O`Brixx", "O Brixx", "annobrixx"]),
    ("MacQuillix, Bo", ["macquillix", "Mac Quillix", "MACQUILLIX", "Mac-Quillix", "MacQuillix's", "BO"]),
    ("McQuillix", ["Mc Quillix", "mcquillix", "MCQUILLIX"]),
    ("Mac Quillix", ["MacQuillix", "macquillix", "quillix"]),
    ("Jean-Luc Porvat", ["jean luc porvat", "Jean‑Luc", "JEANLUC", "Luc", "porvat’s"]),
    ("Müllerov", ["mullerov", "Muellerov", "MÜLLEROV", "muellerov's"]),
    ("Mullerová", ["Müllerová", "MULLEROVA"]),
    ("Søren Łazarxi", ["Soren", "LAZARXI", "łazarxi"]),
    ("Qadirze  Elm", ["Qadirze\u00a0Elm", "Qad\u200birze", "ＱＡＤＩＲＺＥ", "ELM’S"]),
    ("Li Xu", ["Li", "XU"]),
]
CASES = [(name, spelled) for name, several in NAMED for spelled in several]


def _masked(names: list[str], texts: list[str]) -> list[str]:
    frame = pl.DataFrame({"pid": range(len(names)), "name": names, "message": texts})
    recipe = {
        "sfumato": 1,
        "unit": "pid",
        "order": "kept",
        "columns": {name: {"role": role} for name, role in zip(frame.columns, ROLES, strict=True)},
        "steps": [{"deidentify-text": {"columns": ["message"], "signed_by": "the owner", "days": 180}}],
    }
    done: Any = sfumato.protect(recipe, frame, n_targets=5, seconds=0.001, seed=1, unmet=True)
    return list(done.data["message"])


ROLES = ("identifier", "identifier", "sensitive")


@pytest.fixture(scope="module")
def released() -> list[str]:
    return _masked([name for name, _ in CASES], [f"so, then {spelled} paid." for _, spelled in CASES])


@pytest.mark.parametrize("place", range(len(CASES)), ids=[f"{name}: {spelled!a}" for name, spelled in CASES])
def test_no_letter_of_the_name_is_left(released: list[str], place: int) -> None:
    left = released[place]
    for frame in ("so, then ", " paid.", "'s", "’s", "s"):
        left = left.replace(frame, "", 1)
    assert re.fullmatch(r"\[PER[^][]*\]", left), released[place]


def test_other_words_stay() -> None:
    texts = ["the helm of elms, helmets", "obrixxon and brixxos", "so we saw li and xu", "the make is new"]
    names = ["Qadirze Elm", "Ann O'Brixx", "Li Xu", "MacQuillix"]
    assert _masked(names, texts) == texts


def test_a_name_has_one_pseudonym_in_all_spellings() -> None:
    (text,) = _masked(["Zdeněk Quvořák"], ["QUVORAK came, quvořák left, then Zdeněk Quvořák paid."])
    assert text.count("[PERSON 1]") == 3
