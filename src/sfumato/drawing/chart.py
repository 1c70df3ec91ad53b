"""The base of charts: frozen rows that know how to draw themselves, as data for the JSON report and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import ClassVar, TypeAlias, get_args, get_type_hints

from sfumato.drawing.marks import Drawing

Json: TypeAlias = "str | int | float | bool | list[Json] | Mapping[str, Json] | None"

CHARTS: dict[str, type[Chart]] = {}
"""Charts that a JSON report may contain, by name."""


@dataclass(frozen=True, kw_only=True)
class Chart(ABC):
    """One picture as data."""

    name: ClassVar[str] = ""
    """The key ``chart`` of the JSON report; empty for pictures that no report contains."""

    def __init_subclass__(cls) -> None:
        if cls.name:
            CHARTS[cls.name] = cls

    @abstractmethod
    def draw(self, width: float) -> Drawing:
        """The picture at a width in pixels."""

    def to_dict(self) -> dict[str, Json]:
        """The chart as plain data; :func:`chart_from_dict` makes it again."""
        return {"chart": self.name, **asdict(self)}


def chart_from_dict(data: Mapping[str, Json]) -> Chart:
    """The chart of a JSON report."""
    cls = CHARTS[str(data["chart"])]
    hints = get_type_hints(cls)
    values: dict[str, object] = {}
    for field in fields(cls):
        value = data[field.name]
        row = next(iter(get_args(hints[field.name])), None)
        if isinstance(value, list) and isinstance(row, type):
            values[field.name] = tuple(row(**item) if isinstance(item, Mapping) else item for item in value)
        else:
            values[field.name] = value
    return cls(**values)
