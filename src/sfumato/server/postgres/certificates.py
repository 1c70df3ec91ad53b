"""TLS of the PostgreSQL endpoint: a certificate of the operator, or a self-signed one for trying things out."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sfumato.errors import FileMissing
from sfumato.extras import missing_extra


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


def self_signed(folder: Path, *, host: str = "localhost", days: int = 30) -> tuple[Path, Path]:
    """Make a certificate that nobody vouches for, and its key, in a folder; for demonstrations and tests."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise missing_extra("server", "cryptography", needed_by="A self-signed certificate") from None

    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    moment = datetime.now(UTC)
    alternatives = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(secret.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(moment - timedelta(minutes=5))
        .not_valid_after(moment + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(secret, hashes.SHA256())
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / "server.crt", folder / "server.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(
            secret.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    return certificate, key
