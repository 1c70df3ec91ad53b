"""Tables and files: read, write, formats, and what a file says about its columns."""

from sfumato.data.atomic import replacing, replacing_folder, sha256, write_secret
from sfumato.data.format import Format
from sfumato.data.missing import blank_missing
from sfumato.data.preview import Preview, preview
from sfumato.data.read_write import read, to_native, write
from sfumato.data.scan import FileScan, SizeHint, scan, size_hint
from sfumato.data.table import ColumnLabels, Table
from sfumato.registry import exports

__all__ = [
    "ColumnLabels",
    "FileScan",
    "Format",
    "Preview",
    "SizeHint",
    "Table",
    "blank_missing",
    "preview",
    "read",
    "replacing",
    "replacing_folder",
    "scan",
    "sha256",
    "size_hint",
    "to_native",
    "write",
    "write_secret",
]

__getattr__, __dir__ = exports(__name__)
