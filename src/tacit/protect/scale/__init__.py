"""Files larger than memory: the same recipe, run by DuckDB or Spark where the data lies."""

from tacit.protect.scale.protect import ProtectedFile, check_file, protect_file

__all__ = ["ProtectedFile", "check_file", "protect_file"]
