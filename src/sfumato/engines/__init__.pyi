# Made by `make docs`.
from sfumato.engines.backends.duckdb.engine import Duckdb as Duckdb
from sfumato.engines.backends.postgres.engine import Postgres as Postgres
from sfumato.engines.backends.spark.engine import Spark as Spark
