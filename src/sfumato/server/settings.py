"""Settings of a server: command line, then environment variables, then ``server.yaml``, then defaults.

A setting ``port`` is the key ``port`` of the file and the environment variable ``SFUMATO_SERVER_PORT``; a setting of
a section, ``oidc.issuer``, is ``SFUMATO_SERVER_OIDC_ISSUER``. Lists are written with commas.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, SecretStr, field_validator

from sfumato.data.yaml_documents import YamlDocument, document_in, validated
from sfumato.field_docs import DocumentedModel

PREFIX = "SFUMATO_SERVER_"


class _Section(DocumentedModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OidcSettings(_Section):
    """Sign-in at an OpenID Connect provider."""

    issuer: str
    """Address of the provider; ``/.well-known/openid-configuration`` below it is read."""
    client_id: str
    """Identifier of this server at the provider."""
    client_secret: SecretStr
    """Secret of this server at the provider."""
    user_claim: str = "preferred_username"
    """Claim of the identity token that has the user name. The user must exist on this server."""


class ServerSettings(_Section):
    """All settings of ``sfumato serve``."""

    state: str = "sfumato-state"
    """Folder of the state, or a postgresql:// address."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8642
    """Port of the web address; 0 for any free one."""
    postgres_port: Annotated[int, Field(ge=-1, le=65535)] = 5642
    """Port of the PostgreSQL endpoint; 0 for any free one, -1 for none."""
    names: tuple[str, ...] = ()
    """Host names, with port, under which clients reach the server, beside the local ones."""
    certificate: Path | None = None
    """TLS certificate (PEM). Needed to listen beyond this machine, unless a proxy ends TLS."""
    key: Path | None = None
    """Key of the certificate (PEM)."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies, whose ``X-Forwarded-For`` says where a request comes from."""
    behind_proxy: bool = False
    """Whether a reverse proxy on this machine ends TLS. Cookies are then sent over HTTPS only."""
    data: Path | None = None
    """Folder below which owners may register files by request. Without it, nothing can be registered by request."""
    response_interval: Annotated[float, Field(ge=0)] = 0
    """Answers and refusals come at multiples of so many seconds, which hides how long a run took."""
    workers: Annotated[int, Field(ge=1, le=256)] = 8
    """Questions that run at the same time."""
    engine: str | None = None
    """Engine of all data sets; chosen by the location of the data if left out."""
    most_body: Annotated[int, Field(ge=1000)] = 1_000_000
    """Bytes of one request."""
    request_seconds: Annotated[float, Field(gt=0)] = 20
    """Seconds in which a client must have sent its request."""
    request_limit: str = "600/minute"
    """Requests of one person, on both endpoints together; over PostgreSQL, questions and explanations."""
    compute_seconds: Annotated[float, Field(gt=0)] = 20
    """Seconds of computing in a minute that one person may take, for planning above all."""
    sign_in_limit: str = "30/minute"
    """Attempts to sign in from one address."""
    failures: Annotated[int, Field(ge=1)] = 5
    """Failed attempts after which a name is locked."""
    lock_minutes: Annotated[float, Field(gt=0)] = 15
    """How long a name is locked."""
    witness: str | None = None
    """File or postgresql:// address, outside of the state and its backups, with a copy of the ledger's entries."""
    oidc: OidcSettings | None = None
    """Sign-in at an OpenID Connect provider."""

    @field_validator("names", "proxies", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("proxies")
    @classmethod
    def _check_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            ip_network(one)
        return value

    def is_proxy(self, address: str) -> bool:
        """Whether an address is that of a declared proxy; one on this machine is, behind a proxy."""
        try:
            known = ip_address(address)
        except ValueError:
            return False
        return (self.behind_proxy and known.is_loopback) or any(known in ip_network(one) for one in self.proxies)

    @property
    def secure(self) -> bool:
        """Whether clients use HTTPS."""
        return self.certificate is not None or self.behind_proxy

    @property
    def local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @property
    def reached(self) -> str:
        """The host by which this machine reaches the server: where it listens on all addresses, the loopback."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"[{host}]" if ":" in host else host


def load_settings(
    path: Path | None, *, given: Mapping[str, object], environment: Mapping[str, str] | None = None
) -> ServerSettings:
    """The settings from a file, the environment and the command line, the latter first."""
    document = YamlDocument(value={}, source="settings")
    if path is not None:
        document = document_in(path, kind="settings file", fix="`docs/server-operations.md` lists the settings.")
    stated = _merged(dict(document.value or {}), _from_environment(os.environ if environment is None else environment))
    stated |= {name: value for name, value in given.items() if value is not None}
    return validated(ServerSettings, replace(document, value=stated))


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in ServerSettings.model_fields:
        value = environment.get(PREFIX + name.upper())
        if value is not None and name != "oidc":
            found[name] = value
    section = {
        name: environment[key]
        for name in OidcSettings.model_fields
        if (key := f"{PREFIX}OIDC_{name.upper()}") in environment
    }
    return found | ({"oidc": section} if section else {})


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    sections = {
        name: {**below[name], **value}
        for name, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(name), dict)
    }
    return {**below, **above, **sections}
