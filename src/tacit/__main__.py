"""``python -m tacit``."""

from tacit.cli import entry

entry()
