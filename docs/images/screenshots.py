"""Screenshots of the report and the study page, taken by headless Chromium from the files that the demos write.

Run `make pictures`. It needs Chromium or Chrome on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).parent
SHOTS = {
    "report.png": ([], "demo/hospital/release-private/report.html", (1000, 1400)),
    "study.png": (["study"], "demo/study/study/study.html", (1000, 1050)),
}
"""Picture: arguments of `sfumato demo`, the page it writes, width and height in pixels."""

DEMO_SECONDS, BROWSER_SECONDS = 600, 60
"""The longest a demo and a screenshot may take; a browser that hangs would never end."""


def main() -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("Install Chromium: it takes the screenshots.")
    options = [
        "--headless=new",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        "--disable-gpu",
        "--no-first-run",
    ]
    if os.name == "posix" and os.geteuid() == 0:
        options.append("--no-sandbox")
    with tempfile.TemporaryDirectory() as folder:
        for picture, (arguments, page, (width, height)) in SHOTS.items():
            demo = [sys.executable, "-m", "sfumato", "demo", *arguments]
            subprocess.run(demo, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=DEMO_SECONDS)
            shot = [f"--screenshot={IMAGES / picture}", f"--window-size={width},{height}"]
            profile = f"--user-data-dir={folder}/profile"
            url = Path(folder, page).resolve().as_uri()
            subprocess.run(
                [browser, *options, profile, *shot, url], check=True, stderr=subprocess.DEVNULL, timeout=BROWSER_SECONDS
            )
            print(f"{picture}: {width} × {height}, {(IMAGES / picture).stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
