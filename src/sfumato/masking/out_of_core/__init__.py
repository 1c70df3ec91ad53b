"""Masking of files larger than memory, in DuckDB or Spark."""

from sfumato.masking.out_of_core.run import ProtectedFile, protect_file
from sfumato.masking.out_of_core.verdicts import check_file

__all__ = ["ProtectedFile", "check_file", "protect_file"]
