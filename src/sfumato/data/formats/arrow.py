"""Apache Arrow IPC files, also known as Feather."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import polars as pl

from sfumato.data.format import Format
from sfumato.data.label_metadata import labels_from_json, labels_to_json
from sfumato.data.table import Table
from sfumato.errors import NotThatFormat


class Arrow(Format):
    """Apache Arrow IPC, file or stream (.arrow, .feather, .ipc): every type exact, labels in the schema's metadata."""

    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather", ".ipc")
    keeps: ClassVar[frozenset[str]] = frozenset({"types", "labels", "value labels", "missing codes"})
    typed: ClassVar[bool] = True
    magic: ClassVar[tuple[bytes, ...]] = (b"ARROW1", b"\xff\xff\xff\xff")

    def read(self, path: Path) -> Table:
        import pyarrow as pa
        from pyarrow import ipc

        try:
            with pa.memory_map(str(path)) as file:
                stream = file.read(4) == b"\xff\xff\xff\xff"
                file.seek(0)
                table = (ipc.open_stream if stream else ipc.open_file)(file).read_all()
                frame = pl.DataFrame(table)
        except (pa.ArrowException, OSError):
            raise NotThatFormat(
                f"{path.name} is a damaged Arrow file.", fix="Export it again.", path=str(path)
            ) from None
        labels = (table.schema.metadata or {}).get(b"sfumato")
        return Table(frame=frame, labels=labels_from_json(labels.decode() if labels else None), origin="arrow-file")

    def write(self, table: Table, path: Path) -> None:
        import pyarrow as pa
        from pyarrow import ipc

        content = table.frame.to_arrow()
        if table.labels:
            content = content.replace_schema_metadata({"sfumato": labels_to_json(table.labels)})
        options = ipc.IpcWriteOptions(compression="zstd")
        with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, content.schema, options=options) as writer:
            writer.write_table(content)
