"""``sfumato.verify``: check the certificate of an answer with code that shares nothing with the code that made it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import BadParameter
from sfumato.proof import Verification, verify_certificate

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger


def verify(
    certificate: str | Path | Mapping[str, object],
    *,
    ledger: Ledger | str | Path | None = None,
    key: str | None = None,
) -> Verification:
    """Derive every bound and loss of a certificate again (:mod:`sfumato.proof`).

    Parameters
    ----------
    certificate
        The file, or ``answer.certificate``.
    ledger
        The ledger that was charged: a file, a ``postgresql://`` address, a data set document that names one, or an
        open ledger. Without it the place in the hash chain is "not checked".
    key
        The public key that must have signed, as ``sfumato ledger key`` prints it. Without it a signature must hold,
        and the result says whose it is.

    Returns
    -------
    Verification
        Whether the certificate proves what it states; if not, the node that fails and the reason.

    Examples
    --------
    >>> from sfumato.demos.private_hospital import flu
    >>> answer = flu(people=200, budget=10).ask("SELECT COUNT(*) FROM patients", epsilon=1)
    >>> verify(answer.certificate).holds
    True
    """
    document = certificate if isinstance(certificate, Mapping) else _read(Path(certificate))
    if ledger is None:
        return verify_certificate(document, key=key)
    from sfumato.api.ledger import open_ledger

    book = open_ledger(str(ledger))[0] if isinstance(ledger, str | Path) else ledger
    return verify_certificate(document, [entry.to_dict() for entry in book.entries()], key)


def _read(path: Path) -> Mapping[str, object]:
    """The certificate in a file: a JSON object, or the JSON of an answer that holds one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadParameter(f"There is no file `{path.name}`.") from None
    except (OSError, ValueError, RecursionError):
        raise BadParameter(
            f"`{path.name}` is not a certificate in JSON.", fix="`sfumato query ... --certificate FILE` writes one."
        ) from None
    if isinstance(document, Mapping) and isinstance(document.get("certificate"), Mapping):
        document = document["certificate"]
    if not isinstance(document, Mapping):
        raise BadParameter(f"`{path.name}` is not a certificate.", fix="A certificate is a JSON object.")
    return document
