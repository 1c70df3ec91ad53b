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
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field

from sfumato.data.source import Source
from sfumato.data.yaml_documents import load_document
from sfumato.dataset.document import Answering
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
    data: Annotated[dict[str, Source], Field(min_length=1)]
    """Source of each table: a file with its dialect, or a postgresql:// address."""
    ledger: Location
    """SQLite file or postgresql:// address."""
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
        missing = sorted(set(agreement.tables) ^ set(self.data))
        if missing:
            raise BadParameter(f"`data` must name the tables of the parties file; see `{missing[0]}`.")
        answering = Answering(min_epsilon=self.min_epsilon)
        dataset = agreement.dataset(self.data, ledger=self.ledger).model_copy(update={"answering": answering})
        session = open_session(dataset, analyst="-", engine=self.engine)
        identity = load_identity(self.key)
        return Party(
            name=self.party,
            agreement=agreement,
            session=session,
            identity=identity,
            response_interval=self.response_interval,
        )

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
