"""Decision tree on binned features, by greedy Gini splits with exact comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.errors import BadParameter
from sfumato.integral.encoding import Codes, Encoding
from sfumato.integral.learner import Learner
from sfumato.integral.learners._tree_kernel import LEAF, MAX_RECORDS, fit_trees, predict_cells
from sfumato.integral.records import Records


class DecisionTreeLearner(Learner):
    """Classification tree (CART, Gini) on bins and categories. Ties go to the first feature and the smallest code."""

    main = "depth"
    examples = ({"depth": 2}, {"depth": 3, "min_leaf": 1})
    reference = "Breiman, Friedman, Olshen, Stone (1984). Classification and Regression Trees"

    depth: int = Field(ge=1, le=10)
    """Number of splits on the way from the root to a leaf, at most."""
    min_leaf: int = Field(default=5, ge=1)
    """Records on each side of a split, at least."""

    def fit(self, records: Records, counts: Codes) -> bytes:
        return self.fit_many(records, counts[None, :])[0]

    def fit_many(self, records: Records, counts: Codes) -> Sequence[bytes]:
        if records.counts.sum() > MAX_RECORDS:
            raise BadParameter(f"A tree takes at most {MAX_RECORDS:,} records.")
        labels, columns = records.labels, records.encoding.features
        assert records.encoding.label is not None
        sizes = np.array([column.size for column in columns], dtype=np.int64)
        ordered = np.array([column.ordered for column in columns])
        shape = (sizes, ordered, records.encoding.label.size, self.depth, self.min_leaf)
        trees = fit_trees(records.features, labels, np.ascontiguousarray(counts, dtype=np.int64), *shape)
        return [tree.tobytes() for tree in trees]

    def score(self, model: bytes, records: Records) -> float:
        """The share of records whose label the tree predicts."""
        ordered = np.array([column.ordered for column in records.encoding.features])
        predicted = predict_cells(_nodes(model), records.features, ordered)
        return float(records.counts[predicted == records.labels].sum() / records.counts.sum())

    def describe(self, model: bytes, encoding: Encoding) -> list[str]:
        nodes, lines = _nodes(model), []
        assert encoding.label is not None

        def walk(node: int, indent: str, condition: str) -> None:
            feature, code, label = (int(part) for part in nodes[node])
            if feature == LEAF:
                assert encoding.label is not None
                lines.append(f"{indent}{condition}: {encoding.label.text(label)}")
                return
            if condition:
                lines.append(f"{indent}{condition}")
                indent += "  "
            column = encoding.features[feature]
            if column.edges is not None:
                below, above = f"{column.name} <= {column.edges[code]:g}", f"{column.name} > {column.edges[code]:g}"
            else:
                below, above = column.text(code), column.text(code).replace(" = ", " ≠ ", 1)
            walk(2 * node + 1, indent, below)
            walk(2 * node + 2, indent, above)

        walk(0, "", "")
        return lines

    def coarser(self) -> Iterator[Learner]:
        for depth in range(self.depth - 1, 0, -1):
            yield self.model_copy(update={"depth": depth})


def _nodes(model: bytes) -> npt.NDArray[np.int16]:
    return np.frombuffer(model, dtype=np.int16).reshape(-1, 3)
