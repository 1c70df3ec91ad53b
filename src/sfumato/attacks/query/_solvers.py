"""Solvers of the reconstruction attack: secret bits from noisy sums over many subsets.

| solver | queries | properties |
|---|---|---|
| exhaustive search | all subsets | tiny tables; with noise of at most E, at most 4E bits are wrong |
| linear program | random subsets | minimizes the sum of absolute deviations |
| least squares | random subsets | projected gradient with momentum; fastest, and most accurate at equal noise |
| Hadamard | chosen subsets | one fast transform |

References: Dinur, Nissim (2003), Revealing information while preserving privacy, doi:10.1145/773153.773173; Dwork,
McSherry, Talwar (2007), The price of privacy and the limits of LP decoding, doi:10.1145/1250790.1250804; Dwork,
Yekhanin (2008), New efficient attacks on statistical disclosure control, doi:10.1007/978-3-540-85174-5_26
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter
from sfumato.kernels import kernel
from sfumato.query.policy.subsets import Bits, subset_sums, sum_over_subsets, unpack

Floats = npt.NDArray[np.float64]


def exhaustive(bits: Bits, answers: Floats, people: int) -> npt.NDArray[np.int8]:
    """The bit vector with the smallest maximum deviation from the answers, among all 2**people.

    If every subset was asked and every answer is off by at most E, at most 4E bits are wrong.
    """
    if people > 16:
        raise BadParameter(f"Exhaustive search is limited to 16 people, not {people}.")
    subsets = unpack(bits, people) @ (1 << np.arange(people, dtype=np.int64))
    best, vector = np.inf, 0
    columns = np.arange(1 << people, dtype=np.int64)
    for first in range(0, len(columns), 256):
        block = columns[first : first + 256]
        off = np.abs(np.bitwise_count(block[:, None] & subsets[None, :]) - answers[None, :]).max(axis=1)
        place = int(np.argmin(off))
        if off[place] < best:
            best, vector = float(off[place]), int(block[place])
    return (vector >> np.arange(people) & 1).astype(np.int8)


def linear_program(bits: Bits, answers: Floats, people: int) -> Floats:
    """Numbers in [0, 1] whose sums minimize the total absolute deviation from the answers."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    count = len(bits)
    matrix = csr_array(unpack(bits, people).astype(np.float64))
    wide = hstack([matrix, eye_array(count), -eye_array(count)], format="csr")
    cost = np.concatenate([np.zeros(people), np.ones(2 * count)])
    bounds = np.concatenate([np.tile([0.0, 1.0], (people, 1)), np.tile([0.0, np.inf], (2 * count, 1))])
    solved = linprog(cost, A_eq=wide, b_eq=answers, bounds=bounds, method="highs")
    if solved.x is None:
        raise BadParameter("The linear program was not solved.", fix="Ask fewer queries, or use least squares.")
    return np.asarray(solved.x[:people], np.float64)


def least_squares(bits: Bits, answers: Floats, people: int, *, rounds: int | None = None) -> Floats:
    """Numbers in [0, 1] whose sums over random subsets minimize the squared deviation from the answers.

    All sums over half of the people contain half of the total, which slows gradient descent down. Centring the
    residuals removes it. The remaining problem is well conditioned if there are a few times more subsets than people.
    """
    count = len(bits)
    more, fewer = np.sqrt(max(count, people)), np.sqrt(min(count, people))
    top, bottom = ((more + fewer) / 2) ** 2 * 1.05, ((more - fewer) / 2) ** 2
    ratio = np.sqrt(max(bottom / top, 1e-3)) if count > people else np.sqrt(1e-3)
    momentum = (1 - ratio) / (1 + ratio)
    rounds = rounds if rounds is not None else int(np.ceil(5 / ratio))
    x = np.full(people, 0.5)
    ahead = x.copy()
    for _ in range(rounds):
        off = subset_sums(bits, ahead) - answers
        off -= off.mean()
        new = np.clip(ahead - sum_over_subsets(bits, off, people) / top, 0.0, 1.0)
        ahead = new + momentum * (new - x)
        x = new
    return x


@kernel(fastmath=True)
def _butterflies(x: npt.NDArray[np.float32], first: int, last: int) -> None:
    half = first
    while half < last:
        for start in range(0, len(x), 2 * half):
            for i in range(start, start + half):
                a, b = x[i], x[i + half]
                x[i] = a + b
                x[i + half] = a - b
        half *= 2


@kernel(fastmath=True)
def _transform(x: npt.NDArray[np.float32], block: int) -> None:
    # Short butterflies stay inside a block that fits the cache; long ones pass over all values, two levels at a time.
    size = len(x)
    for start in range(0, size, block):
        _butterflies(x[start : start + block], 1, min(block, size))
    half = block
    while half < size:
        if 4 * half <= size:
            for start in range(0, size, 4 * half):
                for i in range(start, start + half):
                    a, b, c, d = x[i], x[i + half], x[i + 2 * half], x[i + 3 * half]
                    p, q, r, s = a + b, a - b, c + d, c - d
                    x[i], x[i + half], x[i + 2 * half], x[i + 3 * half] = p + r, q + s, p - r, q - s
            half *= 4
        else:
            _butterflies(x, half, 2 * half)
            half *= 2


def transform(values: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """The Walsh–Hadamard transform, in single precision; the length is a power of two.

    >>> transform([1, 0, 0, 0]).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x = np.array(values, np.float32)
    if x.ndim != 1 or x.size == 0 or x.size & (x.size - 1):
        raise BadParameter("The length of a transform must be a power of two.")
    _transform(x, 1 << 13)
    return x


def hadamard_subsets(people: int) -> Bits:
    """The subsets to ask: the +1 entries of the rows of a Hadamard matrix whose size is the next power of two."""
    size = 1 << max(0, people - 1).bit_length()
    if size > 1 << 15:
        raise BadParameter("Hadamard subsets are limited to 32,768 people.", fix="Use random subsets.")
    rows, columns = np.arange(size)[:, None], np.arange(people)[None, :]
    return np.packbits((np.bitwise_count(rows & columns) & 1) == 0, axis=1, bitorder="little")


def hadamard(answers: npt.ArrayLike, people: int) -> Floats:
    """The estimated bits from the answers to the Hadamard subsets, by one transform.

    The first answer is the total. The noise of all answers is averaged, so the standard deviation decreases with the
    square root of their number.
    """
    sums = np.asarray(answers, np.float32)
    return np.asarray(transform(2 * sums - sums[0])[:people] / np.float32(len(sums)), np.float64)
