"""Part registry: discovers parts in the source tree and in entry points, and exports them from their packages.

A part is one module or one package in the folder of its kind. Its file name is its part name: ``rank_swap.py`` defines
``RankSwap``, which recipes and the command line call ``rank-swap``. Modules whose name starts with an underscore are
helpers. Other distributions add parts by an entry point of the group ``sfumato.<kind>``. Listing names imports nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, ValidationInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from sfumato.errors import BadParameter, SfumatoError, UnknownPart
from sfumato.params import Part, first_sentence, key_path, part_name, plain_message
from sfumato.wording import did_you_mean, with_article

P = TypeVar("P", bound=Part)

KINDS: dict[str, tuple[str, ...]] = {
    "format": ("sfumato.data.formats",),
    "hierarchy": ("sfumato.dataset.hierarchies",),
    "engine": ("sfumato.engines.backends",),
    "mechanism": ("sfumato.dp.mechanisms",),
    "method": (
        "sfumato.masking.methods",
        "sfumato.synthesis.methods",
        "sfumato.events.methods",
        "sfumato.documents.methods",
    ),
    "model": ("sfumato.masking.models",),
    "metric": ("sfumato.masking.metrics",),
    "attack": ("sfumato.attacks.record_linkage", "sfumato.attacks.transparency", "sfumato.attacks.inference"),
    "policy": ("sfumato.query.policies", "sfumato.auditing.policies"),
    "query-attack": ("sfumato.attacks.query",),
    "check": ("sfumato.evaluation.checks",),
    "measure": ("sfumato.measures.utility", "sfumato.measures.disclosure"),
    "frequency-protocol": ("sfumato.collecting.frequencies",),
    "number-protocol": ("sfumato.collecting.numbers",),
    "graph-method": ("sfumato.graphs.methods",),
    "graph-model": ("sfumato.graphs.models",),
    "graph-attack": ("sfumato.attacks.graph",),
    "graph-measure": ("sfumato.measures.graph",),
    "model-attack": ("sfumato.attacks.models",),
    "tagger": ("sfumato.documents.taggers",),
    "learner": ("sfumato.integral.learners",),
    "demo": ("sfumato.demos.parts", "sfumato.auditing.demos", "sfumato.parties.demos", "sfumato.integral.demos"),
    "release-kind": ("sfumato.api.kinds",),
}
"""Kind of part, and the packages whose modules are the parts of that kind. A package that is not there has no parts."""

_ROOT = Path(__file__).parent
_CLASS = re.compile(r'^class (\w+)[^"]*?:\n    r?"""(.*?)"""', re.DOTALL | re.MULTILINE)
"""A class and its docstring."""


def _described(source: Path) -> dict[str, str]:
    """First sentence of each class of a file, by the name it would have as a part."""
    return {part_name(cls): first_sentence(text) for cls, text in _CLASS.findall(source.read_text(encoding="utf-8"))}


class Registry:
    """All parts of one kind, by name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._modules: dict[str, str] = {}

    def modules(self) -> dict[str, str]:
        """Names of the parts in the source tree, and the module that defines each; nothing is imported."""
        if not self._modules:
            for package in KINDS[self.kind]:
                folder = _ROOT.joinpath(*package.split(".")[1:])
                for module in pkgutil.iter_modules([str(folder)]):
                    if not module.name.startswith("_"):
                        self._modules[module.name.replace("_", "-")] = f"{package}.{module.name}"
        return self._modules

    def names(self) -> tuple[str, ...]:
        """Names of all parts of this kind, sorted; nothing is imported."""
        installed = (point.name for point in self._installed())
        return tuple(sorted({*self.modules(), *installed}))

    def get(self, name: str) -> type[Part]:
        """The class of the part called ``name``. Raises :class:`UnknownPart` with the nearest known name."""
        module = self.modules().get(name)
        if module is not None:
            for value in vars(importlib.import_module(module)).values():
                own = (
                    isinstance(value, type)
                    and issubclass(value, Part)
                    and f"{value.__module__}.".startswith(f"{module}.")
                )
                if own and value.part_name() == name:
                    return value  # type: ignore[no-any-return]
            raise UnknownPart(f"{module} defines no part called `{name}`.", kind=self.kind, name=name)
        for point in self._installed():
            if point.name == name:
                part: type[Part] = point.load()
                return part
        raise UnknownPart(
            f"No {self.kind} is called `{name}`.", fix=did_you_mean(name, self.names()), kind=self.kind, name=name
        )

    def summary(self, name: str) -> str:
        """First sentence of a part's docstring, read from its source without an import where that is possible."""
        module = self.modules().get(name)
        if module is None:
            return self.get(name).summary()
        path = _ROOT.joinpath(*module.split(".")[1:])
        first, *rest = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        described = _described(first)
        # The suffix of a kind is one word: NcpMeasure is `ncp`.
        ended = {name.rpartition("-")[0]: text for name, text in described.items()}
        elsewhere = (text for source in rest if (text := _described(source).get(name)))
        return described.get(name) or ended.get(name) or next(elsewhere, "") or self.get(name).summary()

    def named(self, item: object) -> tuple[type[Part], object]:
        """The class that people name, and its parameters: ``name``, ``{name: bare value}`` or ``{name: {...}}``."""
        entry = {item: None} if isinstance(item, str) else item
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise BadParameter(
                f"This is no {self.kind}: an object of type `{type(item).__name__}`.",
                fix=f"Write the name of {with_article(self.kind)}, or one name with parameters: {{name: {{...}}}}.",
            )
        ((name, parameters),) = entry.items()
        return self.get(str(name)), parameters

    def part(self, item: object, base: type[P], *, folder: Path | None = None) -> P:
        """A part from what people write: the part itself, its name, or ``{name: parameters}``, as in a recipe.

        >>> from sfumato.attacks.base import Attack
        >>> registry("attack").part({"any-columns": 2}, Attack).to_dict()["most"]
        2
        """
        if isinstance(item, base):
            return item
        kind, parameters = self.named(item)
        part = kind.build(parameters, base=folder)
        assert isinstance(part, base)
        return part

    def _installed(self) -> EntryPoints:
        points: EntryPoints = _entry_points(tuple(sys.path)).select(group=f"sfumato.{self.kind}")
        return points

    def __iter__(self) -> Iterator[type[Part]]:
        return (self.get(name) for name in self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()


@lru_cache(maxsize=1)
def _entry_points(path: tuple[str, ...]) -> Any:
    """Entry points of all distributions on ``path``, which is ``sys.path``: they are read again when it changes."""
    return entry_points()


@cache
def registry(kind: str) -> Registry:
    """The registry of a kind: ``registry("method").get("generalize")``."""
    if kind not in KINDS:
        raise UnknownPart(f"There is no kind of part called `{kind}`.", fix=did_you_mean(kind, KINDS), kind=kind)
    return Registry(kind)


@dataclass(frozen=True)
class PartOf:
    """A field of a document that holds a part, with the key of each fault of its parameters."""

    kind: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self._part)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"part": self.kind}

    def _part(self, item: object, info: ValidationInfo) -> Part:
        if isinstance(item, Part):
            return item
        where = tuple(item) if isinstance(item, Mapping) and len(item) == 1 else ()
        try:
            kind, parameters = registry(self.kind).named(item)
        except SfumatoError as refusal:
            raise ValueError(str(refusal)) from None
        try:
            return kind.model_validate(parameters, context=info.context)
        except SfumatoError as refusal:
            raise ValueError(str(refusal)) from None
        except ValidationError as failure:
            faults = [
                InitErrorDetails(
                    type=PydanticCustomError("part", "{words}", {"words": plain_message(fault, kind)}),
                    loc=(*map(str, where), *key_path(fault)),
                    input=None,
                )
                for fault in failure.errors()
            ]
            raise ValidationError.from_exception_data(kind.part_name(), faults) from None


def family_module(name: str) -> Any:
    """A module of a family, such as ``parties.coordinator``: families are found by name, since nothing imports them."""
    family = name.split(".")[0]
    if not (_ROOT / family).is_dir():
        raise UnknownPart(f"This installation has no `sfumato.{family}`.", fix="Install sfumato anew.", kind="family")
    return importlib.import_module(f"sfumato.{name}")


def kinds_of(package: str) -> tuple[str, ...]:
    """The kinds whose parts lie in a package.

    >>> kinds_of("sfumato.masking")
    ('method', 'model', 'metric')
    """
    return tuple(kind for kind, folders in KINDS.items() if any(f.startswith(f"{package}.") for f in folders))


def exports(package: str, **names: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Lazy exports of a package: the classes of all its parts, and other ``names`` with the submodule of each.

    A package writes ``__getattr__, __dir__ = exports(__name__, Step="base")`` in its ``__init__.py``; then
    ``from sfumato.masking import Generalize, KAnonymity, Step`` imports the three modules on first use. ``make docs``
    writes an ``__init__.pyi`` with the same names for type checkers. No name may be that of its submodule, which would
    take its place once it is imported.
    """
    if hidden := [name for name, module in names.items() if name == module]:
        raise ValueError(f"{package}: {', '.join(hidden)} would be hidden by a submodule of the same name")

    def parts() -> Iterator[tuple[str, str, str]]:
        for kind in kinds_of(package):
            for name, module in registry(kind).modules().items():
                if module.startswith(f"{package}."):
                    yield kind, name, "".join(word.capitalize() for word in name.split("-"))

    def lookup(name: str) -> object:
        if name in names:
            return getattr(importlib.import_module(f"{package}.{names[name]}"), name)
        if name[:1].isupper():
            for kind, part, stem in parts():
                # A class may end in the suffix of its kind, which only the class itself knows: NcpMeasure is `ncp`.
                if name.startswith(stem) and (cls := registry(kind).get(part)).__name__ == name:
                    return cls
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def get_attribute(name: str) -> object:
        value = lookup(name)
        setattr(sys.modules[package], name, value)
        return value

    def list_attributes() -> list[str]:
        public = {name for name in vars(sys.modules[package]) if not name.startswith("_")} - {"exports"}
        return sorted(public | set(names) | {registry(kind).get(part).__name__ for kind, part, _ in parts()})

    return get_attribute, list_attributes
