"""``sfumato.verify``: check certificates with code that shares nothing with the code that made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.data.atomic import path_digest
from sfumato.errors import BadParameter
from sfumato.ledger.register import ReleaseRecord
from sfumato.proof import NotProved, Verification, read_document, verify_certificate
from sfumato.proof.certificate import FORMAT, contradiction
from sfumato.proof.signature import public_key

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger


def verify(
    certificate: str | Path | Mapping[str, object],
    *,
    ledger: Ledger | str | Path | None = None,
    key: str | None = None,
) -> Verification:
    """Derive every bound and loss of a certificate again (:mod:`sfumato.proof`).

    Of several certificates all must hold; the first that does not is the result. What stands beside a certificate in
    its file or folder is not in it: a guarantee in words must agree with it, and with a ledger, a release or a model
    must have the fingerprint that the ledger has of what left.

    Parameters
    ----------
    certificate
        The file, ``answer.certificate``, or what holds one: the JSON of an answer, the folder of a release (tables,
        synthetic data) or a model file.
    ledger
        The ledger that was charged: a file, a ``postgresql://`` address, a data set document that names one, or an
        open ledger. Without it the place in the hash chain is "not checked". A signature must be that of this ledger.
    key
        The public key that must have signed, as ``sfumato ledger key`` prints it. Without it a signature must hold,
        and the result says whose it is.

    Returns
    -------
    Verification
        Whether the certificate proves what it states; if not, the node that fails and the reason. ``not_covered`` are
        the fields that neither a rule nor the ledger nor a signature confirms.

    Examples
    --------
    >>> from sfumato.demos.private_hospital import flu
    >>> answer = flu(people=200, budget=10).ask("SELECT COUNT(*) FROM patients", epsilon=1)
    >>> verify(answer.certificate).holds
    True
    """
    documents = [certificate] if isinstance(certificate, Mapping) else _read(Path(certificate))
    pairs = [pair for document in documents for pair in _certificates(document)]
    found = [one for one, _ in pairs]
    if not found and len(documents) == 1 and isinstance(documents[0], Mapping):
        found = [documents[0]]  # what it lacks is said by the check
    bare = all(one is document for one, document in zip(found, documents, strict=False)) and len(found) == len(
        documents
    )
    if not found:
        raise BadParameter(
            f"`{Path(str(certificate)).name}` holds no certificate.",
            fix="Answers, tables with a budget, synthetic data and models have one (docs/proof.md).",
        )
    entries, own = None, key
    if ledger is not None:
        from sfumato.api.ledger import open_ledger

        book = open_ledger(str(ledger))[0] if isinstance(ledger, str | Path) else ledger
        entries, own = [entry.to_dict() for entry in book.entries()], key or public_key(book.signing_key()).hex()
    checked = [verify_certificate(one, entries, own if "signature" in one else key) for one in found]
    refused = next((one for one in checked if not one.holds), None)
    if refused is not None or bare:
        return refused or checked[0]
    for one, guarantee in pairs:
        wrong = "" if guarantee is None else _contradiction({**guarantee, "certificate": one})
        if wrong:
            return Verification(
                holds=False, node=f"guarantee.{wrong}", reason="does not follow from the certificate beside it"
            )
    if entries is None or isinstance(certificate, Mapping):
        return replace(checked[0], beside="not checked")
    return _registered(Path(certificate), found, entries, checked[0])


def _registered(
    path: Path, certificates: Sequence[Mapping[str, Any]], entries: Sequence[Mapping[str, Any]], found: Verification
) -> Verification:
    """Whether a file or folder is what left, by the fingerprint that the ledger has of it.

    An answer has no record. Where an archive left, its folder cannot be compared with it.
    """
    places = {charge["entry"]["hash"] for one in certificates for charge in one["charges"]}
    charged = {entry["number"] for entry in entries if entry["hash"] in places}
    records = [ReleaseRecord.from_text(str(entry["about"])) for entry in entries if entry["kind"] == "release"]
    own = [record for record in records if charged.intersection(record.charges)]
    if path_digest(path) in {record.sha256 for record in records}:
        return replace(found, beside="holds")
    if any(not record.name.endswith(".zip") for record in own):
        return Verification(holds=False, node=path.name, reason="the ledger has another fingerprint of what left")
    return replace(found, beside="not checked")


def _contradiction(guarantee: Mapping[str, Any]) -> str:
    try:
        return contradiction(guarantee)
    except (ArithmeticError, ValueError, TypeError, KeyError):
        return "epsilon"


def _certificates(
    document: object, beside: Mapping[str, object] | None = None
) -> Iterator[tuple[Mapping[str, object], Mapping[str, object] | None]]:
    """The certificates in a document, each with the guarantee in words that it stands in: the document itself, or those
    that its parts hold."""
    if isinstance(document, Mapping):
        if document.get("certificate") == FORMAT:
            yield document, beside
            return
        guarantee = document if "epsilon" in document and "certificate" in document else None
        for part in document.values():
            yield from _certificates(part, guarantee if part is document.get("certificate") else None)
    elif isinstance(document, list):
        for part in document:
            yield from _certificates(part)


def _read(path: Path) -> list[object]:
    """The JSON documents of a file, or of all files of a folder that are some."""
    if path.is_dir():
        return [document for one in sorted(path.glob("*.json")) for document in _read(one)]
    try:
        return [read_document(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        raise BadParameter(f"There is no file `{path.name}`.") from None
    except NotProved as twice:
        raise BadParameter(
            f"`{path.name}` is refused: `{twice.node}` {twice.reason}.",
            fix="Ask for the file as it was written.",
        ) from None
    except (OSError, ValueError, RecursionError):
        raise BadParameter(
            f"`{path.name}` is not a certificate in JSON.", fix="`sfumato query ... --certificate FILE` writes one."
        ) from None
