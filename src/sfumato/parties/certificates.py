"""Keys and certificates of the parties: reading them for mutual TLS, and making them for trials.

The Ed25519 key of a party is both the key of its TLS certificate and the key that signs its announcements, so that the
parties file names everything that identifies it.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import FileMissing, NotThatFormat
from sfumato.parties.secure_sum import no_cryptography

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def load_identity(path: Path) -> Ed25519PrivateKey:
    """A party's Ed25519 key from its PEM file."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise no_cryptography("A party") from None
    _present(path)
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (TypeError, ValueError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise NotThatFormat(f"{path} is not an Ed25519 key in PEM format.", fix="`sfumato party keys` makes one.")
    return key


def server_context(*, certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """TLS 1.3 for a party; only clients with a certificate of the authority are let in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    return _loaded(context, certificate, key, authority)


def client_context(*, certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    """TLS 1.3 for an analyst; the party must have a certificate of the authority for its address."""
    return _loaded(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key, authority)


def _loaded(context: ssl.SSLContext, certificate: Path, key: Path, authority: Path) -> ssl.SSLContext:
    for path in (certificate, key, authority):
        _present(path)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
    except ssl.SSLError:
        raise NotThatFormat(
            f"{certificate}, {key} and {authority} are not a certificate, its key and an authority in PEM format."
        ) from None
    return context


def _present(path: Path) -> None:
    if not path.is_file():
        raise FileMissing(f"There is no file `{path}`.", fix="`sfumato party keys` makes keys and certificates.")


def make_certificates(
    folder: Path, *, parties: Mapping[str, str], analysts: Sequence[str], days: int = 365
) -> dict[str, str]:
    """Make an authority, a key and certificate per party (name: host) and analyst; return the parties' public keys.

    The key of the authority is not kept, so that nobody can add members later: for trials and small, closed groups.
    Larger groups use the certificates of their own authority.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        raise no_cryptography("Making certificates") from None
    folder.mkdir(parents=True, exist_ok=True)
    moment = datetime.now(UTC)

    def named(name: str) -> Any:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def signed(name: str, public: Any, *extensions: tuple[Any, bool]) -> bytes:
        builder = (
            x509.CertificateBuilder().subject_name(named(name)).issuer_name(named("sfumato parties"))
            .public_key(public).serial_number(x509.random_serial_number())
            .not_valid_before(moment - timedelta(minutes=5)).not_valid_after(moment + timedelta(days=days))
        )  # fmt: skip
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(root, None).public_bytes(serialization.Encoding.PEM)

    root = Ed25519PrivateKey.generate()
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key())
    own = x509.SubjectKeyIdentifier.from_public_key(root.public_key())
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    basic = x509.BasicConstraints(ca=True, path_length=0)
    authority = signed("sfumato parties", root.public_key(), (basic, True), (usage, True), (own, False))
    (folder / "authority.crt").write_bytes(authority)
    public = {}
    purposes = [(name, host, ExtendedKeyUsageOID.SERVER_AUTH) for name, host in parties.items()]
    purposes += [(name, "", ExtendedKeyUsageOID.CLIENT_AUTH) for name in analysts]
    for name, host, purpose in purposes:
        key = Ed25519PrivateKey.generate()
        extensions: list[tuple[object, bool]] = [(x509.ExtendedKeyUsage([purpose]), False), (issuer, False)]
        if host:
            extensions.append((x509.SubjectAlternativeName([_host(host)]), False))
            public[name] = key.public_key().public_bytes_raw().hex()
        (folder / f"{name}.crt").write_bytes(signed(name, key.public_key(), *extensions))
        _write_key(folder / f"{name}.key", key)
    return public


def _host(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: Ed25519PrivateKey) -> None:
    from cryptography.hazmat.primitives import serialization

    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pem)
