"""The notebooks of the documentation run from top to bottom, and their outputs are committed."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {"release", "private-answers"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_committed(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert shown
    assert not [output for cell in shown for output in cell.outputs if output.output_type == "error"]
    assert any("text/html" in output.get("data", {}) for cell in shown for output in cell.outputs)


def kinds(cell: Any) -> list[str]:
    """Kinds of output of a cell. A kernel sends printed lines together or apart, as time allows."""
    return [kind for kind, _ in groupby(output.output_type for output in cell.get("outputs", ()))]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("SFUMATO_PROGRESS", "0")  # bars come and go with the speed of the machine
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    committed = [kinds(cell) for cell in notebook.cells]
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    assert [kinds(cell) for cell in notebook.cells] == committed
