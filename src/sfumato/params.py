"""Parts and their parameters: declared once, used for validation, messages, CLI, forms, docs and tests.

A part (method, model, attack, measure, format, hierarchy, ...) is a frozen, keyword-only pydantic model. Its docstring
is its manual, the docstring under each field explains that parameter, and the field's constraints are the only place
where its allowed values are written down.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.wording import did_you_mean

FORM = "form-"
"""Before the tag of one form of a field that has several. Pydantic puts tags among the keys of an error."""


def part_name(class_name: str) -> str:
    """The name of a part everywhere outside Python.

    >>> part_name("KAnonymity"), part_name("RankSwap"), part_name("Pram")
    ('k-anonymity', 'rank-swap', 'pram')
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "-", class_name).lower()


def first_sentence(text: str) -> str:
    """The first paragraph of a docstring in one line."""
    return " ".join(text.strip().split("\n\n")[0].split())


def located(value: object, info: ValidationInfo) -> object:
    """A file name relative to the folder of its document (``base`` in the context), a URL, ``-`` or ``:memory:`` as it
    is. The only place that knows where the files of a document are."""
    base = (info.context or {}).get("base")
    if base is None or not isinstance(value, str | Path) or str(value) in ("", "-", ":memory:") or "://" in str(value):
        return value
    return str(Path(base, value))


InputFile = Annotated[Path, BeforeValidator(located)]
"""A file named in a document: relative to the document's own folder."""
Location = Annotated[str, BeforeValidator(located)]
"""A file as :data:`InputFile`, or the URL of a database, as text."""


Protection = Literal["data-driven", "computation-driven", "result-driven"]


class Part(DocumentedModel):
    """Base of everything that a registry finds. One subclass, one file, one name."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    main: ClassVar[str | None] = None
    """The field that a bare value sets: ``k-anonymity: 5`` is ``k-anonymity: {k: 5}``."""

    examples: ClassVar[tuple[dict[str, Any], ...]] = ({},)
    """Parameter sets that work; the docs show them and the contract tests run them."""

    suffix: ClassVar[str] = ""
    """Ending of the class name that is not part of the part's name: ``TableHierarchy`` is ``table`` in a recipe."""

    protection: ClassVar[Protection | None] = None
    """What is known of the use when people are protected: nothing (the data is masked), the computation (its answer is
    protected), or the results that must not be found. None for parts that do not protect."""

    reference: ClassVar[str] = ""
    """Where the method, model or attack was published, with its DOI."""

    @classmethod
    def part_name(cls) -> str:
        """This part's name in recipes, CLI and docs."""
        return part_name(cls.__name__.removesuffix(cls.suffix))

    @classmethod
    def summary(cls) -> str:
        """First sentence of the docstring."""
        return first_sentence(cls.__doc__ or "")

    @model_validator(mode="before")
    @classmethod
    def _bare_value(cls, value: object) -> object:
        if cls.main is not None and not isinstance(value, dict | BaseModel):
            return {} if value is None else {cls.main: value}
        return {} if value is None else value

    @classmethod
    def build(cls, value: object = None, *, base: Path | None = None) -> Self:
        """Validate ``value`` (a mapping, or the bare main value) and make the part; all faults in one error."""
        try:
            return cls.model_validate(value, context={"base": base})
        except ValidationError as failure:
            lines = [
                f"{'.'.join(map(str, key_path(e))) or cls.main}: {plain_message(e, cls)}" for e in failure.errors()
            ]
            raise BadParameter(f"{cls.part_name()}: " + "; ".join(lines), part=cls.part_name()) from None

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain data, ready for YAML or JSON."""
        return self.model_dump(mode="json", exclude_none=True)

    def public(self) -> dict[str, Any]:
        """What of the parameters a release may say. Method and parameters are public by design; places of files are
        not, and a part with secrets of its own says less."""
        places = {name for name in type(self).model_fields if isinstance(getattr(self, name), Path)}
        return self.model_dump(mode="json", exclude_none=True, exclude=places)


def key_path(error: Any) -> tuple[str | int, ...]:
    """The keys that lead to an error in a document, without the validators and forms that pydantic puts among them."""
    return tuple(key for key in error["loc"] if not str(key).startswith(("function-", FORM)))


def plain_message(error: Any, model: type[BaseModel] | None = None) -> str:
    """A pydantic error in plain words, with the nearest field name where one was misspelt."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        if model is None:
            return "unknown field"
        return "unknown field. " + did_you_mean(str(error["loc"][-1]), model.model_fields)
    if kind == "model_type":
        return "must be a mapping"
    if kind == "value_error":
        return str(context.get("error", error["msg"]))
    words: str = error["msg"]
    words = words.replace("Input should be", "must be").replace("a valid ", "a ")
    given = error.get("input")
    if isinstance(given, str | int | float | bool):
        words += f", not {given!r}"
    return words + percent_hint(given)


def percent_hint(given: object) -> str:
    """How a percentage is written as a share, for a message; nothing if none was given.

    >>> percent_hint("5%"), percent_hint("a lot")
    (': write 0.05', '')
    """
    if isinstance(given, str) and given.endswith("%"):
        with suppress(ValueError):
            return f": write {float(given[:-1]) / 100:g}"
    return ""
