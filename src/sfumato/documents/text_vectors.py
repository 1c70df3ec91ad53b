"""Vectors of texts: TF-IDF of words for nearest documents and retrieval, frequencies of n-grams for authorship.

Several columns of texts share one vocabulary, so that their vectors can be compared.

Reference: Sapkota, U. et al. (2015). Not all character n-grams are created equal: a study in authorship attribution.
doi:10.3115/v1/N15-1010
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Ints

TextFeatures = Literal["words", "characters"]

_WORDS = r"[\p{L}\p{N}]+"
_GRAM = 3
"""Characters of an n-gram."""
_FREQUENT = 1000
"""N-grams that a style is described by, the most frequent ones."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


def words_of(text: pl.Expr) -> pl.Expr:
    """The words of a text in lower case, with repetitions."""
    return text.str.to_lowercase().str.extract_all(_WORDS)


def text_vectors(*columns: pl.Series) -> list[Any]:
    """For each column a sparse matrix: one TF-IDF vector of length 1 per text, zeros for an empty one.

    The rarity of a term is counted over the texts of the last column. Terms that it does not contain are left out.

    >>> notes, questions = pl.Series(["rash on the arm", "a broken arm"]), pl.Series(["arm rash"])
    >>> asked, known = text_vectors(questions, notes)
    >>> nearest(asked, known)[0].tolist()
    [0]
    """
    document, term = _word_terms(_joined(columns))
    return _weighted(document, term, np.cumsum([0, *(len(column) for column in columns)]))


def style_vectors(*columns: pl.Series) -> list[Any]:
    """For each column a matrix: one vector of length 1 per text, from its frequent n-grams of characters (Burrows's
    Delta). Each column is standardized by itself, which removes what its texts have in common: their topic.
    """
    from scipy.sparse import csr_matrix

    document, term = _character_terms(_joined(columns))
    sizes = np.cumsum([0, *(len(column) for column in columns)])
    counts = csr_matrix((np.ones(len(term)), (document, term)), shape=(int(sizes[-1]), int(term.max(initial=0)) + 1))
    counts.sum_duplicates()
    sides = [counts[start:stop] for start, stop in pairwise(sizes)]
    having = np.min([np.bincount(side.indices, minlength=counts.shape[1]) for side in sides], axis=0)
    frequent = np.sort(np.argsort(-having, kind="stable")[:_FREQUENT])
    shares = [side[:, frequent].toarray() / np.maximum(1, np.asarray(side.sum(axis=1))) for side in sides]
    last = shares[-1].mean(axis=0), shares[-1].std(axis=0)
    return [_standardized(side, *((side.mean(axis=0), side.std(axis=0)) if len(side) > 9 else last)) for side in shares]


def _standardized(shares: object, mean: Any, spread: Any) -> object:
    scores = (shares - mean) / np.where(spread > 0, spread, 1.0)
    scores[:, spread == 0] = 0.0
    norms = np.sqrt((scores**2).sum(axis=1, keepdims=True))
    return scores / np.where(norms > 0, norms, 1.0)


def _joined(columns: tuple[pl.Series, ...]) -> pl.Series:
    return pl.concat([column.cast(pl.String).fill_null("").alias("text") for column in columns])


def nearest(asked: object, known: Any) -> tuple[Ints, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """For each row of ``asked`` the most similar row of ``known`` (-1: none shares a term), its similarity and that of
    the second."""
    product = asked @ known.T
    similarity = product if isinstance(product, np.ndarray) else product.toarray()
    best = similarity.argmax(axis=1)
    first = similarity[np.arange(len(best)), best]
    second = np.zeros(len(best))
    if similarity.shape[1] > 1:
        second = np.partition(similarity, -2, axis=1)[:, -2]
    return np.where(first > 0, best, -1).astype(np.int64), first, second


def _word_terms(texts: pl.Series) -> tuple[Ints, Ints]:
    frame = pl.DataFrame({"document": np.arange(len(texts)), "text": texts})
    words = frame.select("document", words_of(pl.col("text")).alias("word")).explode("word").drop_nulls()
    return words["document"].to_numpy(), words["word"].rank("dense").to_numpy().astype(np.int64) - 1


def _character_terms(texts: pl.Series) -> tuple[Ints, Ints]:
    """Each n-gram of characters with a space or punctuation in it, as a number: word endings, spacing, punctuation.

    N-grams inside a word say more about the topic than about the author. Letters keep their case.
    """
    encoded = [np.frombuffer(f" {text} ".encode("utf-32-le"), dtype=np.uint32) for text in texts.to_list()]
    length = np.array([len(one) for one in encoded])
    letters = np.concatenate(encoded).astype(np.uint64)
    document = np.repeat(np.arange(len(encoded)), length)
    if len(letters) < _GRAM:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    last = len(letters) - _GRAM + 1
    code = np.zeros(last, dtype=np.uint64)
    for place in range(_GRAM):
        code = code * _MIX + letters[place : place + last]
    alphabet = np.unique(letters)
    plain = np.array([chr(int(letter)).isalnum() for letter in alphabet])
    outside = ~plain[np.searchsorted(alphabet, letters)]
    inside = document[:last] == document[_GRAM - 1 :]
    inside &= np.any([outside[place : place + last] for place in range(_GRAM)], axis=0)
    _, term = np.unique(code[inside], return_inverse=True)
    return document[:last][inside].astype(np.int64), term.astype(np.int64)


def _weighted(document: Ints, term: Ints, sizes: Ints) -> list[object]:
    from scipy.sparse import csr_matrix, diags

    terms = int(term.max(initial=-1)) + 1
    counts = csr_matrix((np.ones(len(term)), (document, term)), shape=(int(sizes[-1]), max(1, terms)))
    counts.sum_duplicates()
    own = counts[sizes[-2] : sizes[-1]]
    having = np.bincount(own.indices, minlength=counts.shape[1])
    # a term of all documents tells nothing; one that the last column does not have cannot be found there
    rarity = np.where(having > 0, np.log((1 + own.shape[0]) / np.maximum(having, 1)), 0.0)
    counts.data = 1 + np.log(counts.data)
    weighted = counts @ diags(rarity)
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    weighted = diags(1 / np.where(norms > 0, norms, 1.0)) @ weighted
    weighted = csr_matrix(weighted)
    return [weighted[start:stop] for start, stop in pairwise(sizes)]
