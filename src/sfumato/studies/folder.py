"""The folder of a study: JSON document, table, page, and the recipe of every candidate."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sfumato.data.atomic import replacing
from sfumato.data.yaml_documents import yaml_text
from sfumato.studies.frontier import Study
from sfumato.studies.page import page


def recipe_name(number: int, name: str) -> str:
    """The file name of a candidate's recipe.

    >>> recipe_name(3, "rank-swap p=5, variant=p-buckets")
    '03-rank-swap-p-5-variant-p-buckets.yaml'
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:80]
    return f"{number:02d}-{plain}.yaml"


def save_study(study: Study, folder: str | Path) -> Path:
    """Write all files. Earlier files of the study are replaced; finished cells are kept."""
    target = Path(folder)
    recipes = target / "recipes"
    recipes.mkdir(parents=True, exist_ok=True)
    _write(target / "study.json", json.dumps(study.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    _write(target / "study.csv", study.to_frame().write_csv())
    _write(target / "study.html", page(study))
    for number, point in enumerate(study.points, start=1):
        recipe = anchored(study.plan.recipe_of(point.candidate).to_dict())
        _write(recipes / recipe_name(number, point.candidate.name), yaml_text(recipe))
    return target


def anchored(node: object) -> object:
    """A recipe document with absolute paths of existing files, so that it runs from any folder."""
    if isinstance(node, dict):
        return {key: anchored(value) for key, value in node.items()}
    if isinstance(node, list):
        return [anchored(value) for value in node]
    if isinstance(node, str) and len(node) < 1000 and ("." in node or "/" in node) and Path(node).is_file():
        return str(Path(node).resolve())
    return node


def _write(path: Path, text: str) -> None:
    with replacing(path, force=True) as temporary:
        temporary.write_text(text, encoding="utf-8")
