"""The party file: where one party keeps its data, its ledger and its key. It stays with the party.

.. code-block:: yaml

    sfumato: 1
    party: north
    parties: parties.yaml          # what all parties agree on
    data: {visits: visits.parquet}
    ledger: ledger.db
    key: keys/north.key
    certificate: keys/north.crt
    authority: keys/authority.crt

An owner who has described the data in a data set document names it (``dataset: hospital.yaml``) instead of ``data`` and
``ledger``: answers of the federation are then charged to the same people as everything else that leaves about them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, model_validator

from sfumato.data.source import Source
from sfumato.data.yaml_documents import load_document
from sfumato.dataset.document import Answering, Dataset
from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.params import InputFile, Location
from sfumato.parties.agreement import Agreement
from sfumato.parties.certificates import load_identity, server_context
from sfumato.parties.party import Party
from sfumato.parties.serve import PartyServer
from sfumato.query.open_session import open_session
from sfumato.wording import did_you_mean


class PartyFile(DocumentedModel):
    """One party's own settings. Paths are relative to the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sfumato: Literal[1]
    """Version of the file's language."""
    party: str
    """Name of this party in the parties file."""
    parties: InputFile
    """The parties file."""
    dataset: InputFile | None = None
    """The data set document that declares the tables, the ledger and how questions are answered. Answers are charged to
    its data set."""
    data: dict[str, Source] = {}
    """Without ``dataset``: source of each table, a file with its dialect, or a postgresql:// address."""
    ledger: Location | None = None
    """Without ``dataset``: SQLite file or postgresql:// address, charged under the name of the federation."""
    key: InputFile
    """Ed25519 key of this party, in PEM format. Nobody else may read it."""
    certificate: InputFile
    """TLS certificate of that key."""
    authority: InputFile
    """Certificate of the authority that vouches for analysts."""
    listen: str | None = None
    """Address to listen on, as host:port; all addresses at the port of the parties file if left out."""
    engine: str | None = None
    """duckdb, postgres or spark. Chosen by the location of the data if left out."""
    response_interval: Annotated[float, Field(gt=0)] | None = None
    """Seconds. Contributions are sent at multiples of it, which hides how long the query took."""

    min_epsilon: Annotated[float, Field(gt=0)] | None = None
    """The smallest epsilon of one question. Without it, questions at almost no cost tell their running time."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.dataset is None and not (self.data and self.ledger):
            raise ValueError("needs `dataset`, or both `data` and `ledger`")
        if self.dataset is not None and (self.data or self.ledger or self.min_epsilon):
            raise ValueError("`data`, `ledger` and `min_epsilon` stand in the document that `dataset` names")
        return self

    @classmethod
    def load(cls, path: Path) -> PartyFile:
        """Read and check the file; every problem is told with its line."""
        return load_document(cls, path, kind="party file", fix="Write one as docs/parties.md shows.")

    def open(self) -> Party:
        """Open the tables, the ledger and the key."""
        agreement = Agreement.load(self.parties)
        if self.party not in agreement.parties:
            raise BadParameter(
                f"the parties file names no party `{self.party}`.", fix=did_you_mean(self.party, agreement.parties)
            )
        own = None if self.dataset is None else Dataset.load(self.dataset)
        shared = self._shared(agreement) if own is None else _shared_of(own, agreement)
        session = open_session(shared, analyst="-", engine=self.engine)
        return Party(
            name=self.party,
            agreement=agreement,
            session=session,
            identity=load_identity(self.key),
            account=None if own is None else (own.dataset, own.privacy_unit),
            response_interval=self.response_interval or shared.answering.response_interval,
        )

    def _shared(self, agreement: Agreement) -> Dataset:
        """The tables of the parties file, with this party's data and ledger."""
        missing = sorted(set(agreement.tables) ^ set(self.data))
        if missing:
            raise BadParameter(f"`data` must name the tables of the parties file; see `{missing[0]}`.")
        answering = Answering(min_epsilon=self.min_epsilon)
        return agreement.dataset(self.data, ledger=self.ledger).model_copy(update={"answering": answering})

    def server(self) -> PartyServer:
        """The HTTPS service of this party, listening."""
        party = self.open()
        context = server_context(certificate=self.certificate, key=self.key, authority=self.authority)
        return PartyServer(self._place(party.agreement), party=party, context=context)

    def _place(self, agreement: Agreement) -> tuple[str, int]:
        try:
            parts = urlsplit(agreement.parties[self.party].address if self.listen is None else f"//{self.listen}")
            port = 443 if parts.port is None else parts.port
        except ValueError:
            raise BadParameter("`listen` is written host:port.") from None
        return (parts.hostname or "0.0.0.0" if self.listen else "0.0.0.0"), port


def _shared_of(own: Dataset, agreement: Agreement) -> Dataset:
    """The tables of the parties file as the owner's document has them: what it does not release is not asked about."""
    if own.answering.policy is not None:
        policy = own.answering.policy.part_name()
        raise BadParameter(f"Parties answer with differential privacy, and `{own.dataset}` under policy `{policy}`.")
    common = agreement.dataset({}, ledger=own.ledger)
    for name, table in common.tables.items():
        if name not in own.tables:
            raise BadParameter(f"`{own.dataset}` has no table `{name}`.", fix=did_you_mean(name, own.tables))
        whose, ours = common.unit(name), own.unit(name)
        if whose != ours:
            raise BadParameter(
                f"In the parties file, {_person(whose)} of `{name}` is a person; in `{own.dataset}`, {_person(ours)}.",
                fix="Budgets add up for the same people only: both documents must say the same.",
            )
        for column, declared in table.columns.items():
            known = own.tables[name].columns.get(column, declared)
            if column != whose and not known.askable:
                raise BadParameter(f"Column `{column}` of `{name}` cannot be asked about: its role is `{known.role}`.")
            if None not in (known.read_kind, declared.read_kind) and known.read_kind is not declared.read_kind:
                raise BadParameter(f"Column `{column}` of `{name}` is of another kind in the parties file.")
    sources = {name: own.tables[name].data for name in common.tables}
    update = {"answering": own.answering, "version": own.version}
    return agreement.dataset(sources, ledger=own.ledger).model_copy(update=update)


def _person(unit: str | None) -> str:
    return "each row" if unit is None else f"each value of `{unit}`"
