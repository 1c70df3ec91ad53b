"""Questions to several parties, as they are sent to each."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass

from sfumato.errors import QueryRefused
from sfumato.query.options import FIT_SHARE
from sfumato.rationals import Number, rational

_LONGEST = 100_000


@dataclass(frozen=True, kw_only=True)
class PartiesQuestion:
    """A query with its cost, for all parties of an agreement."""

    agreement: str
    """Hash of the parties file."""
    sql: str
    epsilon: str
    """A rational number as text; everybody computes with the same one."""
    delta: str = "0"
    """Above 0 for private keys."""
    rows: int | None = None
    groups: int | None = None
    fit: str = str(FIT_SHARE)
    """Share of epsilon that measures whom the limits cut."""
    nonce: str
    """Random, so that no two questions are the same."""

    @classmethod
    def new(
        cls,
        sql: str,
        *,
        agreement: str,
        epsilon: str,
        delta: Number = 0,
        rows: int | None = None,
        groups: int | None = None,
        fit: Number = FIT_SHARE,
    ) -> PartiesQuestion:
        return cls(
            agreement=agreement, sql=sql, epsilon=str(rational(epsilon)), delta=str(rational(delta)), rows=rows,
            groups=groups, fit=str(rational(fit)), nonce=os.urandom(16).hex(),
        )  # fmt: skip

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @classmethod
    def from_dict(cls, document: object) -> PartiesQuestion:
        """A question as it was received; anything malformed is refused."""
        texts, limits = ("agreement", "sql", "epsilon", "delta", "fit", "nonce"), ("rows", "groups")
        if isinstance(document, dict) and set(document) == {*texts, *limits}:
            right = all(isinstance(document[name], str) and len(document[name]) <= _LONGEST for name in texts)
            whole = all(document[name] is None or type(document[name]) is int for name in limits)
            short = all(len(str(document[name])) <= 1000 for name in ("epsilon", "delta", "fit"))
            if right and whole and short and len(document["nonce"]) == 32:
                return cls(**document)
        raise QueryRefused("The question is not well-formed.", fix="Use the same version of sfumato everywhere.")
