"""Presets: readable recipes without data and columns, to start from. ``sfumato init FILE --preset NAME`` uses them."""

from __future__ import annotations

from pathlib import Path

from sfumato.errors import UnknownPart
from sfumato.wording import did_you_mean

_FOLDER = Path(__file__).parents[1] / "presets"


def preset_names() -> tuple[str, ...]:
    """Names of the presets.

    >>> "research-file" in preset_names()
    True
    """
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def preset_text(name: str) -> str:
    """The preset as it is written, comments included."""
    if name not in preset_names():
        raise UnknownPart(f"There is no preset `{name}`.", fix=did_you_mean(name, preset_names()))
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
