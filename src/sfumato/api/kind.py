"""Kind of release: microdata, graphs, tables, models. One package per kind; verbs find it by plan, folder or file.

``protect``, ``check``, ``attack``, ``measure`` and ``report`` ask which kind a plan or a release is of, and call the
method of that kind. The keyword parameters of the method are the options that apply: every other option is refused,
never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from sfumato.data.url import is_url
from sfumato.data.yaml_documents import document_in, document_of, file_of
from sfumato.dataset.document import PlanReader
from sfumato.errors import BadParameter, SfumatoError
from sfumato.registry import registry
from sfumato.release.folder import MICRODATA, manifest_kind

if TYPE_CHECKING:
    from sfumato.api.protection import Protection
    from sfumato.api.results import AttackResults, CheckResults, MeasureResults

T = TypeVar("T")


class ReportPage(Protocol):
    """A report for one audience: one offline HTML page, and the same figures as JSON."""

    @property
    def html(self) -> str:
        """The page."""
        ...

    @property
    def json(self) -> str:
        """The same as one JSON document."""
        ...

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page, whole or not at all."""
        ...


class ReleaseKind(PlanReader):
    """A kind of release: how its plan is run, and how the release is checked, attacked, measured and reported."""

    suffix = "Kind"
    examples = ({},)

    files: ClassVar[tuple[str, ...]] = ()
    """Endings of single files that are releases of this kind, such as a stored model."""

    elsewhere: ClassVar[str] = ""
    """What to use for a verb that this kind has not, as a sentence."""

    links: ClassVar[bool] = False
    """Whether an outside file can be linked to a release of this kind without its original."""

    def is_plan(self, document: Mapping[str, object]) -> bool:
        """Whether a document, read from YAML or JSON, is a plan of this kind. Its top-level keys decide."""
        return False

    @property
    def protect(self) -> Callable[..., Protection]:
        """``protect(plan, **options)`` runs a plan. Nothing is written until ``save`` of the result."""
        raise self._refusal("be made by `protect`")

    @property
    def check(self) -> Callable[..., CheckResults]:
        """``check(release, **options)`` verifies what a release promises, independently of the code that made it."""
        raise self._refusal("be checked")

    @property
    def attack(self) -> Callable[..., AttackResults]:
        """``attack(release, **options)`` attacks a release, or what a plan describes."""
        raise self._refusal("be attacked")

    @property
    def measure(self) -> Callable[..., MeasureResults]:
        """``measure(release, **options)`` measures disclosure risk and utility of a release."""
        raise self._refusal("be measured")

    @property
    def report(self) -> Callable[..., ReportPage]:
        """``report(folder, audience=...)`` is the report of a release, from the private folder beside it."""
        raise self._refusal("be reported on")

    def _refusal(self, what: str) -> BadParameter:
        verbs = [f"`{name}`" for name in _VERBS if name in vars(type(self))]
        return BadParameter(
            f"A release of kind `{self.part_name()}` cannot {what}.",
            fix=f"Verbs of this kind: {', '.join(verbs) or 'none'}. {self.elsewhere}".strip(),
        )


_VERBS = ("protect", "check", "attack", "measure", "report")


def kind_named(name: str) -> ReleaseKind:
    """The kind of that name."""
    kind = registry("release-kind").get(name).build()
    assert isinstance(kind, ReleaseKind)
    return kind


def kind_of_plan(plan: object) -> ReleaseKind:
    """The kind of a plan: a file, YAML text, a mapping, or a plan that was loaded before, which names its kind.

    A plan that no kind recognizes is a recipe for microdata, whose reader says what is wrong with it.
    """
    named = getattr(plan, "release_kind", None)
    if isinstance(named, str):
        return kind_named(named)
    document = plain_plan(plan)
    kinds = [kind_named(name) for name in registry("release-kind").names()]
    found = [kind for kind in kinds if document is not None and kind.is_plan(document)]
    if len(found) > 1:
        names = " and ".join(f"`{kind.part_name()}`" for kind in found)
        raise BadParameter(f"The plan has keys of the kinds {names}.", fix="Write one plan for each kind of release.")
    return found[0] if found else kind_named(MICRODATA)


def kind_of_release(release: object) -> ReleaseKind:
    """The kind of a release: that of its manifest, of the ending of a file, or of a plan; a table is microdata."""
    named = getattr(release, "release_kind", None)
    if isinstance(named, str):
        return kind_named(named)
    if isinstance(release, str | Path) and not is_url(str(release)):
        path = Path(release)
        if path.is_dir():
            return kind_named(manifest_kind(path) or MICRODATA)
        if path.suffix.lower() in _PLANS:
            kind = kind_of_plan(path)
            if kind.part_name() == MICRODATA:
                raise BadParameter(
                    f"{path} is a recipe and no release.",
                    fix=f"`sfumato protect {path}` makes the release: name its folder.",
                )
            return kind
        for name in registry("release-kind").names():
            kind = kind_named(name)
            if path.name.lower().endswith(kind.files):
                return kind
    return kind_of_plan(release) if isinstance(release, Mapping) else kind_named(MICRODATA)


_PLANS = (".yaml", ".yml")


def plain_plan(plan: object) -> Mapping[str, object] | None:
    """A plan as plain data; None if it cannot be read as a mapping, so that the reader of its kind says why."""
    if isinstance(plan, Mapping):
        return plan
    if not isinstance(plan, str | Path):
        return None
    try:
        file = file_of(plan)
        document = document_of(plan, source="plan") if file is None else document_in(file, kind="plan", fix="")
    except SfumatoError:
        return None
    return document.value if isinstance(document.value, dict) else None


def given(function: Callable[..., object], values: Mapping[str, object]) -> dict[str, object]:
    """The options of a call that differ from the defaults of ``function``; one name for a list is a list of one."""
    plain = (int, float, str, bool, tuple, type(None))

    def listed(name: str, kind: str) -> object:
        return [values[name]] if isinstance(values[name], str) and kind.startswith("Sequence[") else values[name]

    return {
        name: listed(name, str(parameter.annotation))
        for name, parameter in signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
        and values[name] is not parameter.default
        and not (isinstance(values[name], plain) and values[name] == parameter.default)
    }


def call(function: Callable[..., T], *source: object, what: str, options: Mapping[str, object]) -> T:
    """Call a function with options; refuse those that it does not have, instead of ignoring them."""
    accepted = signature(function).parameters
    for name in options:
        if name not in accepted:
            named = [key for key, one in accepted.items() if one.kind is one.KEYWORD_ONLY and key not in _QUIET]
            raise BadParameter(
                f"`{name}` does not apply to {what}.", fix=f"Options: {', '.join(named) or 'none'}.", option=name
            )
    return function(*source, **options)


def accepts(function: Callable[..., object], option: str) -> bool:
    """Whether an option applies to a verb of a kind."""
    return option in signature(function).parameters


_QUIET = ("progress", "clock", "workspace")
