"""The checks that ship with sfumato: a part that breaks its contract fails with a message that says how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

import sfumato.testing
from sfumato.arrays import Floats, Ints
from sfumato.attacks import Linkage, Tracker
from sfumato.attacks.base import Guesses, View
from sfumato.attacks.evaluation.outcome import Outcome
from sfumato.attacks.graph._base import GraphView, NodeMatches
from sfumato.attacks.graph.degree_matching import DegreeMatching
from sfumato.attacks.models import AttackedModel
from sfumato.attacks.models.loss_threshold import LossThreshold
from sfumato.attacks.query import RecoveredBits
from sfumato.auditing import Exact
from sfumato.collecting import Duchi, GeneralizedRandomizedResponse
from sfumato.collecting.number_protocol import STEPS
from sfumato.collecting.random_source import RandomSource
from sfumato.data import Csv, Table
from sfumato.dataset import Data, MaskHierarchy
from sfumato.dataset.hierarchy import BoundHierarchy
from sfumato.demos.base import Demo, Say
from sfumato.documents import RulesTagger, TextFinding
from sfumato.dp import Laplace, PrivacyLoss, pure
from sfumato.engines import Duckdb
from sfumato.engines.engine import Running
from sfumato.errors import AnswerFailed
from sfumato.evaluation.check import Subject
from sfumato.evaluation.checks.derived_columns import DerivedColumns
from sfumato.graphs import Clusters, Graph, GraphChange, KDegreeAnonymity, SwitchEdges
from sfumato.graphs.released_files import GraphFiles
from sfumato.integral.encoding import Codes
from sfumato.integral.learners.decision_tree import DecisionTreeLearner
from sfumato.integral.records import Records
from sfumato.masking import Discernibility, KAnonymity
from sfumato.masking.base import Context, Step
from sfumato.masking.metric import CellLosses, ClassTotals
from sfumato.measures import EdgesKept, Hellinger, MeasureResult, ReleasePair
from sfumato.measures.graph._base import GraphPair
from sfumato.params import Part
from sfumato.progress import SILENT, Progress
from sfumato.query.policy import Responder
from sfumato.query.policy.base import ExactResponder
from sfumato.registry import KINDS
from sfumato.release import Change, State, Verdict
from sfumato.release.class_counts import ConditionResult, ReleaseCounts
from sfumato.rng import Rng


class Unseeded(Step):
    """Breaks the contract: draws from a stream of its own."""

    simulable = False

    def apply(self, data: Data, context: Context) -> Change:
        noise = pl.Series("height", np.random.default_rng().normal(size=data.rows))
        return Change(table=data.table.with_frame(data.table.frame.with_columns(noise)))


class Loses(Step):
    """Breaks the contract: drops rows without a row map."""

    simulable = False

    def apply(self, data: Data, context: Context) -> Change:
        return Change(table=data.table.with_frame(data.table.frame.head(data.rows // 2)))


class Tells(Step):
    """Breaks the contract: publishes a name."""

    simulable = False

    def apply(self, data: Data, context: Context) -> Change:
        return Change(table=data.table, public={"first": data.table.column("name")[0]})


class Boasts(Step):
    """Breaks the contract: claims that values are true and alters them."""

    truthful, simulable = True, False

    def apply(self, data: Data, context: Context) -> Change:
        return Change(table=data.table.with_frame(data.table.frame.with_columns(pl.col("age") + 1)))


class Lenient(KAnonymity):
    """Breaks the contract: the independent check allows one row fewer."""

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        k = parameters["k"] - 1
        return ConditionResult(worst=min(counts.sizes), wanted=k, passes=[size >= k for size in counts.sizes])


class Overestimates(Discernibility):
    """Breaks the contract: the lower bound for coarser tables is no lower bound."""

    def above(self, columns: Floats, losses: CellLosses, finer: ClassTotals, *, least: int, stay: bool) -> Floats:
        return columns + finer.rows**2 + 1


class Unsorted(MaskHierarchy):
    """Breaks the contract: the order of the values matters."""

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        leaves = values.unique(maintain_order=True)
        return BoundHierarchy.from_labels(column, leaves, [["*"] * len(leaves)])


class Blind(Linkage):
    """Breaks the contract: guesses the same row for everybody, whatever the release shows."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        return Guesses.of_rows(np.zeros(view.targets.height, np.int64), np.ones(view.targets.height))


class Sleepy(Tracker):
    """Breaks the contract: recovers the opposite of every secret, exact answers or not."""

    def run(self, responder: Responder, rng: Rng) -> RecoveredBits:
        recovered = super().run(responder, rng)
        return RecoveredBits(targets=recovered.targets, bits=1 - recovered.bits, made=recovered.made)


class Moody(Hellinger):
    """Breaks the contract: another value in every run."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        return MeasureResult(measure=self.part_name(), value=float(np.random.default_rng().random()))


class Cheap(Laplace):
    """Breaks the contract: states half of the loss."""

    def loss(self, sensitivity: Any = 1) -> PrivacyLoss:
        return pure(super().loss(sensitivity).size / 2)


class Greedy(Exact):
    """Breaks the contract: changes the values it answers about."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        own = np.asarray(values)
        own[0] = 1 - own[0]
        return ExactResponder(own)


class Talkative(Duckdb):
    """Breaks the contract: failures show the statement."""

    def start(self, tables: Mapping[str, Any]) -> Running:
        running = super().start(tables)
        run = running.run

        def talk(sql: str) -> Any:
            try:
                return run(sql)
            except AnswerFailed:
                raise AnswerFailed(f"This failed: {sql}") from None

        running.run = talk  # type: ignore[method-assign]
        return running


class Shortens(Csv):
    """Breaks the contract: writes half of the rows."""

    def write(self, table: Table, path: Path) -> None:
        super().write(table.with_frame(table.frame.head(table.rows // 2)), path)


class SilentDemo(Demo):
    """Breaks the contract: prints nothing."""

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        return {"figure": 1}


class Honest(GeneralizedRandomizedResponse):
    """Breaks the contract: reports the true value always."""

    def _randomize(self, codes: npt.NDArray[np.int64], source: RandomSource) -> npt.NDArray[np.uint8]:
        return codes.astype(np.uint8).reshape(-1, 1)


class Rounds(Duchi):
    """Breaks the contract: reports on which side of the middle a number lies."""

    def _randomize(self, positions: npt.NDArray[np.int64], source: RandomSource) -> npt.NDArray[np.int64]:
        return (positions > STEPS // 2).astype(np.int64)


class Forgets(SwitchEdges):
    """Breaks the contract: claims to have changed nothing."""

    def apply(self, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphChange:
        return replace(super().apply(graph, rng, progress), counts={"added": 0, "deleted": 0})


class Tolerant(KDegreeAnonymity):
    """Breaks the contract: holds always."""

    def check(self, graph: Graph, clusters: Clusters | None = None, symmetry: Ints | None = None) -> Verdict:
        return replace(super().check(graph, clusters, symmetry), state=State.HOLDS)


class AsksForOne(KDegreeAnonymity):
    """Breaks the contract: the independent check asks for k = 1."""

    @classmethod
    def independent_check(cls, parameters: Mapping[str, Any], files: GraphFiles) -> Verdict:
        return super().independent_check({**parameters, "k": 1}, files)


class GuessesFirst(DegreeMatching):
    """Breaks the contract: an attacker who guesses the first node for everybody and learns nothing from degrees."""

    def match(self, view: GraphView, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        return NodeMatches.of_nodes(np.zeros(len(view.targets), dtype=np.int64), view.release.size)


class Constant(EdgesKept):
    """Breaks the contract: the value is the same for every graph."""

    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        return self.result(1.0)


class Shrugs(LossThreshold):
    """Breaks the contract: guesses by chance, whatever the model."""

    def run(self, model: AttackedModel, rng: Rng, *, n_targets: int, secrets: Sequence[str]) -> list[Outcome]:
        [outcome] = super().run(model, rng, n_targets=n_targets, secrets=secrets)
        return [replace(outcome, main=outcome.baseline)] if outcome.baseline is not None else []


class Remembers(DecisionTreeLearner):
    """Breaks the contract: the model depends on which row stands first."""

    def fit(self, records: Records, counts: Codes) -> bytes:
        return super().fit(records, counts) + records.cell_of_row.tobytes()


class Shifts(RulesTagger):
    """Breaks the contract: positions are off by one."""

    def find(self, texts: Sequence[str]) -> list[list[TextFinding]]:
        return [[replace(one, start=one.start + 1) for one in found] for found in super().find(texts)]


class TicksAnyway(DerivedColumns):
    """Breaks the contract: looks at rows to decide whether it applies, so it is silent about some releases."""

    def applies(self, subject: Subject) -> bool:
        return float(subject.release.load(["income"]).to_series().sum()) % 2 < 1


BROKEN: list[tuple[str, Part, str]] = [
    ("step", Unseeded(), "same seed"),
    ("step", Loses(), "rows were added or dropped"),
    ("step", Tells(), "values of name|names a person"),
    ("step", Boasts(), "`truthful` is wrong"),
    ("model", Lenient(k=2), "independent check"),
    ("metric", Overestimates(), "`above` exceeds"),
    ("hierarchy", Unsorted(direction="right"), "order of the values"),
    ("attack", Blind(), "hardly disclosed"),
    ("query_attack", Sleepy(), "leave a secret unknown"),
    ("measure", Moody(), "another result"),
    ("mechanism", Cheap(scale=1), "differs from `loss`|draws another loss"),
    ("policy", Greedy(), "values were changed"),
    ("engine", Talkative(), "its own message"),
    ("format", Shortens(), "values differ"),
    ("demo", SilentDemo(), "prints nothing"),
    ("frequency_protocol", Honest(epsilon=1, values=3), "stated probabilities"),
    ("model_attack", Shrugs(), "overfitted model"),
    ("tagger", Shifts(), "not at its place"),
    ("learner", Remembers(depth=1), "order of the records"),
    ("number_protocol", Rounds(epsilon=1, low=0, high=1), "stated probabilities"),
    ("graph_method", Forgets(share=0.1), "`counts` says"),
    ("graph_model", Tolerant(k=5), "unlike all others"),
    ("graph_model", AsksForOne(k=5), "independent check"),
    ("graph_attack", GuessesFirst(), "gives the attack nothing"),
    ("graph_measure", Constant(), "as good as the original"),
    ("check", TicksAnyway(), "depends on values of rows"),
]


@pytest.mark.parametrize(("kind", "part", "message"), BROKEN, ids=[type(part).__name__ for _, part, _ in BROKEN])
def test_a_broken_part_is_caught(kind: str, part: Part, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        getattr(sfumato.testing, f"check_{kind}")(part)


def test_every_kind_of_part_has_a_check_and_a_broken_part() -> None:
    kinds = {"step" if kind == "method" else kind.replace("-", "_") for kind in KINDS if kind != "release-kind"}
    # A kind of release is no part with a contract of its own: tests/api/test_release_kinds.py runs its verbs.
    assert {kind for kind, _, _ in BROKEN} == kinds
    assert {f"check_{kind}" for kind in kinds} <= set(sfumato.testing.__all__)


def test_parameters_need_a_description() -> None:
    class Bare(Step):
        """A step with a parameter that nobody explains."""

        share: float = 0.5

        def apply(self, data: Data, context: Context) -> Change:
            return Change(table=data.table)

    with pytest.raises(AssertionError, match=r"Bare\.share has no docstring"):
        sfumato.testing.check_part(Bare())
