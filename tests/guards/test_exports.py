"""Packages export the classes of their parts lazily, and type checkers see the same names."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from manual import stubs

from sfumato.learning.catalogue import class_name, estimator_names
from sfumato.registry import KINDS, exports, kinds_of, registry

SOURCE = Path(__file__).parents[2] / "src"
PACKAGES = sorted(
    {".".join(folder.split(".")[:2]) for folders in KINDS.values() for folder in folders} - {"sfumato.demos"}
)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_part_is_exported_by_its_package(package: str) -> None:
    module = importlib.import_module(package)
    for kind in kinds_of(package):
        for name, place in registry(kind).modules().items():
            if not place.startswith(f"{package}."):
                continue
            cls = registry(kind).get(name)
            assert getattr(module, cls.__name__) is cls
            assert cls.__name__ in dir(module)


def test_stubs_are_current() -> None:
    stale = [path for path, text in stubs() if not (SOURCE / path).exists() or (SOURCE / path).read_text() != text]
    assert not stale, "run `make docs`"
    made = {path for path, _ in stubs()}
    assert made >= {f"{package.replace('.', '/')}/__init__.pyi" for package in PACKAGES}
    assert made == {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.pyi")}


def test_type_checkers_see_the_estimators() -> None:
    text = (SOURCE / "sfumato" / "learning" / "__init__.pyi").read_text()
    assert all(f" as {class_name(name)}\n" in text for name in estimator_names())


def test_a_name_may_not_be_that_of_its_submodule() -> None:
    """Whoever imported the submodule first would get it in place of the function."""
    with pytest.raises(ValueError, match="hidden by a submodule"):
        exports("sfumato.documents", tagger="tagger")


def test_a_name_that_is_not_exported_is_refused() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Nonsense'"):
        from sfumato.masking import Nonsense  # noqa: F401
    with pytest.raises(AttributeError, match="has no attribute 'GeneralizeAll'"):
        _ = importlib.import_module("sfumato.masking").GeneralizeAll


def test_other_names_are_loaded_from_their_submodule() -> None:
    get_attribute, list_attributes = exports("sfumato.masking", Step="base")
    assert get_attribute("Step") is importlib.import_module("sfumato.masking.base").Step
    assert {"Step", "KAnonymity"} <= set(list_attributes())


def test_importing_a_package_imports_no_part() -> None:
    code = (
        "import sys, sfumato.masking, sfumato.dp; "
        "print([m for m in sys.modules if m.startswith(('sfumato.masking.me', 'sfumato.dp.me'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.xdist_group("mypy")
def test_mypy_sees_the_types_of_exported_parts(tmp_path: Path) -> None:
    file = tmp_path / "user.py"
    file.write_text(
        "from sfumato.attacks import LearnedLinkage\n"
        "from sfumato.dp import Laplace\n"
        "from sfumato.masking import Generalize, KAnonymity\n"
        "from sfumato.measures import Hellinger\n"
        "reveal_type(KAnonymity(k=5))\n"
        "KAnonymity(k=5).nonsense\n"
        "from sfumato.masking import Nonsense\n"
    )
    command = [sys.executable, "-m", "mypy", "--cache-dir", ".mypy_cache", str(file)]
    environment = {**os.environ, "MYPYPATH": "src"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=SOURCE.parent)
    lines = [line.split(":", 1)[1] for line in done.stdout.splitlines() if "user.py" in line]
    assert lines == [
        '5: note: Revealed type is "sfumato.masking.models.k_anonymity.KAnonymity"',
        '6: error: "KAnonymity" has no attribute "nonsense"  [attr-defined]',
        '7: error: Module "sfumato.masking" has no attribute "Nonsense"  [attr-defined]',
    ]
