# Made by `make docs`.
from sfumato.engines.backends.duckdb import Duckdb as Duckdb
from sfumato.engines.backends.postgres import Postgres as Postgres
from sfumato.engines.backends.spark import Spark as Spark
