"""The style sheet that all HTML pages share."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def style() -> str:
    """The text of ``templates/report.css``."""
    return files("sfumato.reports").joinpath("templates/report.css").read_text(encoding="utf-8")
