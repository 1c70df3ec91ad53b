"""Choice of an engine: the one that is named, or the one that holds the data."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeGuard
from urllib.parse import urlsplit, urlunsplit

from sfumato.engines.engine import Engine
from sfumato.errors import BadParameter
from sfumato.registry import registry
from sfumato.wording import did_you_mean


def is_address(source: object) -> TypeGuard[str]:
    """Whether a source is the address of a table in a database server.

    >>> is_address("postgresql://ana@host/base#visits"), is_address("visits.parquet")
    (True, False)
    """
    return isinstance(source, str) and source.startswith(("postgresql://", "postgres://"))


def without_password(address: str) -> str:
    """An address without its password and options, as it may be stored.

    >>> without_password("postgresql://ana:secret@host/base#visits")
    'postgresql://ana@host/base#visits'
    """
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=""))


def choose_engine(wanted: Engine | str | None, sources: Iterable[object]) -> Engine:
    """The engine for private queries: the one given, the one of that name, or by default PostgreSQL for tables in a
    PostgreSQL server and DuckDB otherwise."""
    if isinstance(wanted, Engine):
        return wanted
    name = wanted or ("postgres" if any(is_address(source) for source in sources) else "duckdb")
    engine = registry("engine").get(name).build({})
    assert isinstance(engine, Engine)
    return engine


def masking_engines() -> tuple[str, ...]:
    """Names of the engines that can mask files, from the source tree and from other distributions.

    An engine of another distribution that cannot be imported is left out; it must not disable the others.
    """
    names: list[str] = []
    for name in registry("engine").names():
        with suppress(ImportError):
            cls = registry("engine").get(name)
            if issubclass(cls, Engine) and cls.writes:
                names.append(name)
    return tuple(names)


def engine_options() -> tuple[str, ...]:
    """Values of the option ``engine`` of ``protect``: by size, in memory, or by an engine that can mask files.

    >>> engine_options()[:2]
    ('auto', 'memory')
    """
    return ("auto", "memory", *masking_engines())


def masking_engine(wanted: Engine | str, *, memory: str, threads: int | None = None) -> Engine:
    """The engine for masking out of core: the one given, or the one of that name within a memory limit."""
    if isinstance(wanted, Engine):
        return wanted
    names = masking_engines()
    if wanted not in names:
        raise BadParameter(f"No engine for large files is called `{wanted}`.", fix=did_you_mean(wanted, names))
    parameters = {"memory": memory, **({"threads": threads} if threads is not None else {})}
    engine = registry("engine").get(wanted).build(parameters)
    assert isinstance(engine, Engine)
    return engine
