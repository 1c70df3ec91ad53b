"""Public folders: the one writer of what leaves, which accepts only values that say why they may leave.

Every value of a public folder is :class:`Leaving` for a reason: it was declared, it is computed from what is released,
or a privacy budget paid for it. Figures that were measured on the original leave, rounded, only beside releases without
a promise of differential privacy. A release with such a promise would break it by them: whether a verdict is listed, a
file is written or a command succeeds must be as likely with one person more or less (Dwork, Roth 2014, definition 2.4,
doi:10.1561/0400000042; post-processing, proposition 2.1, covers what is computed from released values alone).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl

from sfumato.data.atomic import replacing, replacing_folder, sha256
from sfumato.errors import SecretAccessRefused
from sfumato.release.folder import MANIFEST, PRIVATE, private_folder, write_belongs

T = TypeVar("T")


class Why(StrEnum):
    """Why a value may leave."""

    DECLARED = "declared"
    """Written down by the owner, or by sfumato, without a look at the rows."""
    RELEASED = "released"
    """The released data itself, or computed from it alone."""
    PAID = "paid"
    """Noisy, and charged to a privacy budget."""
    MEASURED = "measured"
    """Computed with the original, and rounded. Never beside a promise of differential privacy."""


@dataclass(frozen=True)
class Leaving(Generic[T]):
    """A value with the reason why it may leave."""

    value: T
    why: Why


def declared(value: T) -> Leaving[T]:
    """A value that was fixed without a look at the rows."""
    return Leaving(value, Why.DECLARED)


def released(value: T) -> Leaving[T]:
    """Released data, or a value computed from it alone."""
    return Leaving(value, Why.RELEASED)


def paid(value: T) -> Leaving[T]:
    """A noisy value that a privacy budget was charged for."""
    return Leaving(value, Why.PAID)


def measured(value: T) -> Leaving[T]:
    """A rounded value that was computed with the original."""
    return Leaving(value, Why.MEASURED)


def promised(manifest: Mapping[str, Any]) -> bool:
    """Whether a release promises differential privacy: a step of its manifest says so."""
    return any(step.get("formal_guarantee") for step in manifest.get("steps", ()))


_MANIFEST: Mapping[str, Why] = {
    **dict.fromkeys(("sfumato", "recipe", "columns", "models", "order"), Why.DECLARED),
    **dict.fromkeys(("rows", "reading", "graph", "nodes", "edges"), Why.RELEASED),
    **dict.fromkeys(("unchanged", "steps", "verdicts"), Why.MEASURED),
}
"""Reasons of the keys of a manifest. A key that is not here is refused."""


def leaving_manifest(manifest: Mapping[str, object]) -> dict[str, Leaving[object]]:
    """The manifest of a release with its reasons.

    Steps and verdicts of a release with a promise were made for readers: steps by the mechanism that was paid for,
    verdicts from the released table (:attr:`sfumato.release.Verdict.exact` ones are left out by then).
    """
    reasons = dict(_MANIFEST)
    if promised(manifest):
        reasons |= {"steps": Why.PAID, "verdicts": Why.RELEASED}
    for key in manifest:
        if key not in reasons:
            raise SecretAccessRefused(f"`{key}` of a manifest does not say why it may leave.")
    return {key: Leaving(value, reasons[key]) for key, value in manifest.items()}


@dataclass(frozen=True, kw_only=True)
class PublicFolder:
    """A folder that will be published. Everything in it goes through these methods."""

    path: Path
    promise: bool
    """Whether the release promises differential privacy, so that nothing measured may leave."""

    def text(self, name: str, text: Leaving[str]) -> None:
        """Write a text file."""
        self.place(name, text.why if isinstance(text, Leaving) else text).write_text(
            text.value, encoding="utf-8", newline="\n"
        )

    def table(self, name: str, table: Leaving[pl.DataFrame]) -> None:
        """Write a table as CSV."""
        table.value.write_csv(self.place(name, table.why))

    def json(self, name: str, document: Mapping[str, Leaving[object]]) -> dict[str, object]:
        """Write a JSON document, every key of which has its reason."""
        for key, value in document.items():
            self.allow(f"`{key}` of {name}", value.why if isinstance(value, Leaving) else value)
        plain = {key: value.value for key, value in document.items()}
        text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        (self.path / name).write_text(text, encoding="utf-8")
        return plain

    def place(self, name: str, why: Why) -> Path:
        """Where a file goes that another writer makes, such as the data in the format of its input."""
        self.allow(name, why)
        return self.path / name

    def allow(self, what: str, why: object) -> None:
        """Refuse a value without a reason, and a measured one beside a promise of differential privacy."""
        if not isinstance(why, Why):
            raise SecretAccessRefused(f"{what} does not say why it may leave.")
        if self.promise and why is Why.MEASURED:
            raise SecretAccessRefused(f"{what} was measured on the original of a differentially private release.")

    def manifest(self, document: Mapping[str, Leaving[object]], *, kind: str) -> dict[str, Any]:
        """Write the manifest: the kind of release, and every file with its SHA-256, data first. Call it last."""
        paths = [path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file()]
        names = sorted(paths, key=lambda name: (not name.startswith("data."), "/" in name, name))
        digests = {name: sha256(self.path / name) for name in names if name != MANIFEST}
        return self.json(MANIFEST, {"kind": declared(kind), **document, "files": released(digests)})


@contextmanager
def public_folder(
    path: str | Path, *, promise: bool, force: bool = False, marker: str, record: Callable[[Path], None] | None = None
) -> Iterator[PublicFolder]:
    """A folder to fill, whole or not at all; ``marker`` is a file that it will hold.

    ``record`` registers what leaves (:func:`sfumato.ledger.register.recorder`). It is called when the folder is
    complete and before it takes its place: nothing leaves unregistered.
    """
    with replacing_folder(path, force=force, marker=marker) as folder:
        yield PublicFolder(path=folder, promise=promise)
        if record is not None:
            record(folder)


@contextmanager
def release_folders(
    path: Path, *, promise: bool, force: bool = False, record: Callable[[Path], None] | None = None
) -> Iterator[tuple[PublicFolder, Path]]:
    """The public folder of a release and the private one beside it, both or neither."""
    with ExitStack() as stack:
        private = stack.enter_context(replacing_folder(private_folder(path), force=force, marker=PRIVATE))
        private.chmod(0o700)
        public = stack.enter_context(public_folder(path, promise=promise, force=force, marker=MANIFEST, record=record))
        yield public, private
        write_belongs(public.path, private)


def write_public(path: str | Path, text: Leaving[str], *, promise: bool, force: bool = False) -> None:
    """Write a single public file, whole or not at all."""
    with replacing(path, force=force) as temporary:
        PublicFolder(path=temporary.parent, promise=promise).text(temporary.name, text)
