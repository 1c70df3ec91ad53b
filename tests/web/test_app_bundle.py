"""The committed bundle of the app: built from the present sources, small, and without any other host."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from sfumato.app.service import openapi
from sfumato.server.rest.application import openapi as server_openapi

ROOT = Path(__file__).parents[2]
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "src" / "sfumato" / "web" / "static"
BUILD = "Run `make frontend` and commit the result."


def test_the_bundle_is_built_from_the_present_sources() -> None:
    names = [path.relative_to(FRONTEND).as_posix() for path in (FRONTEND / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for name in sorted(["build.mjs", "package-lock.json", "package.json", "tsconfig.json", *names]):
        digest.update(name.encode() + b"\0" + (FRONTEND / name).read_bytes() + b"\0")
    assert (STATIC / "sources.sha256").read_text().strip() == digest.hexdigest(), BUILD


def test_the_types_of_the_client_are_those_of_the_service(tmp_path: Path) -> None:
    assert json.loads((FRONTEND / "openapi.json").read_text()) == json.loads(openapi(tmp_path)), BUILD
    assert json.loads((FRONTEND / "server-openapi.json").read_text()) == json.loads(server_openapi(tmp_path)), BUILD


def test_the_bundle_is_below_150_kilobytes_compressed() -> None:
    total = sum(len(gzip.compress(path.read_bytes())) for path in STATIC.rglob("*") if path.is_file())
    assert total < 150_000


@pytest.mark.parametrize("name", ["index.html", "server.html"])
def test_a_page_has_no_inline_script_and_names_files_that_exist(name: str) -> None:
    page = (STATIC / name).read_text()
    named = re.findall(r'(?:src|href)="/([^"]+)"', page)
    assert len(named) == 2
    assert all((STATIC / name).is_file() for name in named)
    assert "<script>" not in page
    assert "style=" not in page


def test_scripts_contain_no_addresses_to_load_from() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in STATIC.rglob("*.js"))
    hosts = set(re.findall(r"https?://([a-z0-9.-]+)", text))
    # names of XML namespaces, JSON schemas and pages in error messages; the browser test fails on any request
    assert hosts <= {"www.w3.org", "react.dev", "reactjs.org", "github.com", "fb.me"}, hosts
    assert "localStorage" not in text
    sources = (ROOT / "frontend" / "src").rglob("*.ts*")
    assert [path.name for path in sources if "sessionStorage" in path.read_text(encoding="utf-8")] == ["tab-secret.ts"]


def test_the_lock_file_names_no_registry() -> None:
    assert "resolved" not in (FRONTEND / "package-lock.json").read_text()


def test_every_library_in_the_bundle_has_its_license_text() -> None:
    """Name, version, license and the text with its copyright line; what only builds the bundle is not in it."""
    text = (STATIC / "licenses.txt").read_text(encoding="utf-8")
    locked = json.loads((FRONTEND / "package-lock.json").read_text())["packages"]
    libraries = {path.removeprefix("node_modules/"): facts for path, facts in locked.items() if path}
    shipped = {name: facts for name, facts in libraries.items() if not facts.get("dev")}
    sections = dict(section.split("\n", 1) for section in text.split("\n" + "-" * 80 + "\n\n"))
    assert sections.keys() == {f"{name} {facts['version']}: {facts['license']}" for name, facts in shipped.items()}
    for title, section in sections.items():
        assert "Copyright" in section, title
        assert len(section) > 500, title
