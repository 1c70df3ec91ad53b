"""The parties file: what all parties agree on and everybody may know.

.. code-block:: yaml

    sfumato: 1
    federation: hospitals          # the name that every party keeps its budget under
    parties_per_person: 1          # in how many parties' tables one person may be
    colluding: 1                   # how many parties may share what they know with the analyst
    min_parties: 2                 # nothing is answered with fewer parties; all of them if left out
    dropouts: 0                    # how many parties may stop in the middle without ending the question
    parties:
      north: {address: "https://north.example:8441", key: 5f0c...}
      south: {address: "https://south.example:8441", key: 9b1e...}
    person: person                 # the column that identifies a person, or `row`
    tables:
      visits:
        bounds: {rows: 3, groups: 2}
        columns:
          person: {kind: integer}
          ward:   {kind: category, domain: {values: [east, west]}}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from sfumato.data.source import Source
from sfumato.data.yaml_documents import load_document
from sfumato.dataset.document import Dataset, PublicSource, TableDeclaration
from sfumato.field_docs import DocumentedModel
from sfumato.parties.residues import MOST_PARTIES
from sfumato.query.plan.catalog import Catalog

_STRICT = ConfigDict(frozen=True, extra="forbid")
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]


class PartyAddress(DocumentedModel):
    """One party."""

    model_config = _STRICT

    address: Annotated[str, Field(pattern=r"^https://[^\s/?#@]+$")]
    """Where `sfumato party serve` listens: https://host:port."""
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Public Ed25519 key of the party, as `sfumato party keys` prints it."""


class SharedTable(TableDeclaration):
    """A table that every party has, with the same columns. Where its data is, each party knows for itself."""

    data: Source = Source(location="")
    """Left out."""

    @field_validator("data", mode="before")
    @classmethod
    def _left_out(cls, value: object) -> object:
        if not isinstance(value, Source):
            raise ValueError("each party says in its own file where its data is")
        return value


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Which parties of a round may be missing from an answer, and what that means for its noise."""

    parties: int
    colluding: int
    threshold: int
    """Shares that open a mask: 2·threshold > parties + colluding."""
    most: int
    """Parties that could stop at most."""
    agreed: int

    @property
    def dropouts(self) -> int:
        """Parties that may stop in this round; with 0 no shares of masks are made."""
        return min(self.most, self.agreed)

    @property
    def noise_shares(self) -> int:
        """How many parties' shares make up the noise of a central curator."""
        return self.parties - self.colluding - self.dropouts


class Agreement(DocumentedModel):
    """The whole file. Its parameters of privacy have no default."""

    model_config = _STRICT

    sfumato: Literal[1]
    """Version of the file's language."""
    federation: Annotated[str, Field(min_length=1)]
    """The name that every party keeps its budget under."""
    parties_per_person: Annotated[int, Field(ge=1)]
    """In how many parties' tables one person may be. With k, each party's part of the loss is epsilon / k."""
    colluding: Annotated[int, Field(ge=0)]
    """How many parties may share what they know with the analyst. 0 protects from an analyst who is no party; 1 also
    from every single party, which knows its own share of the noise."""
    min_parties: Annotated[int, Field(ge=2)] | None = None
    """Nothing is answered with fewer parties; all of them if left out."""
    dropouts: Annotated[int, Field(ge=0)] = 0
    """How many parties may stop in the middle of a question without ending it. The others' shares of the noise are made
    large enough to do without theirs."""
    parties: Annotated[dict[_Name, PartyAddress], Field(min_length=2, max_length=MOST_PARTIES)]
    """The parties by name."""
    person: str
    """Whose privacy: ``row``, the column that identifies a person, or the table whose rows are people."""
    tables: Annotated[dict[str, SharedTable], Field(min_length=1)]
    """The private tables that every party has."""
    public: dict[str, PublicSource] = {}
    """Public tables; all parties have the same."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        count = len(self.parties)
        if self.fewest > count:
            raise ValueError(f"`min_parties` is {self.fewest}, and there are {count} parties")
        if self.colluding >= self.fewest:
            raise ValueError("`colluding` must be smaller than the number of parties in an answer (`min_parties`)")
        if self.dropouts and self.dropouts > (most := self.tolerance(count).most):
            raise ValueError(
                f"`dropouts` can be {most} at most: {self.fewest} parties must remain (`min_parties`), and "
                f"{self.tolerance(count).threshold} to open the sum of {count} if {self.colluding} collude"
            )
        if self.parties_per_person > count:
            raise ValueError(f"`parties_per_person` is larger than the number of parties, {count}")
        if len({party.key for party in self.parties.values()}) < count:
            raise ValueError("two parties have the same key")
        return self

    @property
    def fewest(self) -> int:
        """The number of parties that an answer needs."""
        return len(self.parties) if self.min_parties is None else self.min_parties

    def tolerance(self, count: int) -> Tolerance:
        """How many of ``count`` parties of a round may stop, and how many shares open a mask."""
        threshold = (count + self.colluding) // 2 + 1
        most = max(0, count - max(self.fewest, threshold))
        return Tolerance(parties=count, colluding=self.colluding, threshold=threshold, most=most, agreed=self.dropouts)

    @property
    def keys(self) -> dict[str, bytes]:
        """The parties' public keys."""
        return {name: bytes.fromhex(party.key) for name, party in self.parties.items()}

    def dataset(self, data: Mapping[str, Source], *, ledger: str | None = None) -> Dataset:
        """The data set of one party's own tables."""
        tables = {
            name: TableDeclaration(**{**dict(table), "data": data.get(name, table.data)})
            for name, table in self.tables.items()
        }
        return Dataset(
            dataset=self.federation, person=self.person, ledger=ledger, tables=tables, public=self.public,
        )  # fmt: skip

    def catalog(self) -> Catalog:
        """What analysts may know."""
        return Catalog.of(self.dataset({}))

    def digest(self, catalog: Catalog) -> str:
        """Hash of everything that the answer depends on; all parties and the analyst must have the same.

        Addresses are left out: not everybody reaches a party by the same name. So are defaults: a field that only a
        later version knows makes no difference unless it is used.
        """
        places = {"tables": {"__all__": {"data"}}, "public": {"__all__": {"data"}}}
        document = self.model_dump(mode="json", exclude={"parties": True, **places}, exclude_defaults=True)
        document["keys"] = {name: party.key for name, party in self.parties.items()}
        document["contents"] = {name: table.frame.write_csv() for name, table in catalog.public.items()}
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()

    @classmethod
    def load(cls, path: Path) -> Agreement:
        """Read and check the file; every problem is told with its line."""
        return load_document(cls, path, kind="parties file", fix="Write one as docs/parties.md shows.")
