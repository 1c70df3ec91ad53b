"""Noise comes from the operating system: no two processes share it, a forked one neither."""

from __future__ import annotations

import subprocess
import sys

import pytest

FORK = """
import multiprocessing, sys
from sfumato.dp import sampler
from fractions import Fraction

def draw(*_):
    return tuple(map(int, sampler.discrete_laplace(Fraction(10**6), 8)))

if __name__ == "__main__":
    draw()
    with multiprocessing.get_context("fork").Pool(4, maxtasksperchild=1) as pool:
        for drawn in [draw(), *pool.map(draw, range(4), chunksize=1)]:
            print(*drawn)
"""


@pytest.mark.os_entropy
def test_no_two_processes_draw_the_same_noise() -> None:
    """Equal lines have a probability below 2**-100; a seed, or a state copied by fork, gives them always."""
    lines = []
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
        lines += ran.stdout.splitlines()
    assert len(lines) == 10
    assert len(set(lines)) == 10
