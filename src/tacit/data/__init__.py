"""Tables and files: read, write, formats, and what a file says about its columns."""

from tacit.data.atomic import replacing, replacing_folder, sha256, write_secret
from tacit.data.format import Format
from tacit.data.glimpse import Glimpse, glimpse
from tacit.data.missing import blank_missing
from tacit.data.scanning import Scan, SizeHint, scan, size_hint
from tacit.data.sources import give_back, read, write
from tacit.data.table import ColumnLabels, Table

__all__ = [
    "ColumnLabels",
    "Format",
    "Glimpse",
    "Scan",
    "SizeHint",
    "Table",
    "blank_missing",
    "give_back",
    "glimpse",
    "read",
    "replacing",
    "replacing_folder",
    "scan",
    "sha256",
    "size_hint",
    "write",
    "write_secret",
]
