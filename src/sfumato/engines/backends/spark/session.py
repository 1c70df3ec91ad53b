"""Spark sessions: the active one, or a local one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.errors import DatabaseFailed, ExtraMissing
from sfumato.extras import missing_extra

_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # else dates before 1583 can make a query fail
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",  # a text such as '${env:HOME}' stays a text
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
"""Settings of every session that runs our statements."""


def isolated(session: Any) -> object:
    """A session of our own in the same Spark application: own settings and own temporary views."""
    own = session.newSession()
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    return own


@contextmanager
def spark_session(*, memory: str, threads: int | None = None, temporary: Path | None = None) -> Iterator[Any]:
    """The active session, or a local one that is stopped at the end."""
    require_spark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    own = start_session(memory=memory, threads=threads, temporary=temporary)
    try:
        yield own
    finally:
        own.stop()


def start_session(*, memory: str, threads: int | None = None, temporary: Path | None = None) -> Any:
    """The active session, or a local one that lives as long as the process. ``memory`` is written 4GB or 4g."""
    require_spark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = (
        SparkSession.builder.master(f"local[{threads or '*'}]")
        .appName("sfumato")
        .config("spark.driver.memory", memory.lower().replace("ib", "").replace("b", ""))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(2 * (threads or os.cpu_count() or 2)))
        .config("spark.log.level", "OFF")
        # not in the working directory
        .config("spark.sql.warehouse.dir", Path(tempfile.gettempdir(), "sfumato-spark").as_uri())
    )
    if temporary is not None:
        builder = builder.config("spark.local.dir", str(temporary))
    try:
        session = builder.getOrCreate()
    except Exception as failure:
        raise DatabaseFailed(
            f"Spark could not be started ({type(failure).__name__}).", fix="It needs Java 17 or later."
        ) from None
    # Spark's log quotes plans and sometimes values.
    session.sparkContext.setLogLevel("OFF")
    return session


def require_spark() -> None:
    """Refuse, with instructions, when PySpark or Java is missing."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise missing_extra("spark", "pyspark", needed_by="Spark") from None
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and Path(home, "bin", "java").exists()):
        raise ExtraMissing(
            "Spark needs Java 17 or 21, and none was found.",
            fix="Install one (Debian, Ubuntu: `apt install openjdk-17-jre-headless`; macOS: `brew install openjdk@17`; "
            "conda: `conda install openjdk=17`) and put it on PATH or set JAVA_HOME.",
        )
