"""Keyed pseudonyms for identifiers."""

from __future__ import annotations

import hmac
import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from pydantic import Field

from sfumato.data import write_secret
from sfumato.data.key_file import load_key, write_key
from sfumato.dataset import Data
from sfumato.errors import BadParameter, OutputExists, WriteFailed
from sfumato.masking.base import Context, Step, StoredChange
from sfumato.params import InputFile
from sfumato.release import Change
from sfumato.secret import Permit, SecretValue

if TYPE_CHECKING:
    from sfumato.engines.stored_table import StoredTable

_KEY_BYTES = 32


class Pseudonymize(Step):
    """Replace identifiers by keyed pseudonyms (HMAC-SHA-256): the same person gets the same pseudonym.

    Preserves which rows belong to one person, within a file and across files with the same key and scope. Protects
    against dictionary attacks on the identifier as long as the key is secret. Does not protect the quasi-identifiers,
    and the frequency of a pseudonym stays visible. The key is stored in a separate file, is generated from
    operating-system randomness if that file does not exist, and is never part of the release.
    """

    report_phrase = "replaced by keyed pseudonyms"
    truthful = True
    simulable = False
    leaves_values = True
    meaningless_values = True
    out_of_core = True
    main = "key"
    examples = ({"key": "pseudonyms.key"},)
    reference = (
        "Krawczyk, Bellare, Canetti (1997), HMAC: Keyed-Hashing for Message Authentication, doi:10.17487/RFC2104"
    )

    key: InputFile
    """File with the secret key; created (readable by its owner only) if it does not exist."""
    columns: tuple[str, ...] | None = None
    """The columns to replace. Default: all identifiers."""
    scope: str | None = None
    """Pseudonyms agree across files and columns with equal scope and key. Default: the column's name."""
    length: Annotated[int, Field(ge=16, le=64)] = 24
    """Hexadecimal digits per pseudonym; 24 digits (96 bits) collide once in 10^14 people."""
    map: InputFile | None = None
    """Also write the table pseudonym → identifier to this file, for authorized re-identification. A file with different
    content is not replaced."""

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        return ((self, self._names(data)),)

    def apply_stored(self, table: StoredTable, context: Context) -> StoredChange:
        if self.map is not None:
            return super().apply_stored(table, context)
        from sfumato.masking.methods._stored_pseudonyms import with_pseudonyms

        names = self._names(table.empty)
        key, created = _load_or_make(self.key)
        scopes = {name: self.scope or name for name in names}
        return StoredChange(
            table=with_pseudonyms(table, scopes, digits=self.length, key=key),
            public={"columns": list(names)},
            private={"key": str(self.key), "key_made": created},
            touched=frozenset(names),
        )

    def _names(self, data: Data) -> tuple[str, ...]:
        names = data.identifiers if self.columns is None else self.columns
        data.table.require(names)
        if not names:
            raise BadParameter("pseudonymize: no column has the role identifier.", fix="Name the columns, or drop it.")
        return names

    def apply(self, data: Data, context: Context) -> Change:
        names = self._names(data)
        key, created = _load_or_make(self.key)
        replaced: list[pl.Series] = []
        back: dict[str, dict[str, str]] = {}
        for name in names:
            series = data.table.column(name)
            distinct = series.drop_nulls().unique(maintain_order=True)
            texts = distinct.cast(pl.String).to_list()
            pseudonyms = self._pseudonyms(texts, name, key)
            replaced.append(series.replace_strict(distinct, pseudonyms, default=None, return_dtype=pl.String))
            back[name] = dict(zip(pseudonyms, texts, strict=True))
        if self.map is not None:
            _keep(self.map, json.dumps(back, ensure_ascii=False).encode())
        return Change(
            table=data.table.with_frame(data.table.frame.with_columns(replaced)),
            public={"columns": list(names)},
            private={"key": str(self.key), "key_made": created},
            touched=frozenset(names),
        )

    def _pseudonyms(self, texts: list[str], column: str, key: SecretValue[bytes]) -> list[str]:
        secret = key.open(Permit("pseudonymizing a column"))
        prefix = (self.scope or column).encode() + b"\x00"
        return [hmac.digest(secret, prefix + text.encode(), "sha256").hex()[: self.length] for text in texts]

    def public(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude={"key", "map"}, exclude_none=True)


def _load_or_make(path: Path) -> tuple[SecretValue[bytes], bool]:
    if path.exists():
        return load_key(path), False
    key = SecretValue(secrets.token_bytes(_KEY_BYTES))
    write_key(path, key)
    return key, True


def _keep(path: Path, content: bytes) -> None:
    """Write a secret to a new file. An existing file with the same content is kept; any other is never replaced."""
    try:
        write_secret(path, content)
    except OutputExists:
        if path.read_bytes() != content:
            raise WriteFailed(f"{path} exists already and is not replaced.", fix="Move it away first.") from None
