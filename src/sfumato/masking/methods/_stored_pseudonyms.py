"""Keyed pseudonyms (HMAC-SHA-256) in SQL, equal to those that ``pseudonymize`` makes in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import polars as pl

from sfumato.data.sql_quoting import quoted_text
from sfumato.engines.stored_table import StoredTable
from sfumato.secret import Permit, SecretValue

_BLOCK = 64
"""Block size of SHA-256 in bytes."""


def with_pseudonyms(
    table: StoredTable, scopes: Mapping[str, str], *, digits: int, key: SecretValue[bytes]
) -> StoredTable:
    """Replace columns by the keyed hash of (scope, value), cut to so many hexadecimal digits.

    The key is passed in a table of one row, as HMAC's inner and outer pad, and never stands in a statement.
    """
    secret = key.open(Permit("pseudonymizing a column"))
    secret = (hashlib.sha256(secret).digest() if len(secret) > _BLOCK else secret).ljust(_BLOCK, b"\0")
    padded = np.frombuffer(secret, dtype=np.uint8)
    pads = pl.DataFrame({"inner_pad": [(padded ^ 0x36).tobytes()], "outer_pad": [(padded ^ 0x5C).tobytes()]})
    name = table.put("key", pads)
    expressions = {}
    for column, scope in scopes.items():
        cell = f"t.{table.cells[column]}"
        message = f"ENCODE({quoted_text(scope)} || CHR(0) || CAST({cell} AS VARCHAR))"
        inner = f"UNHEX(SHA256(k.inner_pad || {message}))"
        expressions[column] = (
            f"CASE WHEN {cell} IS NOT NULL THEN SUBSTR(SHA256(k.outer_pad || {inner}), 1, {digits}) END"
        )
    return table.with_expressions(expressions, joins=f"CROSS JOIN {name} AS k")
