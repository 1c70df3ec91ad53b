"""Files larger than memory: the same recipe, run by DuckDB or Spark where the data lies."""

from sfumato.masking.out_of_core.run import ProtectedFile, check_file, protect_file

__all__ = ["ProtectedFile", "check_file", "protect_file"]
