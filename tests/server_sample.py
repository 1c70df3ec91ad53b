"""A small registered hospital with accounts, for the tests of the server."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from sfumato.dp.loss import pure
from sfumato.server.roles import AccountRole, Principal, Scope
from sfumato.server.service import QueryService

METADATA = """sfumato: 1
dataset: hospital
ledger: unused.db
person: row
tables:
  patients:
    data: patients.csv
    columns:
      ward: {kind: category, domain: {values: [east, west]}}
      age: {kind: integer, domain: {low: 0, high: 99}}
"""
COUNT = "SELECT COUNT(*) AS n FROM patients"
REASON = "trial"


def write_hospital(folder: Path, *, dataset: str = "hospital", people: int = 400) -> Path:
    """Write 400 patients and their metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame({"ward": ["east", "west"] * (people // 2), "age": [i % 90 for i in range(people)]})
    frame.write_csv(folder / "patients.csv")
    path = folder / f"{dataset}.yaml"
    path.write_text(METADATA.replace("dataset: hospital", f"dataset: {dataset}"))
    return path


def analyst(service: QueryService, name: str, *, epsilon: object = 1, dataset: str = "hospital") -> Principal:
    """A new analyst with a grant and a cap on a data set."""
    service.users.add(name, roles=[AccountRole.ANALYST], by="test")
    service.registered.set_grant(dataset, name, True, by="test")
    service.budgets.set_cap(pure(epsilon), dataset=dataset, holder=name, by="test", why=REASON)  # type: ignore[arg-type]
    return service.users.get(name).principal()


def staff(service: QueryService, name: str, *roles: AccountRole) -> Principal:
    """A new user with other roles."""
    service.users.add(name, roles=roles, by="test")
    return service.users.get(name).principal()


def token(service: QueryService, name: str, scopes: Iterable[Scope] = tuple(Scope)) -> str:
    """The secret of a new token."""
    return service.tokens.create(name, scopes=scopes, days=1).secret


def hospital_service(folder: Path, *, epsilon: object = 10, where: str | Path | None = None) -> QueryService:
    """A service with the hospital registered and a budget for it."""
    service = QueryService.open(where or folder / "state")
    service.registered.register_file(write_hospital(folder / "data"), by="owner")
    service.budgets.set_cap(pure(epsilon), dataset="hospital", holder="", by="owner", why=REASON)  # type: ignore[arg-type]
    return service


def self_signed(folder: Path, *, host: str = "localhost", days: int = 30) -> tuple[Path, Path]:
    """Make a certificate that nobody vouches for, and its key, in a folder."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

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
