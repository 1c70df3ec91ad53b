"""Independent check of a released graph: each model's second formula over the released files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sfumato.graphs.base import GraphModel
from sfumato.graphs.released_files import GraphFiles
from sfumato.registry import registry
from sfumato.release import State, Verdict


def check_graph_files(folder: Path, models: Mapping[str, Mapping[str, object]]) -> list[Verdict]:
    """The verdict on each model that a graph's manifest names. An unknown model is not checked."""
    files = GraphFiles.read(folder)
    return [_verdict(name, parameters, files) for name, parameters in models.items()]


def _verdict(name: str, parameters: Mapping[str, object], files: GraphFiles) -> Verdict:
    if name not in registry("graph-model"):
        return Verdict(model=name, state=State.NOT_CHECKED, reason="this version does not know the model")
    model = registry("graph-model").get(name)
    assert issubclass(model, GraphModel)
    return model.independent_check(parameters, files)
