"""Proof checker: reads the certificate of an answer and derives every bound and loss again, with exact rationals.

It imports nothing else of sfumato. The rules are the numbered theorems of ``docs/proof.md``.
"""

from sfumato.proof.certificate import Verification, read_document, sealed, signed, verify_certificate
from sfumato.proof.losses import NotProved

__all__ = ["NotProved", "Verification", "read_document", "sealed", "signed", "verify_certificate"]
