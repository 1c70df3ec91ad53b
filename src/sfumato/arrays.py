"""Types of NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.integer[Any]]
"""Whole numbers of any width."""
Array = npt.NDArray[Any]
"""Values of any type."""
