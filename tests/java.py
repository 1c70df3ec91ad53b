"""What Spark needs to run; tests that need it skip otherwise."""

from __future__ import annotations

import os
import shutil

import pytest

__all__ = ["java"]


@pytest.fixture(scope="session")
def java() -> str:
    """Where Java is."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java") or (shutil.which("java", path=os.path.join(home, "bin")) if home else None)
    if found is None:
        pytest.skip("Java is not installed on this machine")
    return found
