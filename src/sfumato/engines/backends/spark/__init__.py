"""Apache Spark."""

from sfumato.engines.backends.spark.engine import Spark

__all__ = ["Spark"]
