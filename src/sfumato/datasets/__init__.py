"""Small tables of the field's worked examples, with origin and licence. The docs' section on the field uses them.

>>> from sfumato import datasets
>>> datasets.load("patients12").rows
12
>>> datasets.about("census11").source.split(",")[0]
'Sweeney (2002)'
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.data.table import Table

__all__ = ["Origin", "about", "load", "names", "place"]

_FOLDER = Path(__file__).parent / "tables"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a table comes from and under which terms it is distributed."""

    name: str
    title: str
    source: str
    licence: str


def names() -> list[str]:
    """Names of the tables, each one CSV file with a TOML file beside it."""
    return sorted(path.stem for path in _FOLDER.glob("*.csv"))


def place(name: str) -> Path:
    """The CSV file of a table."""
    if name not in names():
        from sfumato.errors import BadParameter
        from sfumato.wording import did_you_mean

        raise BadParameter(f"There is no table `{name}`.", fix=did_you_mean(name, names()))
    return _FOLDER / f"{name}.csv"


def about(name: str) -> Origin:
    """Title, source and licence of a table."""
    import tomllib

    return Origin(name=name, **tomllib.loads(place(name).with_suffix(".toml").read_text(encoding="utf-8")))


def load(name: str) -> Table:
    """Read a table. Codes such as ZIP codes stay text."""
    from sfumato.data import read

    return read(place(name))
