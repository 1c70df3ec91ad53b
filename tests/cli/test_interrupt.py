"""Ctrl-C before anything has begun: exit code 130, and not a word."""

import os
import signal
import subprocess
import sys

import pytest

LOADING = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.2)\nraise SystemExit(7)\n"
"""Stands in for a library that is being loaded when the interrupt comes."""


def started(folder, **options) -> subprocess.CompletedProcess[str]:
    (folder / "click.py").write_text(LOADING)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "sfumato", "--version"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, **options)


def test_an_interrupt_while_loading_is_silent(tmp_path):
    done = started(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(os.name != "posix", reason="other systems cannot hand an ignored signal down")
def test_an_ignored_interrupt_stays_ignored(tmp_path):
    done = started(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert done.returncode == 7
