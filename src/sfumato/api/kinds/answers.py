"""Answers to queries: a data set that answers SQL under a policy. It is attacked through its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sfumato.api.kind import ReleaseKind
from sfumato.dataset.document import SHORT_KEYS, Dataset

if TYPE_CHECKING:
    from sfumato.api.results import AttackResults


class AnswersKind(ReleaseKind):
    """A data set that answers queries: a document with ``tables`` by name, or one table and ``answering``.

    Answers are no release of their own: `sfumato query` gives them, and the ledger of the data set keeps them.
    """

    elsewhere = "The document is for `sfumato query` and `sfumato serve`."

    def is_plan(self, document: Mapping[str, object]) -> bool:
        described = isinstance(document.get("tables"), Mapping) or "answering" in document
        return described and set(document) <= {*Dataset.model_fields, *SHORT_KEYS}

    @property
    def attack(self) -> Callable[..., AttackResults]:
        from sfumato.api.attack_queries import attack_queries

        return attack_queries
