"""TLS of the PostgreSQL endpoint, with a certificate of the operator."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

from sfumato.errors import FileMissing


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """A context for TLS 1.2 and newer."""
    for path in (certificate, key):
        if not path.is_file():
            raise FileMissing(f"There is no file `{path}`.", fix="Give the certificate and its key in PEM format.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def end_point_binding(certificate: Path) -> bytes:
    """The channel binding ``tls-server-end-point`` (RFC 5929): the certificate's hash."""
    der = ssl.PEM_cert_to_DER_cert(_first_certificate(certificate.read_text("ascii")))
    try:
        from cryptography import x509

        algorithm = x509.load_der_x509_certificate(der).signature_hash_algorithm
        name = "sha256" if algorithm is None or algorithm.name in ("md5", "sha1") else algorithm.name
    except ImportError:
        name = "sha256"
    return hashlib.new(name, der).digest()


def _first_certificate(text: str) -> str:
    begin, end = text.index("-----BEGIN CERTIFICATE-----"), "-----END CERTIFICATE-----"
    return text[begin : text.index(end) + len(end)] + "\n"
