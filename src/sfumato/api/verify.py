"""``sfumato.verify``: check certificates with code that shares nothing with the code that made them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import BadParameter
from sfumato.proof import Verification, verify_certificate
from sfumato.proof.certificate import FORMAT

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger


def verify(
    certificate: str | Path | Mapping[str, object],
    *,
    ledger: Ledger | str | Path | None = None,
    key: str | None = None,
) -> Verification:
    """Derive every bound and loss of a certificate again (:mod:`sfumato.proof`).

    Of several certificates all must hold; the first that does not is the result.

    Parameters
    ----------
    certificate
        The file, ``answer.certificate``, or what holds one: the JSON of an answer, the folder of a release (tables,
        synthetic data) or a model file.
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
    documents = [certificate] if isinstance(certificate, Mapping) else _read(Path(certificate))
    found = [one for document in documents for one in _certificates(document)]
    if not found and len(documents) == 1 and isinstance(documents[0], Mapping):
        found = [documents[0]]  # what it lacks is said by the check
    if not found:
        raise BadParameter(
            f"`{Path(str(certificate)).name}` holds no certificate.",
            fix="Answers, tables with a budget, synthetic data and models have one (docs/proof.md).",
        )
    entries = None
    if ledger is not None:
        from sfumato.api.ledger import open_ledger

        book = open_ledger(str(ledger))[0] if isinstance(ledger, str | Path) else ledger
        entries = [entry.to_dict() for entry in book.entries()]
    checked = [verify_certificate(one, entries, key) for one in found]
    return next((one for one in checked if not one.holds), checked[0])


def _certificates(document: object) -> Iterator[Mapping[str, object]]:
    """The certificates in a document: the document itself, or those that its parts hold."""
    if isinstance(document, Mapping):
        if document.get("certificate") == FORMAT:
            yield document
            return
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            yield from _certificates(part)


def _read(path: Path) -> list[object]:
    """The JSON documents of a file, or of all files of a folder that are some."""
    if path.is_dir():
        return [document for one in sorted(path.glob("*.json")) for document in _read(one)]
    try:
        return [json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        raise BadParameter(f"There is no file `{path.name}`.") from None
    except (OSError, ValueError, RecursionError):
        raise BadParameter(
            f"`{path.name}` is not a certificate in JSON.", fix="`sfumato query ... --certificate FILE` writes one."
        ) from None
