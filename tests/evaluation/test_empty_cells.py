"""How tables are judged: empty cells in their three meanings, suppressed rows, references; and by a second opinion."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import check, protect
from sfumato.cli import main
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.evaluation.counts import count_classes
from sfumato.evaluation.rules import verify
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import PrivacyModel
from sfumato.masking.models.alpha_k import AlphaK
from sfumato.masking.models.average_risk import AverageRisk
from sfumato.masking.models.beta_likeness import BetaLikeness
from sfumato.masking.models.delta_disclosure import DeltaDisclosure
from sfumato.masking.models.delta_presence import DeltaPresence
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.models.k_map import KMap
from sfumato.masking.models.l_diversity import LDiversity
from sfumato.masking.models.maximum_risk import MaximumRisk
from sfumato.masking.models.p_sensitive import PSensitive
from sfumato.masking.models.population_uniqueness import PopulationUniqueness
from sfumato.masking.models.t_closeness import TCloseness
from sfumato.recipe import Recipe
from sfumato.release import Release, State

MEANINGS = ("category", "wildcard", "suppressed")


def table(rows: list[tuple[str | None, str | None, str]], meaning: str = "category") -> Data:
    frame = pl.DataFrame(rows, schema={"zip": pl.String, "sex": pl.String, "s": pl.String}, orient="row")
    columns = {
        "zip": Column(role=Role.QUASI, missing=meaning),  # type: ignore[arg-type]
        "sex": Column(role=Role.QUASI, missing=meaning),  # type: ignore[arg-type]
        "s": Column(role=Role.SENSITIVE),
    }
    return Data(table=Table(frame=frame), schema=Schema(columns=columns))


def test_an_empty_cell_is_a_value_or_matches_everything() -> None:
    rows: list[tuple[str | None, str | None, str]] = [("1", "F", "a"), ("1", None, "b"), ("1", "M", "c")]
    assert KAnonymity(k=2).check(table(rows)).worst == 1
    for meaning in ("wildcard", "suppressed"):
        verdict = KAnonymity(k=2).check(table(rows, meaning))
        assert verdict.holds
        assert verdict.worst == 2
        assert LDiversity(l=2).check(table(rows, meaning)).holds


def test_rows_that_show_nothing_form_no_class() -> None:
    rows: list[tuple[str | None, str | None, str]] = [("1", "F", "a"), ("1", "F", "b"), ("*", "*", "c")]
    assert KAnonymity(k=2).check(table(rows)).holds
    assert not KAnonymity(k=2).check(table([*rows, ("*", "F", "c")])).holds
    everybody: list[tuple[str | None, str | None, str]] = [("*", "*", "a"), ("*", "*", "b")]
    assert KAnonymity(k=2).check(table(everybody)).worst == 2
    blank: list[tuple[str | None, str | None, str]] = [*rows, (None, None, "d")]
    assert KAnonymity(k=2).check(table(blank, "suppressed")).holds
    assert not KAnonymity(k=2).check(table(blank)).holds


cells = st.sampled_from(["1", "2", None])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(cells, cells, st.sampled_from("abc")), min_size=1, max_size=12),
    meaning=st.sampled_from(MEANINGS),
)
def test_crowds_are_all_rows_that_agree(rows: list[tuple[str | None, str | None, str]], meaning: str) -> None:
    data = table(rows, meaning)

    def agree(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        if meaning == "category":
            return one[:2] == other[:2]
        return all(a == b or a is None or b is None for a, b in zip(one[:2], other[:2], strict=True))

    shown = [row for row in rows if meaning == "category" or row[:2] != (None, None)] or rows
    wildcard_groups = [[other for other in shown if agree(row, other)] for row in shown]
    verdict = KAnonymity(k=3).check(data)
    assert verdict.worst == min(len(crowd) for crowd in wildcard_groups)
    assert verdict.failing == sum(len(crowd) < 3 for crowd in wildcard_groups)
    diverse = LDiversity(l=2).check(data)
    assert diverse.worst == min(len({row[2] for row in crowd}) for crowd in wildcard_groups)
    models: list[dict[str, Any]] = [{"k-anonymity": {"k": 3}}, {"l-diversity": {"l": 2}}]
    seen = count_classes(data, quasi=("zip", "sex"), sensitive=("s",), missing={"zip": meaning, "sex": meaning})
    again = verify(models, seen)
    assert [v.worst for v in again] == [verdict.worst, diverse.worst]
    assert [v.failing for v in again] == [verdict.failing, diverse.failing]
    mean = sum(1 / len(crowd) for crowd in wildcard_groups) / len(shown)
    assert AverageRisk(limit=0.5).check(data).worst == pytest.approx(mean)


_BOTH_FORMS: tuple[PrivacyModel, ...] = (
    AverageRisk(limit=0.5), AlphaK(alpha=0.5, k=2), BetaLikeness(beta=1.0), DeltaDisclosure(delta=1.0),
    LDiversity(l=2, kind="entropy"), LDiversity(l=2, kind="recursive", c=2.0), MaximumRisk(limit=0.4),
    PSensitive(p=2, k=2), TCloseness(t=0.3),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(cells, cells, st.sampled_from("abc")), min_size=1, max_size=12),
    meaning=st.sampled_from(MEANINGS),
    model=st.sampled_from(_BOTH_FORMS),
)
def test_both_forms_of_a_model_agree_where_classes_overlap(
    rows: list[tuple[str | None, str | None, str]], meaning: str, model: PrivacyModel
) -> None:
    data = table(rows, meaning)
    ours = model.check(data)
    seen = count_classes(data, quasi=("zip", "sex"), sensitive=("s",), missing={"zip": meaning, "sex": meaning})
    [theirs] = verify([{model.part_name(): model.to_dict()}], seen)
    assert (ours.state, ours.failing) == (theirs.state, theirs.failing)
    assert ours.worst == pytest.approx(theirs.worst)


@pytest.mark.parametrize("model", [TCloseness(t=0.2), DeltaDisclosure(delta=1.0), BetaLikeness(beta=0.5)])
def test_the_original_is_the_reference_when_it_is_given(model: Any) -> None:
    original = table([("1", "F", "a")] * 5 + [("2", "F", "b")] * 5)
    kept = table([("1", "F", "a")] * 5)
    assert model.check(kept).holds
    assert not model.check(kept, original=original).holds


def test_altered_sensitive_values_are_compared_with_the_release_itself() -> None:
    original = table([("1", "F", "a"), ("1", "F", "b")])
    altered = table([("1", "F", "x"), ("1", "F", "y")])
    assert TCloseness(t=0.1).check(altered, original=original).holds
    apart = table([("1", "F", "x"), ("2", "F", "y")])
    for release, worst in ((altered, 0.0), (apart, 0.5)):
        shown = count_classes(release, quasi=("zip", "sex"), sensitive=("s",), original=original)
        verdict = TCloseness(t=0.4).check(release, original=original)
        assert verdict.worst == verify([{"t-closeness": {"t": 0.4}}], shown)[0].worst == worst


def test_healthy_values_may_be_certain() -> None:
    rows: list[tuple[str | None, str | None, str]] = [("1", "F", "none")] * 3
    rows += [("2", "F", "flu"), ("2", "F", "none"), ("2", "F", "asthma")]
    assert not LDiversity(l=2).check(table(rows)).holds
    for kind in ({"kind": "distinct"}, {"kind": "entropy"}, {"kind": "recursive", "c": 2.0}):
        assert LDiversity(l=2, healthy=("none",), **kind).check(table(rows)).holds  # type: ignore[arg-type]
    assert not AlphaK(alpha=0.5, k=2).check(table(rows)).holds
    assert AlphaK(alpha=0.5, k=2, healthy=("none",)).check(table(rows)).holds


def test_a_single_secret_is_no_harmless_class() -> None:
    rows: list[tuple[str | None, str | None, str]] = [("1", "F", "none")] * 3 + [("2", "F", "flu")]
    for kind in ({"kind": "distinct"}, {"kind": "entropy"}, {"kind": "recursive", "c": 2.0}):
        verdict = LDiversity(l=2, healthy=("none",), **kind).check(table(rows))  # type: ignore[arg-type]
        assert (verdict.state, verdict.failing) == (State.FAILS, 1)


def test_a_ratio_that_reaches_delta_is_one_too_many() -> None:
    """Shares 1/2 and 1/8 in the classes, 1/4 in the table: the logarithms are 1 and -1 exactly, and must stay below."""
    rows: list[tuple[str | None, str | None, str]] = [("1", "F", "a")] * 2 + [("1", "F", "b")] * 2
    rows += [("2", "F", "a")] + [("2", "F", "b")] * 7
    shown = count_classes(table(rows), quasi=("zip", "sex"), sensitive=("s",))
    for delta, state in ((1.0, State.FAILS), (1.001, State.HOLDS)):
        assert DeltaDisclosure(delta=delta).check(table(rows)).state is state
        assert verify([{"delta-disclosure": {"delta": delta}}], shown)[0].state is state


def test_the_average_counts_every_class() -> None:
    """Three classes in four rows: 3/4, which is met by a limit of 3/4 and by no smaller one."""
    rows: list[tuple[str | None, str | None, str]] = [
        ("1", "F", "a"),
        ("2", "F", "a"),
        ("3", "F", "a"),
        ("3", "F", "b"),
    ]
    shown = count_classes(table(rows), quasi=("zip", "sex"), sensitive=("s",))
    for limit, state in ((0.75, State.HOLDS), (0.74, State.FAILS)):
        verdict = AverageRisk(limit=limit).check(table(rows))
        assert (verdict.worst, verdict.state) == (0.75, state)
        assert verify([{"average-risk": {"limit": limit}}], shown)[0].state is state


def test_every_sensitive_column_counts() -> None:
    """Two diagnoses and one income in a class: one column of them gives the class away."""
    frame = pl.DataFrame({"zip": ["1"] * 3, "illness": ["flu", "asthma", "flu"], "income": ["high"] * 3})
    secret = Column(role=Role.SENSITIVE)
    columns = {"zip": Column(role=Role.QUASI), "illness": secret, "income": secret}
    data = Data(table=Table(frame=frame), schema=Schema(columns=columns))
    shown = count_classes(Data.plain(frame), quasi=("zip",), sensitive=("illness", "income"))
    for column, worst in ((None, 1), ("income", 1), ("illness", 2)):
        model = PSensitive(p=2, k=2, column=column)
        assert (model.check(data).worst, model.check(data).holds) == (worst, worst == 2)
        assert verify([{"p-sensitive": model.to_dict()}], shown)[0].worst == worst


def test_a_population_by_hand(tmp_path: Path) -> None:
    """ZIP 1 has 2 of its 4 people in the table, ZIP 2 its 2 people and one whom the population lacks, ZIP 3 nobody."""
    people = pl.DataFrame({"zip": ["1"] * 4 + ["2"] * 2 + ["3"]})
    people.write_csv(tmp_path / "people.csv")
    frame = pl.DataFrame({"zip": ["1"] * 2 + ["2"] * 3}, schema={"zip": pl.String})
    column = Column(role=Role.QUASI, kind="category")  # type: ignore[arg-type]
    whole = Data(table=Table(frame=frame), schema=Schema(columns={"zip": column}))
    first, second = (whole.with_frame(frame.filter(zip=code)) for code in ("1", "2"))

    def state(data: Data, model: type[PrivacyModel], **parameters: Any) -> list[State]:
        made = model.build({**parameters, "population": tmp_path / "people.csv"})
        shown = count_classes(data, quasi=("zip",), population=people.cast(pl.String))
        return [made.check(data).state, verify([{made.part_name(): made.to_dict()}], shown)[0].state]

    holds, fails = [State.HOLDS] * 2, [State.FAILS] * 2
    # k-map counts people, not rows: the third row of ZIP 2 is nobody of the population
    assert state(whole, KMap, k=2) == holds
    assert state(whole, KMap, k=3) == fails
    assert state(second, KMap, k=3) == fails
    assert state(first, KMap, k=4) == holds
    # half of ZIP 1, all of ZIP 2
    assert state(first, DeltaPresence, low=0.0, high=0.5) == holds
    assert state(first, DeltaPresence, low=0.0, high=0.4) == fails
    assert state(second, DeltaPresence, low=0.0, high=0.9) == fails
    assert state(whole, DeltaPresence, low=0.0, high=1.0) == holds
    # nobody of ZIP 3 is in the table, which is certain of its people too
    assert state(whole, DeltaPresence, low=0.1, high=1.0) == fails


def test_the_least_probability_of_presence_is_held_too() -> None:
    """Half of a class is in the table; a rule that wants three quarters at least says no, whoever asks."""
    model = DeltaPresence(low=0.75, high=1.0, population=Path("people.csv"))
    groups = ClassGroups(sizes=np.array([2, 4]), population=np.array([4, 4]))
    rule = _bound(model)
    assert rule.passes(groups).tolist() == [False, True]
    assert rule.worst(groups) == 0.5


def _bound(model: PrivacyModel) -> Any:
    counted = EquivalenceClasses(
        columns=(),
        hierarchies=(),
        levels=(),
        codes=np.zeros((1, 0), np.int32),
        sizes=np.array([2]),
        population=np.array([4]),
    )
    return model.bind(counted)


def judged_twice(model: TCloseness, data: Data) -> list[Any]:
    """The largest distance by the model and by the second opinion."""
    release = Release(table=data.table, manifest={})
    columns = {name: column.model_dump(mode="json") for name, column in data.schema.columns.items()}
    for name, column in data.schema.columns.items():
        columns[name]["hierarchy"] = None if column.hierarchy is None else column.hierarchy.public()
    recipe = Recipe.parse({"sfumato": 1, "columns": columns, "models": [{"t-closeness": model.to_dict()}]})
    return [model.check(data).worst, check(release, recipe=recipe)[0].worst]


def test_words_lie_in_the_order_of_their_hierarchy() -> None:
    """Low, middle and high at equal steps; by the alphabet, high and low would be neighbours."""
    grades = {"groups": {"order": ["low", "middle", "high"], "sizes": [2]}}
    columns = {
        "zip": Column(role=Role.QUASI),
        "s": Column.model_validate({"role": "sensitive", "hierarchy": grades}),
    }
    frame = pl.DataFrame({"zip": ["1"] * 2 + ["2"] * 2, "s": ["low", "low", "high", "high"]})
    data = Data.of(Table(frame=frame), Schema(columns=columns))
    assert judged_twice(TCloseness(t=0.4, distance="ordered"), data) == pytest.approx([0.5, 0.5])
    frame = frame.with_columns(s=pl.Series(["low", "middle", "high", "low"]))
    data = Data.of(Table(frame=frame), Schema(columns=columns))
    # the class of high and low against 2, 1, 1 of four: nothing moves at low, a quarter from middle to high
    assert judged_twice(TCloseness(t=0.4, distance="ordered"), data)[0] == pytest.approx(0.125)


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_no_answer_is_a_secret_like_any_other(distance: str) -> None:
    """A class without any answer is as far from the table as a class with one answer alone, in both opinions."""
    tree = {"taxonomy": {"tree": {"lung": ["asthma", "cough"], "skin": ["rash"]}}}
    columns = {
        "zip": Column(role=Role.QUASI),
        "s": Column.model_validate({"role": "sensitive", "hierarchy": tree}),
    }
    frame = pl.DataFrame({"zip": ["1"] * 3 + ["2"] * 3, "s": [None, None, None, "asthma", "cough", "rash"]})
    data = Data.of(Table(frame=frame), Schema(columns=columns))
    model, second = judged_twice(TCloseness(t=0.1, distance=distance), data)  # type: ignore[arg-type]
    assert second == pytest.approx(model)
    assert model > 0.3


@pytest.mark.parametrize(
    "values",
    [
        [1e20, 1e20, 2.5e-9, 2.5e-9],
        [datetime(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 2, 5), datetime(2020, 1, 2, 5)],
    ],
)
def test_both_opinions_spell_values_alike(values: list[Any]) -> None:
    frame = pl.DataFrame({"zip": ["1", "2", "1", "2"], "s": values})
    columns = {"zip": Column(role=Role.QUASI), "s": Column(role=Role.SENSITIVE)}
    data = Data.of(Table(frame=frame), Schema(columns=columns))
    assert judged_twice(TCloseness(t=0.1), data) == [0, 0]


def test_recursive_diversity_by_hand() -> None:
    """Frequencies 5, 3, 2: (c, 2) asks 5 < c (3 + 2), (c, 3) asks 5 < 2c; with the 5 healthy, 3 against 5 + 2."""
    rows: list[tuple[str | None, str | None, str]] = (
        [("1", "F", "a")] * 5 + [("1", "F", "b")] * 3 + [("1", "F", "c")] * 2
    )

    def worst(**more: Any) -> Any:
        return LDiversity(kind="recursive", c=9.0, **more).check(table(rows)).worst

    assert worst(l=2) == pytest.approx(1.0)
    assert worst(l=3) == pytest.approx(2.5)
    assert worst(l=2, healthy=("a",)) == pytest.approx(3 / 7)
    assert worst(l=3, healthy=("a",)) == pytest.approx(3 / 2)


def test_many_values_are_judged_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    rows = [(str(draw.integers(0, 9)), "FM"[row % 2], str(draw.integers(0, 40))) for row in range(300)]
    data = table(rows)  # type: ignore[arg-type]
    models = (LDiversity(l=13), TCloseness(t=0.6), DeltaDisclosure(delta=4.0), LDiversity(l=2, kind="recursive", c=0.2))
    whole = [model.check(data) for model in models]
    monkeypatch.setattr("sfumato.masking.equivalence_classes._BLOCK", 100)
    assert [model.check(data) for model in models] == whole
    blank = data.with_frame(data.table.frame.with_columns(pl.when(pl.col("zip") != "0").then(pl.col("zip"))))
    schema = table(rows, "wildcard").schema  # type: ignore[arg-type]
    overlapping = LDiversity(l=2).check(Data(table=blank.table, schema=schema))
    assert overlapping.state is State.NOT_CHECKED
    assert "overlap" in overlapping.reason


# --- sfumato check ----------------------------------------------------------------------------------------------------

RECIPE = {
    "sfumato": 1,
    "seed": 1,
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
        "sex": {"role": "quasi"},
        "s": {"role": "sensitive"},
    },
    "models": [{"k-anonymity": 3}, {"t-closeness": {"t": 0.4}}],
    "steps": [{"generalize": {"suppression": 0.1}}],
    "measures": ["uniqueness"],
}


def frame() -> pl.DataFrame:
    draw = np.random.default_rng(3)
    return pl.DataFrame(
        {"age": draw.integers(20, 60, 150), "sex": draw.choice(["F", "M"], 150), "s": draw.choice(["a", "b"], 150)}
    )


def test_a_release_is_checked_from_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame().write_csv(tmp_path / "original.csv")
    protect(RECIPE, frame(), n_targets=20).save(tmp_path / "out")
    assert main(["check", str(tmp_path / "out"), "--json", "--original", str(tmp_path / "original.csv")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [v["state"] for v in document["verdicts"]] == ["holds", "holds"]
    # derived columns cannot be looked for without the original, and what was not looked for does not hold
    assert main(["check", str(tmp_path / "out"), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [v["state"] for v in document["verdicts"]] == ["holds", "holds", "not checked"]
    assert main(["check", str(tmp_path / "out")]) == 1
    assert "k-anonymity" in capsys.readouterr().out


def test_a_table_of_somebody_else_is_checked_with_a_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame().write_csv(tmp_path / "theirs.csv")
    (tmp_path / "sfumato.yaml").write_text(json.dumps(RECIPE))
    assert main(["check", str(tmp_path / "theirs.csv"), "--recipe", str(tmp_path / "sfumato.yaml"), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdicts"][0]["state"] == "fails"
    assert document["verdicts"][0]["failing"] > 0
    assert main(["check", str(tmp_path / "theirs.csv"), "--json"]) == 2


def test_what_cannot_be_checked_does_not_hold(tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "all.csv")
    recipe = {**RECIPE, "models": [{"k-map": {"k": 2, "population": str(tmp_path / "all.csv")}}]}
    made = protect(recipe, frame(), n_targets=20).release
    assert [v.state for v in check(made)][:1] == [State.NOT_CHECKED]
    assert [v.state for v in check(made, population=tmp_path / "all.csv")][:1] == [State.HOLDS]
    gaps = pl.DataFrame({"age": [20, 20, None, 30], "sex": ["f", "f", "m", "m"]})
    shown = count_classes(Data.plain(gaps), quasi=("age", "sex"), missing={"age": "wildcard", "sex": "category"})
    [overlap] = verify([{"population-uniqueness": {"limit": 0.1, "fraction": 0.1}}], shown)
    assert overlap.state is State.NOT_CHECKED
    assert "overlap" in overlap.reason
    [unknown] = verify([{"a-model-of-tomorrow": {}}], shown)
    assert unknown.state is State.NOT_CHECKED


@pytest.mark.parametrize("estimator", ["pitman", "zayatz", "dankar"])
@pytest.mark.parametrize("fraction", [0.01, 0.3, 1.0])
def test_population_uniques_are_estimated_twice(estimator: str, fraction: float) -> None:
    draw = np.random.default_rng(4)
    for tail in (0.4, 0.9, 2.0):
        drawn = (draw.pareto(tail, 3000) * 20).astype(np.int64) % 50_000
        table = pl.DataFrame({"q": drawn})
        model = PopulationUniqueness(limit=0.05, fraction=fraction, estimator=estimator)  # type: ignore[arg-type]
        data = Data.of(Table(frame=table), Schema(columns={"q": Column(role=Role.QUASI)}))
        ours = model.check(data)
        [theirs] = verify([{"population-uniqueness": model.to_dict()}], count_classes(Data.plain(table), quasi=("q",)))
        assert 0 < ours.worst < 1
        assert theirs.worst == pytest.approx(ours.worst, rel=1e-6)
        assert theirs.state is ours.state


def test_a_population_that_cannot_be_estimated_does_not_pass() -> None:
    shown = count_classes(Data.plain(pl.DataFrame({"q": range(50)})), quasi=("q",))
    [alone] = verify([{"population-uniqueness": {"limit": 0.9, "fraction": 0.05}}], shown)
    assert (alone.state, alone.worst) == (State.FAILS, 1)


def test_two_releases_that_are_diverse_alone_may_not_be_together(tmp_path: Path) -> None:
    """Age in one, sex in the other: everybody has two possible values in each; two people have one in both."""
    people = pl.DataFrame(
        {"age": [20, 20, 30, 30], "sex": ["F", "M", "F", "M"], "s": ["a", "b", "c", "a"]},
    )
    columns: dict[str, Any] = {"age": {"role": "quasi"}, "sex": {"role": "quasi"}, "s": {"role": "sensitive"}}
    manifest = {"columns": columns, "models": [{"l-diversity": {"l": 2}}]}
    people.write_csv(tmp_path / "people.csv")
    first = Release(table=Table(frame=people.with_columns(pl.lit("*").alias("sex"))), manifest=manifest)
    second = Release(table=Table(frame=people.with_columns(pl.lit("*").alias("age"))), manifest=manifest)
    original = tmp_path / "people.csv"
    assert [v.state for v in check(first, original=original)] == [State.HOLDS]
    diverse, together = check(second, original=original, earlier=[first])
    assert diverse.holds
    assert (together.state, together.worst, together.failing) == (State.FAILS, 1, 2)
    assert check(first, original=original, earlier=[first])[1].holds
    assert check(first, earlier=[second])[-1].state is State.NOT_CHECKED
    other = Release(table=Table(frame=people.drop("s")), manifest={})
    assert check(first, original=original, earlier=[other])[1].state is State.NOT_CHECKED
    local = Release(
        table=Table(frame=people.with_columns(pl.Series("age", ["20", "*", "30-40", "30-40"]))), manifest={}
    )
    found = check(first, original=original, earlier=[local])[1]
    assert (found.state, found.worst, found.failing) == (State.FAILS, 1, 4)
