"""What ``check``, ``attack`` and ``measure`` accept as release and original, opened in memory or in an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sfumato.api.kinds.microdata.protection import MicrodataProtection
from sfumato.data import Table, read, size_hint
from sfumato.data.atomic import path_digest
from sfumato.data.url import file_and_options, is_url
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.rows import Rows
from sfumato.engines.choice import masking_engine
from sfumato.engines.stored_table import StoredTable
from sfumato.errors import BadParameter
from sfumato.evaluation.check import Subject
from sfumato.progress import SILENT, Progress
from sfumato.release import Lineage, Release
from sfumato.release.folder import load_lineage, released_file


@dataclass(frozen=True, kw_only=True)
class InputTable:
    """A table that may be read whole or opened in an engine."""

    location: Any
    """A file, an address, a frame, a table or a data set."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the format."""

    @property
    def file(self) -> Path | None:
        """The file or folder of files, if it is one."""
        if not isinstance(self.location, str | Path) or is_url(str(self.location)):
            return None
        path = Path(file_and_options(self.location)[0])
        return path if path.exists() else None

    @property
    def is_file(self) -> bool:
        """Whether it is one file."""
        return self.file is not None and self.file.is_file()

    @property
    def digest(self) -> str | None:
        """SHA-256 of the file or the folder of files, if it is one."""
        return None if self.file is None else path_digest(self.file)

    @property
    def fits(self) -> bool:
        """Whether it can be read whole: frames and databases always, files by their size."""
        return not self.is_file or size_hint(self.location).fits

    def table(self) -> Table:
        """The whole table in memory."""
        return self.location.table if isinstance(self.location, Data) else read(self.location, **self.options)

    @contextmanager
    def open(
        self,
        schema: Schema,
        *,
        original: bool,
        engine: str = "memory",
        memory: str = "4GB",
        progress: Progress = SILENT,
    ) -> Iterator[Rows]:
        """The rows with the roles of a schema. Columns of an ``original`` are cast to their declared kinds."""
        if engine == "memory":
            if isinstance(self.location, Data):
                yield self.location
                return
            table = self.table()
            known = {name: column for name, column in schema.columns.items() if name in table.columns}
            yield Data.of(table, replace(schema, columns=known)) if original else Data(table=table, schema=schema)
            return
        backend = masking_engine(engine, memory=memory)
        with (
            backend.keep_open(),
            backend.workspace(self.location, options=self.options, numbered=True, progress=progress) as workspace,
        ):
            yield StoredTable.open(workspace, schema, original=original, whole=False)


@dataclass(frozen=True, kw_only=True)
class Released:
    """A release that was found: its rows, its manifest, and its row map where there is one."""

    source: InputTable
    manifest: Mapping[str, Any]
    lineage: Lineage | None
    original: InputTable | None

    @classmethod
    def find(cls, release: object, *, original: object = None, lineage: Lineage | str | Path | None = None) -> Released:
        """A release folder with its private folder, the result of ``protect``, a release, a file or a frame."""
        if isinstance(release, MicrodataProtection):
            lineage = release.lineage if lineage is None and original is None else lineage
            original = release.original if original is None else original
            release = release.judged_release
        row_map = _row_map(release, lineage)
        truth = None if original is None else InputTable(location=original)
        if isinstance(release, Release):
            source = InputTable(location=release.table)
            return cls(source=source, manifest=release.manifest, lineage=row_map, original=truth)
        location, options, manifest = released_file(release)
        source = InputTable(location=location, options=options)
        return cls(source=source, manifest=manifest, lineage=row_map, original=truth)

    def engine(self, wanted: str) -> str:
        """The engine for both tables: the one wanted, or by size."""
        return chosen_engine(wanted, self.source, *([] if self.original is None else [self.original]))

    @contextmanager
    def opened(self, schema: Schema, *, engine: str, memory: str) -> Iterator[Subject]:
        """Both tables where their rows lie, as checks and attacks see them."""
        with ExitStack() as stack:
            release = stack.enter_context(self.source.open(schema, original=False, engine=engine, memory=memory))
            original = None
            if self.original is not None:
                opened = self.original.open(schema, original=True, engine=engine, memory=memory)
                original = stack.enter_context(opened)
            yield self.subject(release, original, schema)

    def subject(self, release: Rows, original: Rows | None, schema: Schema) -> Subject:
        """Both tables as checks and attacks see them. Rows of a release that does not say so may be in the order of the
        original."""
        return Subject(
            release=release,
            original=original,
            schema=schema,
            steps=self.manifest.get("steps", ()),
            order=str(self.manifest.get("order", "kept")),
            lineage=self.lineage,
            foreign=not self.manifest,
        )

    @property
    def release(self) -> Release:
        """The release in memory."""
        return Release(table=self.source.table(), manifest=dict(self.manifest))

    def truth(self, schema: Schema) -> Data:
        """The original in memory. Every declared column must be there."""
        assert self.original is not None
        known = self.original.location
        return known if isinstance(known, Data) else Data.of(self.original.table(), schema)


def chosen_engine(wanted: str, *sources: InputTable) -> str:
    """``memory`` or the name of an engine. ``auto`` is memory where every table fits, and DuckDB otherwise."""
    if wanted == "auto":
        return "memory" if all(source.fits for source in sources) else "duckdb"
    if wanted != "memory" and any(source.file is None for source in sources):
        raise BadParameter(
            f"The engine `{wanted}` reads files: a frame or an address is read into memory.", fix="Leave `engine` out."
        )
    return wanted


def open_release(
    release: object,
    *,
    original: object,
    lineage: Lineage | str | Path | None,
    schema: Schema | None,
    knows: Sequence[str] | None,
    secrets: Sequence[str],
) -> tuple[Released, Schema]:
    """The release with its original, and the roles of the columns."""
    found = Released.find(release, original=original, lineage=lineage)
    if found.original is None:
        raise BadParameter(
            "`original` is required: pass the table the release was made from.",
            fix="attack(release, original=table), or without the original: link(release, outside_file)",
        )
    if isinstance(found.original.location, Data):
        return found, found.original.location.schema
    if schema is None:
        schema = declared_schema(found.manifest, {name: {"role": "quasi"} for name in knows or ()})
        for name in secrets:
            secret = schema.column(name).model_copy(update={"role": Role.SENSITIVE})
            schema = replace(schema, columns={**schema.columns, name: secret})
    return found, schema


def refuse_row_options(options: Mapping[str, object]) -> None:
    """Refuse options of attacks that need the rows of a release which is too large for memory."""
    for name, value in options.items():
        if value:
            raise BadParameter(
                f"`{name}` needs all rows in memory, and they exceed the limit.",
                fix="Raise `memory`, or take a sample.",
                option=name,
            )


def _row_map(release: object, lineage: Lineage | str | Path | None) -> Lineage | None:
    if isinstance(lineage, str | Path):
        loaded = load_lineage(Path(lineage))
        if loaded is None:
            raise BadParameter(f"{lineage} is not a row map.", fix="It is `lineage.parquet` in the private folder.")
        return loaded
    if lineage is None and isinstance(release, str | Path) and Path(release).is_dir():
        return load_lineage(Path(release))
    return lineage


def declared_schema(manifest: Mapping[str, Any], otherwise: Mapping[str, Any] | None = None) -> Schema:
    """The roles and the privacy unit that the manifest of a release names; without them those of ``otherwise``."""
    recipe = manifest.get("recipe", {})
    declared = {**manifest.get("columns", {}), **recipe.get("columns", {})} or dict(otherwise or {})
    columns = {name: Column.model_validate(value) for name, value in declared.items()}
    unit = recipe.get("unit")
    return Schema(columns=columns, unit=None if unit == "row" else unit, person=unit)
