"""Neighbouring files: one odd row changes nothing that leaves a command with a guarantee, beyond what its noise hides.

Every door that promises something about one person runs on a file, and on the same file with one odd row more: text
among numbers, a fraction among whole numbers, another decimal sign, a longer or shorter line, a new category, an open
quotation mark, a cell of a megabyte, bytes that are no text. Both runs draw the same noise. Compared is everything that
is written, printed and returned: files, columns, types, keys, words, exit codes; and numbers, as far as one row and the
noise may change them.

Steps, estimators, protocols and plan files are found in their registries, so a new one is here by existing. A module
that charges a ledger and is not reached by any door fails `test_everything_that_charges_a_ledger_is_compared`.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sfumato
import sfumato.rng
from sfumato.cli import main
from sfumato.data.source import Source
from sfumato.dataset import Kind
from sfumato.dp.loss import pure
from sfumato.learning.catalogue import estimator, estimator_names
from sfumato.ledger.ledger import Ledger
from sfumato.parties.agreement import Agreement
from sfumato.parties.channels import LocalChannel
from sfumato.parties.coordinator import Coordinator
from sfumato.parties.party import Party
from sfumato.query.open_session import open_session
from sfumato.registry import registry
from sfumato.tables.plan_file import PlanFile
from sfumato.tables.summary_file import SummaryFile
from sfumato.tables.topdown_file import TopDownFile
from sfumato.testing.masking_sample import masking_frame, masking_sample

SOURCE = Path(sfumato.__file__).parent

Cells = list[str]


def numbers(text: str, pattern: str) -> Callable[[Cells], bytes]:
    """The numbers of the row replaced by one text."""
    return lambda cells: ",".join(text if re.fullmatch(pattern, cell) else cell for cell in cells).encode()


def last(text: bytes) -> Callable[[Cells], bytes]:
    """The last cell of the row replaced."""
    return lambda cells: ",".join([*cells[:-1], ""]).encode() + text


ODD: dict[str, Callable[[Cells], bytes]] = {
    "a text among numbers": numbers("unknown", r"-?[0-9.]+"),
    "a fraction among whole numbers": numbers("40.5", r"-?[0-9]+"),
    "another decimal sign": numbers('"40,5"', r"-?[0-9.]+"),
    "no known value": lambda cells: ",".join(["unknown"] * len(cells)).encode(),
    "new category": last(b"zebra"),
    "longer line": lambda cells: ",".join([*cells, "1", "2"]).encode(),
    "shorter line": lambda cells: ",".join(cells[:-1]).encode(),
    "open quotation mark": lambda cells: ('"' + ",".join(cells)).encode(),
    "quotation mark inside": last(b'"a"b'),
    "a megabyte": last(b"x" * 1_000_000),
    "no text": last(b"\xff\xfe\xe2"),
    "nothing": lambda cells: b"," * (len(cells) - 1),
}


@dataclass(frozen=True, kw_only=True)
class Door:
    """One command with a guarantee, on a file of people."""

    people: pl.DataFrame
    """The private table, which is written to people.csv."""
    files: dict[str, str] = field(default_factory=dict)
    """Other files: plans, recipes and public tables."""
    words: tuple[str, ...] = ()
    """The command line, in the folder of the files. What it writes is in `out`."""
    first: tuple[str, ...] = ()
    """A command line that makes another input file."""
    call: Callable[[], Any] | None = None
    """A function in place of the command line, for a door without one."""
    then: tuple[str, ...] = ()
    """A second command line, whose output follows from that of the first."""
    alone: bool = True
    """Whether each odd row is tried by itself. Not for doors that read as another one does."""
    share: float | None = None
    """By how much numbers may differ, in proportion; None if they cannot be compared one by one."""
    compared: str | tuple[str, ...] = ""
    """How the names of files and documents begin whose numbers are compared."""
    cap: tuple[str, ...] = ("--epsilon", "100000", "--delta", "0.5")


DOORS: dict[str, Callable[[], Door]] = {}


def door(name: str) -> Callable[[Callable[[], Door]], Callable[[], Door]]:
    def note(made: Callable[[], Door]) -> Callable[[], Door]:
        DOORS[name] = made
        return made

    return note


def staff(count: int = 300) -> pl.DataFrame:
    draw = np.random.default_rng(5)
    age = draw.integers(18, 90, count)
    return pl.DataFrame(
        {
            "age": age,
            "pay": np.round(draw.uniform(0, 100, count), 2) + 0.001,
            "code": draw.integers(1, 4, count),
            "sex": draw.choice(["f", "m"], count),
            "ill": np.where(age > 50, "yes", "no"),
        }
    )


# --- steps of recipes ---------------------------------------------------------------------------------------------


def step_door(step: str, parameters: dict[str, Any]) -> Door:
    """A recipe with one step, on the sample table of the contract of steps."""
    frame, schema = masking_frame(), masking_sample().schema
    # Some values of every column are missing, so that one more is nothing new.
    frame = frame.select(
        pl.when(pl.int_range(pl.len()) % 11 != place % 11).then(pl.col(name)).alias(name)
        for place, name in enumerate(frame.columns)
    )
    columns = {
        column: {"role": str(schema.column(column).role), "kind": str(Kind.of(dtype))}
        for column, dtype in frame.schema.items()
    }
    raised = {"epsilon": 50.0} if "epsilon" in parameters else {}
    recipe = {"sfumato": 1, "data": "people.csv", "columns": columns, "steps": [{step: {**parameters, **raised}}]}
    return Door(
        alone="learn" in parameters or step != "private-synthesis",
        people=frame,
        files={"recipe.yaml": yaml.safe_dump(recipe)},
        words=("protect", "recipe.yaml", "--out", "out", "--seconds", "0"),
        share=0.3,
        compared=("out/data.csv", "out/release.json"),
    )


for part in registry("method"):
    if getattr(part, "formal_guarantee", False):
        for place, example in enumerate(part.examples):
            DOORS[f"step {part.part_name()} {place}"] = partial(step_door, part.part_name(), dict(example))


# --- learning ---------------------------------------------------------------------------------------------------


PEOPLE = """
sfumato: 1
dataset: people
data: people.csv
unit: row
ledger: ledger.db
columns:
  pay: {role: quasi, domain: {low: 0, high: 100}}
  age: {role: quasi, domain: {low: 0, high: 100}}
  code: {role: quasi, domain: {values: [1, 2, 3]}}
  sex: {role: quasi, domain: {values: [f, m]}}
  ill: {role: quasi, domain: {values: ["no", "yes"]}}
"""


def learning_door(name: str) -> Door:
    known = set(estimator(name)().get_params())
    plan: dict[str, Any] = {
        **yaml.safe_load(PEOPLE), "learn": name, "features": ["age", "pay"], "epsilon": 200, "delta": 1e-6
    }  # fmt: skip
    if "categories" in known:
        plan["features"] += ["code", "sex"]
    if "classes" in known:
        plan["target"] = "ill"
    elif "target_bounds" in known:
        plan["target"] = "pay"
        plan["features"].remove("pay")
    return Door(
        people=staff(),
        files={"plan.yaml": yaml.safe_dump(plan), "probe.csv": staff(30).write_csv()},
        words=("learn", "plan.yaml", "--no-attacks", "--out", "out/model.json", "--json"),
        then=("predict", "out/model.json", "probe.csv", "--out", "out/predicted.csv"),
        alone=name == "naive-bayes",  # all estimators of a plan read alike
        share=0.2 if "target" in plan else None,
        compared="out/predicted.csv",
    )


for estimator_name in estimator_names():
    DOORS[f"learn {estimator_name}"] = partial(learning_door, estimator_name)


# --- tables -----------------------------------------------------------------------------------------------------

PLANS: dict[type[PlanFile], str] = {
    SummaryFile: PEOPLE
    + """
statistics: [{of: pay, by: [code]}, {of: pay, by: [sex, ill]}, {of: pay, on: [age]}]
budget: {rho: 10000}
""",
    TopDownFile: PEOPLE
    + """
budget: {rho: 10000}
areas: {data: areas.csv, levels: [code]}
by: [sex, ill]
levels: [1, 1]
queries: [{by: [sex, ill], share: 1}]
tables: [{level: code, by: [sex]}, {by: [ill]}]
microdata: true
""",
}


def plan_door(kind: type[PlanFile]) -> Door:
    return Door(
        people=staff(),
        files={"plan.yaml": PLANS[kind], "areas.csv": "code\n1\n2\n3\n"},
        words=("protect", "plan.yaml", "--out", "out", "--json"),
        share=0.05,
        cap=("--rho", "100000"),
    )


for plan_kind in PLANS:
    DOORS[f"plan {plan_kind.__name__}"] = partial(plan_door, plan_kind)


# --- graphs, questions, local answers ---------------------------------------------------------------------------


def friends(count: int = 60) -> pl.DataFrame:
    draw = np.random.default_rng(2)
    return pl.DataFrame({"one": draw.integers(0, count, 4 * count), "two": draw.integers(0, count, 4 * count)})


@door("graph edges")
def _() -> Door:
    return Door(
        people=friends(),
        files={
            "graph.yaml": "sfumato: 1\ngraph: {edges: people.csv, nodes: nodes.csv, drop: [duplicates, self-loops]}\n"
            "dataset: people\nledger: ledger.db\nstatistics: {protect: edges, epsilon: 1000}\n",
            "nodes.csv": "node\n" + "\n".join(map(str, range(60))) + "\n",
        },
        words=("protect", "graph.yaml", "--out", "out", "--json"),
        share=0.05,
    )


@door("graph nodes")
def _() -> Door:
    return Door(
        people=pl.DataFrame({"node": range(60), "town": ["a", "b"] * 30}),
        files={
            "graph.yaml": "sfumato: 1\ngraph: {edges: edges.csv, nodes: people.csv, drop: [duplicates, self-loops]}\n"
            "dataset: people\nledger: ledger.db\nstatistics: {protect: nodes, epsilon: 1000, max_degree: 20, "
            "max_triangles: 20}\n",
            "edges.csv": friends().write_csv(),
        },
        words=("protect", "graph.yaml", "--out", "out", "--json"),
        share=0.05,
    )


METADATA = """
sfumato: 1
dataset: people
ledger: ledger.db
person: row
tables:
  people:
    data: people.csv
    columns:
      age: {role: quasi, kind: integer, domain: {low: 0, high: 120}}
      pay: {role: quasi, kind: number, domain: {low: 0, high: 100}}
      code: {role: quasi, kind: integer, domain: {values: [1, 2, 3]}}
      sex: {role: quasi, kind: category, domain: {values: [f, m]}}
"""
QUESTIONS = (
    "SELECT COUNT(*) FROM people",
    "SELECT code, SUM(pay), AVG(age) FROM people GROUP BY code",
    "SELECT sex, COUNT(*) FROM people WHERE age > 40 AND pay < 90 GROUP BY sex",
)


def question_door(sql: str) -> Door:
    words = ("query", "metadata.yaml", sql, "--epsilon", "1000", "--json")
    alone = sql == QUESTIONS[1]
    return Door(people=staff(), files={"metadata.yaml": METADATA}, words=words, share=0.05, alone=alone)


for number, question in enumerate(QUESTIONS):
    DOORS[f"query {number}"] = partial(question_door, question)


def survey_door(protocol: str, *, numbers: bool) -> Door:
    question = {"domain": {"low": 0, "high": 100} if numbers else {"values": ["f", "m"]}}
    name = "pay" if numbers else "sex"
    survey = {"survey": "health", "people": 300, "epsilon": 8, "questions": {name: {**question, "protocol": protocol}}}
    return Door(
        people=staff(),
        files={"survey.yaml": yaml.safe_dump(survey)},
        words=("collect", "randomize", "survey.yaml", "people.csv", "--out", "out/reports.parquet"),
        then=("collect", "estimate", "survey.yaml", "out/reports.parquet", "--json"),
        alone=protocol == "generalized-randomized-response",
    )


for protocol in registry("frequency-protocol"):
    if "salt" not in protocol.model_fields:  # the others are for answers without a list, which no file has
        DOORS[f"collect {protocol.part_name()}"] = partial(survey_door, protocol.part_name(), numbers=False)
for protocol in registry("number-protocol"):
    DOORS[f"collect {protocol.part_name()}"] = partial(survey_door, protocol.part_name(), numbers=True)


@door("party reply")
def _() -> Door:
    of = ("--column", "number")
    paid = ("--epsilon", "50", "--delta", "0.01", "--ledger", "ledger.db", "--dataset", "people")
    return Door(
        people=pl.DataFrame({"number": range(1000, 1060), "name": [f"name {n}" for n in range(60)]}),
        files={"theirs.csv": pl.DataFrame({"number": range(1030, 1090)}).write_csv()},
        first=(
            "party",
            "blind",
            "theirs.csv",
            "--column",
            "number",
            "--out",
            "blinded.json",
            "--secret",
            "secret.json",
        ),
        words=("party", "reply", "people.csv", "blinded.json", *of, *paid, "--out", "out/reply.json"),
        then=("party", "overlap", "out/reply.json", "--secret", "secret.json", "--json"),
        share=0.05,
        compared="printed",
    )


def ask_parties() -> Any:
    """A question of three parties, of which the first has the file."""
    keys = {f"p{n}": Ed25519PrivateKey.from_private_bytes(n.to_bytes(32, "big")) for n in range(1, 4)}
    columns = yaml.safe_load(METADATA)["tables"]["people"]["columns"]
    named = {
        name: {"address": f"https://localhost:{9000 + n}", "key": key.public_key().public_bytes_raw().hex()}
        for n, (name, key) in enumerate(keys.items())
    }
    agreed = Agreement.model_validate(
        {"sfumato": 1, "federation": "people", "parties_per_person": 1, "colluding": 0, "parties": named,
         "person": "row", "tables": {"people": {"columns": columns}}}
    )  # fmt: skip
    staff(40).write_csv("others.csv")
    channels = {}
    for name, key in keys.items():
        Ledger.open(f"{name}.db").set_cap(pure(10**6), dataset="people")
        data = {"people": Source(location="people.csv" if name == "p1" else "others.csv")}
        session = open_session(agreed.dataset(data, ledger=f"{name}.db"), analyst="-")
        member = Party(name=name, agreement=agreed, session=session, identity=key)
        channels[name] = LocalChannel(party=member, analyst="ann")
    asked = Coordinator(agreement=agreed, channels=channels)
    return [asked.ask(sql, epsilon=1000).frame.to_dicts() for sql in (QUESTIONS[0], QUESTIONS[2])]


@door("party question")
def _() -> Door:
    return Door(people=staff(), call=ask_parties, share=0.05)


# --- runs -------------------------------------------------------------------------------------------------------


def line(row: tuple[Any, ...]) -> Cells:
    return pl.DataFrame([[cell] for cell in row]).write_csv(include_header=False).rstrip("\n").split(",")


def observed(folder: Path, made: Door, odd: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Everything that leaves: exit code, words, and the files in `out`."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    header, *rows = made.people.write_csv().encode().splitlines()
    more = [ODD[one](line(made.people.row(7))) for one in odd]
    Path("people.csv").write_bytes(b"\n".join([header, *more, *rows]) + b"\n")
    for name, text in made.files.items():
        Path(name).write_text(text)
    assert quiet("ledger", "cap", "ledger.db", "--dataset", "people", *made.cap)[0] == 0
    if any(word.startswith("out/") for word in made.words):
        Path("out").mkdir()
    if made.first:
        assert quiet(*made.first)[0] == 0
    draw = np.random.default_rng(11)
    monkeypatch.setattr(os, "urandom", draw.bytes)
    monkeypatch.setattr(sfumato.rng, "randbits", lambda count: int.from_bytes(draw.bytes(count // 8), "little"))
    found: dict[str, Any] = {} if made.call is None else {"exit 0": 0, **flat("returned", made.call())}
    for turn, words in enumerate(filter(None, (made.words, made.then))):
        code, out, err = quiet(*words)
        found |= {f"exit {turn}": code, f"error {turn}": plain(err)}
        found |= (
            flat(f"printed {turn}", json.loads(out))
            if "--json" in words and code == 0
            else {f"printed {turn}": plain(out)}
        )
    for file in sorted(Path("out").rglob("*")) if Path("out").is_dir() else ():
        found |= content(file)
    return found


def quiet(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    return code, out.getvalue(), err.getvalue()


NUMBER = re.compile(r"[0-9a-f]{16,}|-?\d[\d,]*\.?\d*(e[-+]?\d+)?")


def plain(text: str) -> str:
    """Words without their numbers and their layout."""
    return re.sub(r"[\s─━│]+", " ", NUMBER.sub("#", text)).strip()


def flat(name: str, value: Any) -> dict[str, Any]:
    """A document as paths to the values there. Lists have one path for all their items: noise decides how many."""
    found: dict[str, Any] = {}

    def walk(path: str, own: Any) -> None:
        match own:
            case dict():
                found.setdefault(path, set()).add("an object")
                for key, inner in own.items():
                    walk(f"{path}.{key}", inner)
            case list():
                found.setdefault(path, set()).add("a list")
                for inner in own:
                    walk(f"{path}[]", inner)
            case bool() | None | str():
                found.setdefault(path, set()).add(plain(own) if isinstance(own, str) else own)
            case _:
                found.setdefault(path, set()).add(type(own).__name__)
                found.setdefault(f"{path} numbers", []).append(own)

    walk(name, value)
    return found


def content(file: Path) -> dict[str, Any]:
    name = str(file)
    match file.suffix:
        case ".json":
            return flat(name, json.loads(file.read_text()))
        case ".csv":
            return {
                k: v for column in pl.read_csv(file, infer_schema=False) for k, v in described(name, column).items()
            }
        case ".parquet":
            return {f"{name} {column.name}": str(column.dtype) for column in pl.read_parquet(file)}
        case _ if file.is_file():  # a page: the words on it, because noise decides how many bars a picture has
            return {name: sorted(set(re.findall(r"[^\W\d_]+", NUMBER.sub("#", file.read_text(errors="replace")))))}
        case _:
            return {}


def described(name: str, column: pl.Series) -> dict[str, Any]:
    """A column of a released file: its type as a reader finds it, its categories, its mean, its gaps."""
    told = column.drop_nulls()
    kinds = {"whole": r"^-?\d+$", "number": r"^-?\d+(\.\d+)?(e-?\d+)?$", "day": r"^\d{4}-\d\d-\d\d"}
    fits = (kind for kind, pattern in kinds.items() if len(told) and told.str.contains(pattern).all())
    kind = next(fits, "text")
    gaps = column.null_count() / max(1, len(column))
    found: dict[str, Any] = {f"{name} {column.name}": kind, f"{name} {column.name} gaps numbers": [10 * gaps]}
    if kind in ("whole", "number"):
        numbers = told.cast(pl.Float64)
        found[f"{name} {column.name} numbers"] = [numbers.mean()]
    elif kind == "text" and told.n_unique() < 30:
        found[f"{name} {column.name} values"] = sorted({plain(value) for value in told})
    return found


def differences(one: dict[str, Any], other: dict[str, Any], made: Door, rows: int = 1) -> Iterator[str]:
    for key in sorted(one.keys() | other.keys()):
        a, b = one.get(key), other.get(key)
        if not key.endswith("numbers"):
            if a != b:
                yield f"{key}: {a!s:.200} and {b!s:.200}"
        elif made.share is not None and key.startswith(made.compared) and a and b and len(a) == len(b):
            size = np.maximum(np.abs(a), np.abs(b))
            shares = np.asarray(a).dtype.kind == "f"  # between 0 and 1; whole numbers are counts
            slack = np.where(shares & (size <= 1), 0.2, 2 * rows + 1)
            if (np.abs(np.subtract(a, b)) > slack + made.share * size).any():
                yield f"{key}: {a!s:.200} and {b!s:.200}"


CHARGED: set[str] = set()
"""Modules that were on the way to a charge in some run."""


@pytest.fixture(autouse=True)
def _charges(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = Ledger.charge

    def noted(self: Ledger, *given: Any, **named: Any) -> Any:
        CHARGED.update(frame.frame.f_globals.get("__name__", "") for frame in inspect.stack(0))
        return charge(self, *given, **named)

    monkeypatch.setattr(Ledger, "charge", noted)


@pytest.mark.parametrize("name", DOORS)
def test_an_odd_row_changes_nothing_that_leaves(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One odd row at a time; for doors that share their reading with another one, all at once."""
    made = DOORS[name]()
    before = observed(tmp_path / "before", made, (), monkeypatch)
    assert before["exit 0"] == 0, before
    told = []
    for odd in [(one,) for one in ODD] if made.alone else [tuple(ODD)]:
        after = observed(tmp_path / odd[0], made, odd, monkeypatch)
        told += [f"{', '.join(odd)}: {difference}" for difference in differences(before, after, made, len(odd))]
    assert not told, "\n".join(told)


def test_every_plan_with_a_budget_is_compared() -> None:
    found = {kind for kind in PlanFile.__subclasses__() if "budget" in kind.model_fields}
    assert found <= PLANS.keys(), "a plan with a budget is missing in PLANS"


ELSEWHERE = {
    "sfumato.api.collect": "the design of a survey, whose loss follows from its plan; no row is read",
    "sfumato.server.analyst_ledger": "the session's charge, to the account of a user",
    "sfumato.query.policies.differential_privacy": "a column in memory, for attacks on policies",
    "sfumato.query.grouping_sets": "parts of a question, whose table is the session's",
    "sfumato.query.workload": "several questions, whose table is the session's",
}
"""Modules that charge a ledger and read no file of their own."""


@cache
def charging_modules() -> set[str]:
    """Modules that charge a ledger: by `charge`, or by `charge_run` for a run as a whole."""
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(["sfumato", *path.relative_to(SOURCE).with_suffix("").parts])
        text = path.read_text(encoding="utf-8")
        if "charge" not in text:
            continue
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
        if names & {"charge", "charge_run"}:
            found.add(module)
    return {module for module in found if not {"demos", "testing", "ledger"} & set(module.split(".")[1:-1])}


def test_everything_that_charges_a_ledger_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of `charge` in a module that no door passes through is a promise that nobody compares."""
    expected = charging_modules() - ELSEWHERE.keys()
    if not expected <= CHARGED:  # the tests above did not run in this process
        for name, make in DOORS.items():
            observed(tmp_path / name, make(), (), monkeypatch)
    assert expected <= CHARGED, f"no door of this file passes through {sorted(expected - CHARGED)}"
    assert ELSEWHERE.keys() <= charging_modules()
