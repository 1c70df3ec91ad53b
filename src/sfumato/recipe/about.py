"""About a release: why and to whom it is given, on what legal basis, until when, and who answers for it."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import ConfigDict

from sfumato.field_docs import DocumentedModel

INTERNAL = ("prepared_by", "approved_by", "answers")
"""Fields that are not published."""


class AboutRelease(DocumentedModel):
    """The ``about`` section of a recipe. Reports show it and leave empty lines for what is missing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    purpose: str | None = None
    """What the recipient may use the data for. Published."""
    recipient: str | None = None
    """Who receives the data: ``everybody`` for a public file. Published."""
    legal_basis: str | None = None
    """The law, contract or consent that allows the release. Published."""
    terms: str | None = None
    """Licence or terms of use. Published."""
    contact: str | None = None
    """Whom recipients ask. Published."""
    reevaluate: date | None = None
    """The date on which the risk is evaluated again: outside data and attacks change. Published."""
    prepared_by: str | None = None
    """Who prepared the release. In the internal report only."""
    approved_by: str | None = None
    """Who approved the release. In the internal report only."""
    method: Literal["published", "withheld"] = "published"
    """Whether the release names its masking methods with their parameters. Attacks assume that they are known."""
    columns: dict[str, str] = {}
    """The meaning of columns in words, for the codebook: ``{age: age at admission in years}``. Published."""
    answers: dict[str, str] = {}
    """Answers to questions of the compliance crosswalk by their keys. In the internal report only."""

    @property
    def withheld(self) -> bool:
        """Whether the masking method is not published."""
        return self.method == "withheld"

    def to_dict(self) -> dict[str, Any]:
        """The section as plain data, without what is not set."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def public(self) -> dict[str, Any]:
        """What a release says of it: everything but who prepared and approved it, and the answers."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude=set(INTERNAL))
