"""Local differential privacy: golden numbers, shuffling, repeated reports, RAPPOR, heavy hitters, survey files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.collecting import (
    Deployment,
    Duchi,
    GeneralizedRandomizedResponse,
    HadamardResponse,
    HeavyHitters,
    OptimizedLocalHashing,
    OptimizedUnaryEncoding,
    Piecewise,
    Rappor,
    SquareWave,
    Survey,
    averaging_attack,
    largest_shift,
)
from sfumato.collecting.collector import Collection
from sfumato.collecting.design import design_survey
from sfumato.collecting.device import randomize_answer, randomize_table, write_reports
from sfumato.collecting.report_scan import parquet_files, tally_with_duckdb, tally_with_engine
from sfumato.collecting.shuffling import shuffled_delta, shuffled_epsilon
from sfumato.data import read
from sfumato.data.atomic import path_digest
from sfumato.dp.loss import pure
from sfumato.errors import BadParameter, FileMissing, NotThatFormat, SfumatoError, UndecidedColumns, UnknownColumn
from sfumato.rng import Rng


class FixedSource:
    """The same bytes in every run, so that a run always gives the same verdict."""

    def __init__(self) -> None:
        self.take = np.random.Generator(np.random.PCG64(3)).bytes


SURVEY = """
survey: smoking
epsilon: 2
people: 6000
questions:
  smoker: {domain: {values: [never, former, daily]}}
  cigarettes: {domain: {low: 0, high: 60}}
  income: {domain: {low: 0, high: 200}, wanted: distribution}
"""


@pytest.mark.parametrize(
    ("protocol", "values", "expected"),
    [
        # 4 e / (e - 1)^2, ((e + 1) / (e - 1))^2 and (d - 2 + e) / (e - 1)^2 at epsilon 1 (Wang et al. 2017)
        (OptimizedUnaryEncoding, 1024, 3.6827),
        (HadamardResponse, 1024, 4.6827),
        (GeneralizedRandomizedResponse, 1024, 347.07),
    ],
)
def test_variances_of_the_literature(protocol: type, values: int, expected: float) -> None:
    assert protocol(epsilon=1, values=values).variance(1) == pytest.approx(expected, rel=1e-4)


def test_local_hashing_is_as_precise_as_unary_encoding() -> None:
    hashing = OptimizedLocalHashing(epsilon=1, values=1024).variance(1)
    assert hashing == pytest.approx(OptimizedUnaryEncoding(epsilon=1, values=1024).variance(1), rel=0.01)


def test_two_coins_lose_ln_3() -> None:
    protocol = GeneralizedRandomizedResponse(epsilon=str(log(3)), values=2)
    assert float(protocol.probabilities()[0]) == pytest.approx(0.75, abs=1e-8)


def test_worst_case_variances_of_means() -> None:
    """Duchi ((e+1)/(e-1))^2 and piecewise 4 e^(1/2) / (3 (e^(1/2) - 1)^2) on -1 .. 1 at epsilon 1."""
    e, root = exp(1), exp(0.5)
    assert Duchi(epsilon=1, low=-1, high=1).variance(1) == pytest.approx(((e + 1) / (e - 1)) ** 2, rel=1e-4)
    assert Piecewise(epsilon=1, low=-1, high=1).variance(1) == pytest.approx(4 * root / (3 * (root - 1) ** 2), rel=1e-4)


def brute_delta(epsilon: float, local: float, people: int) -> float:
    """The two distributions of the proof, written out outcome by outcome."""
    from scipy.stats import binom

    p = exp(local) / (1 + exp(local))
    first: Counter[tuple[int, int]] = Counter()
    second: Counter[tuple[int, int]] = Counter()
    for c in range(people):
        for a in range(c + 1):
            weight = binom.pmf(c, people - 1, exp(-local)) * binom.pmf(a, c, 0.5)
            for d, chance in ((1, p), (0, 1 - p)):
                first[a + d, c - a + 1 - d] += weight * chance
                second[a + 1 - d, c - a + d] += weight * chance
    return sum(max(0.0, first[y] - exp(epsilon) * second[y]) for y in set(first) | set(second))


@pytest.mark.parametrize(("epsilon", "local", "people"), [(0.2, 1.0, 12), (0.0, 2.0, 9), (0.9, 1.0, 5), (0.5, 3.0, 25)])
def test_shuffling_is_the_sum_over_all_outcomes(epsilon: float, local: float, people: int) -> None:
    found = shuffled_delta(epsilon, local=local, people=people)
    assert found == pytest.approx(brute_delta(epsilon, local, people), rel=1e-6)
    assert found >= brute_delta(epsilon, local, people) * (1 - 1e-12)


def test_shuffling_amplifies_more_with_more_people_and_never_exceeds_the_local_loss() -> None:
    sizes = [shuffled_epsilon(local=2, people=n, delta=1e-6) for n in (10, 1000, 20_000)]
    assert 2 >= sizes[0] > sizes[1] > sizes[2] > 0
    with pytest.raises(BadParameter):
        shuffled_epsilon(local=2, people=1, delta=1e-6)


def test_repeated_reports_are_averaged_unless_they_are_memoized() -> None:
    protocol, codes = GeneralizedRandomizedResponse(epsilon=1, values=4), np.arange(4000) % 4
    fresh = averaging_attack(protocol, codes, reports=60, memoized=False, rng=Rng(1), confidence=0.999999)
    kept = averaging_attack(protocol, codes, reports=60, memoized=True, rng=Rng(1), confidence=0.999999)
    best = float(protocol.probabilities()[0])
    assert fresh.low > 0.9
    assert kept.low < best < kept.high
    assert fresh.baseline == 0.25


def test_a_budget_that_is_refilled_every_day_adds_up() -> None:
    assert Deployment(loss=pure(4), reports_per_day=2, days=365, memoized=False).total().size == 2920
    assert Deployment(loss=pure(4), reports_per_day=2, days=365, memoized=True, answers=5).total().size == 20
    assert Deployment(loss=pure(4), reports_per_day=1, days=2, memoized=True, answers=5).total().size == 8
    with pytest.raises(BadParameter):
        Deployment(loss=pure(4), reports_per_day=0, days=1, memoized=True)


@pytest.mark.parametrize("protocol", [GeneralizedRandomizedResponse, OptimizedUnaryEncoding, HadamardResponse])
def test_dishonest_clients_reach_the_bound_and_not_more(protocol: type) -> None:
    """Clients of other values send the reports that support value 0 whenever they can."""
    made = protocol(epsilon=1, values=8)
    codes = np.ones(2000, dtype=int)
    reports = made.randomize(codes)
    support = made.supported(made.randomize(np.zeros(4000, dtype=int)))[:, 0]
    pool = made.randomize(np.zeros(4000, dtype=int))
    helpful = pool[made.supported(pool)[:, 0]][:200]
    assert support.any()
    before = made.estimate(made.tally(reports)).counts[0]
    p, q = (float(chance) for chance in made.probabilities())
    moved = reports.copy()
    moved[:200] = helpful
    after = made.estimate(made.tally(moved)).counts[0]
    bound = largest_shift(made, dishonest=200, people=2000) * 2000
    expected = bound + 200 * q / (p - q) - made.supported(reports[:200])[:, 0].sum() / (p - q)
    assert after - before == pytest.approx(expected)
    assert bound == pytest.approx(200 * (1 - q) / (p - q))


def test_rappor_states_both_of_its_losses() -> None:
    """Erlingsson et al. 2014: epsilon_infinity = 2 h ln((1 - f/2) / (f/2)); per bit it is ln 3 at f = 1/2."""
    rappor = Rappor(bits=128, hashes=2, cohorts=8, f="1/2", p="1/2", q="3/4", salt="poll")
    assert float(rappor.loss_of_all_reports().size) == pytest.approx(4 * log(3))
    one, zero = 0.75 * 0.75 + 0.25 * 0.5, 0.75 * 0.5 + 0.25 * 0.75
    assert float(rappor.loss_of_one_report().size) == pytest.approx(2 * log(one * (1 - zero) / (zero * (1 - one))))
    with pytest.raises(BadParameter):
        Rappor.build({"bits": 8, "hashes": 1, "cohorts": 1, "f": 0, "p": 0.5, "q": 0.75, "salt": ""})
    with pytest.raises(BadParameter):
        Rappor.build({"bits": 8, "hashes": 1, "cohorts": 1, "f": 0.5, "p": 0.75, "q": 0.5, "salt": ""})


def test_rappor_decodes_frequent_words_and_no_absent_one() -> None:
    rappor = Rappor(bits=64, hashes=2, cohorts=8, f="1/4", p="1/4", q="3/4", salt="poll")
    words = ["north"] * 9000 + ["south"] * 6000 + ["east"] * 4000 + ["west"] * 1000
    source = FixedSource()
    kept = rappor.permanent(words, source=source)
    reports = rappor.report(kept, source=source)
    found = rappor.estimate(kept.cohorts, reports, ["north", "south", "east", "west", *(f"no{i}" for i in range(40))])
    true = Counter(words)
    assert [word.word for word in found][:3] == ["north", "south", "east"]
    assert not any(word.word.startswith("no") and word.word != "north" for word in found)
    assert all(word.low <= true[word.word] <= word.high for word in found)
    clear = kept.bits.sum() / kept.bits.size
    assert abs(reports.mean() - (clear * 0.75 + (1 - clear) * 0.25)) < 0.005, "set bits are cleared as often as stated"


def test_heavy_hitters_of_an_unknown_vocabulary() -> None:
    hitters = HeavyHitters(epsilon=4, alphabet="abcdefghijklmnopqrstuvwxyz", length=5, most=20)
    words = ["tiger"] * 12_000 + ["cat"] * 9_000 + ["catch"] * 6_000 + [f"{chr(97 + i % 26)}x" for i in range(3000)]
    found = hitters.find(*hitters.randomize(words, source=FixedSource()))
    assert [word.word for word in found][:3] == ["tiger", "cat", "catch"]
    true = Counter(words)
    assert all(word.low <= true[word.word] <= word.high for word in found[:3])
    assert hitters.loss().size <= 4


def test_square_wave_reconstructs_a_distribution() -> None:
    numbers = np.random.default_rng(2).beta(2, 5, 20_000) * 100
    protocol = SquareWave(epsilon=2, low=0, high=100, bins=64)
    tally = protocol.tally(protocol.randomize(numbers, source=FixedSource()))
    shares = protocol.histogram(tally)
    true = np.histogram(numbers, bins=64, range=(0, 100))[0] / len(numbers)
    assert shares.sum() == pytest.approx(1)
    assert np.abs(np.cumsum(shares) - np.cumsum(true)).max() < 0.04
    centre, low, high = protocol.quantiles(tally, [0.5])
    assert low[0] <= centre[0] <= high[0]
    assert abs(centre[0] - np.median(numbers)) < 3


def test_the_design_picks_the_protocol_with_the_smallest_error() -> None:
    survey = Survey.parse(SURVEY)
    names = {name: protocol.part_name() for name, protocol in survey.protocols().items()}
    assert names == {"smoker": "generalized-randomized-response", "cigarettes": "hybrid", "income": "square-wave"}
    many = Survey.parse(SURVEY.replace("[never, former, daily]", str([f"v{i}" for i in range(300)])))
    chosen = many.protocols()["smoker"]
    assert chosen.variance(1) <= 1.02 * OptimizedUnaryEncoding(epsilon=2, values=300).variance(1)
    assert design_survey(survey).epsilon_in_all <= 2
    daily = Survey.parse(SURVEY + "repeats: {per_day: 1, days: 30, memoized: false}\n")
    assert design_survey(daily).epsilon_in_all == pytest.approx(60)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("[never, former, daily]", "[never]"),
        ("[never, former, daily]", "[a, b], low: 1"),
        ("{low: 0, high: 60}", "{low: 60, high: 0}"),
        ("epsilon: 2", "epsilon: 0"),
        ("epsilon: 2", "epsilon: 2\ndefault: 3"),
        ("people: 6000", ""),
        ("[never, former, daily]}", "[a, b]}, protocol: nonsense"),
        ("[never, former, daily]", "[never, never]"),
        ("[never, former, daily]", "[never, null]"),
        ("{domain: {values: [never, former, daily]}}", "{}"),
        ("{domain: {values: [never, former, daily]}}", "sensitive"),
        ("{domain: {values: [never, former, daily]}}", "{domain: {first: 2020-01-01, last: 2024-01-01}}"),
        ("{low: 0, high: 60}}", "{low: 0, high: 60}, kind: category}"),
    ],
)
def test_a_wrong_survey_is_refused(wrong: str, word: str) -> None:
    with pytest.raises(SfumatoError):
        Survey.parse(SURVEY.replace(wrong, word))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "survey.yaml").write_text(SURVEY)
    draw = np.random.default_rng(0)
    pl.DataFrame(
        {
            "smoker": draw.choice(["never", "former", "daily"], 6000, p=[0.6, 0.25, 0.15]),
            "cigarettes": draw.poisson(6, 6000),
            "income": draw.uniform(20, 80, 6000),
        }
    ).write_csv(tmp_path / "answers.csv")
    return tmp_path


def test_the_command_line_from_answers_to_estimates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey, answers, reports = (str(folder / name) for name in ("survey.yaml", "answers.csv", "reports.parquet"))
    assert main(["collect", "design", survey, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"]["all"] <= 2
    assert main(["collect", "randomize", survey, answers, "--out", reports]) == 0
    assert main(["collect", "randomize", survey, answers, "--out", reports]) == 2, "nothing is replaced unasked"
    tally = str(folder / "tally.json")
    capsys.readouterr()
    assert main(["collect", "estimate", survey, reports, "--tally", tally, "--json"]) == 0
    direct = json.loads(capsys.readouterr().out)
    assert main(["collect", "estimate", survey, "--merge", tally, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == direct
    never = direct["questions"][0]["values"][0]
    people = direct["questions"][0]["reports"]
    assert abs(never["count"] / people - 0.6) < 0.1
    assert main(["collect", "estimate", survey, reports]) == 0
    assert "95 % interval" in capsys.readouterr().out


HOSPITAL = """
sfumato: 1
dataset: hospital
person: patients
ledger: ledger.db
tables:
  patients:
    data: patients.csv
    key: id
    columns:
      id: {role: identifier}
      sex: {role: quasi, kind: category, domain: {values: [f, m]}}
      age: {role: quasi, kind: integer, domain: {low: 0, high: 120}}
      ill: {role: sensitive, kind: boolean}
      note: {role: undecided, domain: {values: [a, b]}}
"""
ASKED = "sfumato: 1\nsurvey: sleep\ndataset: hospital.yaml\nepsilon: 1/2\npeople: 3000\nquestions: "


def asked(folder: Path, questions: str) -> Path:
    (folder / "hospital.yaml").write_text(HOSPITAL)
    (folder / "sleep.yaml").write_text(ASKED + questions + "\n")
    return folder / "sleep.yaml"


def test_questions_are_columns_of_the_data_set(tmp_path: Path) -> None:
    written = "{sex: {domain: {values: [f, m]}}, age: {domain: {low: 0, high: 120}}, ill: {kind: boolean}}"
    direct = Survey.parse(ASKED.replace("dataset: hospital.yaml\n", "") + written)
    for questions in ("[sex, age, ill]", "{sex: , age: {wanted: mean}, ill: {}}"):
        survey = Survey.load(asked(tmp_path, questions))
        assert survey.fingerprint() == direct.fingerprint()
        assert survey.questions["ill"].texts == ("false", "true")
    own = Survey.load(asked(tmp_path, "{sex: {domain: {values: [f, m, other]}}}"))
    assert own.questions["sex"].texts == ("f", "m", "other")
    for questions, code in (("[id]", BadParameter), ("[note]", UndecidedColumns), ("[nothing]", UnknownColumn)):
        with pytest.raises(code):
            Survey.load(asked(tmp_path, questions))


def test_a_survey_of_a_data_set_is_charged_and_registered_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    survey, client = asked(tmp_path, "[sex, age]"), tmp_path / "client.json"
    words = ["collect", "design", str(survey), "--client", str(client)]
    assert main(words[:3]) == 0
    assert not (tmp_path / "ledger.db").exists()  # to look at a design costs nothing
    assert main(words) == 2
    assert not client.exists()  # without a budget nothing is written
    assert main(["ledger", "cap", str(tmp_path / "hospital.yaml"), "--epsilon", "3/4"]) == 0
    assert main(words) == main([*words, "--force"]) == 0
    [line] = sfumato.ledger_overview(tmp_path / "hospital.yaml").register
    assert (line.kind, line.state, line.unit) == ("survey", "left", "id")
    assert line.loss is not None
    assert line.loss.size == pytest.approx(Survey.load(survey).loss().size)
    assert (line.dataset, line.name, line.sha256) == ("hospital", "client.json", path_digest(client))
    survey.write_text(survey.read_text() + "repeats: {per_day: 1, days: 2, memoized: false}\n")
    capsys.readouterr()
    assert main([*words, "--force"]) == 1  # twice the loss is more than the budget
    assert "SFU-701" in capsys.readouterr().err
    assert json.loads(client.read_text())["reports"] == 1


def test_python_collects_as_the_command_line_does(folder: Path) -> None:
    reports = sfumato.randomize_answers(folder / "survey.yaml", folder / "answers.csv", out=folder / "r.parquet")
    assert reports.height == 6000
    found = sfumato.estimate_survey(folder / "survey.yaml", [folder / "r.parquet"])
    found.save_tally(folder / "tally.json")
    again = sfumato.estimate_survey(folder / "survey.yaml", tallies=[folder / "tally.json"])
    assert again.to_dict() == found.to_dict()
    never = found.to_frame().filter(pl.col("value") == "never").row(0, named=True)
    assert never["low"] <= never["estimate"] <= never["high"]
    assert abs(never["estimate"] - 0.6) < 0.1
    assert sfumato.design_survey(folder / "survey.yaml").epsilon_in_all == pytest.approx(2)
    one = sfumato.randomize_answers(folder / "survey.yaml", {"smoker": "never", "cigarettes": 1, "income": 2})
    assert set(one) == {"survey", "question", "report"}


def test_one_person_sends_one_report_and_repeats_it_from_memory(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    survey = folder / "daily.yaml"
    survey.write_text(SURVEY + "repeats: {per_day: 1, days: 30, memoized: true}\n")
    arguments = ["collect", "randomize", str(survey), "--memory", str(folder / "me.json")]
    answers = ["--answer", "smoker=daily", "--answer", "cigarettes=7", "--answer", "income=50"]
    sent = []
    for _ in range(3):
        assert main([*arguments, *answers]) == 0
        sent.append(capsys.readouterr().out)
    assert len(set(sent)) == 1
    assert (folder / "me.json").stat().st_mode & 0o077 == 0
    lines = folder / "reports.jsonl"
    lines.write_text("".join(sent))
    assert main([*arguments, "--answer", "smoker=daily"]) == 2
    capsys.readouterr()
    assert main([*arguments, *answers[:1], "smoker=secretive", *answers[2:]]) in (0, 2)
    assert "secretive" not in capsys.readouterr().err


def test_reports_of_another_survey_and_garbage_are_refused(folder: Path) -> None:
    survey = Survey.parse(SURVEY)
    other = Survey.parse(SURVEY.replace("epsilon: 2", "epsilon: 1"))
    report = randomize_answer(other, {"smoker": "never", "cigarettes": 1, "income": 2})
    path = folder / "reports.jsonl"
    path.write_text(json.dumps(report) + "\n")
    with pytest.raises(BadParameter, match="another survey"):
        Collection(survey).add_file(path)
    for text in ("{}", "not json", '{"survey": "x", "question": "smoker", "report": "%%"}'):
        path.write_text(text + "\n")
        with pytest.raises(NotThatFormat):
            Collection(survey).add_file(path)
    collection = Collection(survey)
    with pytest.raises(BadParameter):
        collection.add("smoker", [b"12345"])
    with pytest.raises(BadParameter):
        collection.add("nothing", [b"1"])
    with pytest.raises(BadParameter):
        collection.merge({"survey": "x", "questions": {}})
    assert collection.reports == 0


@pytest.fixture
def parts(folder: Path) -> tuple[Survey, list[Path]]:
    """The reports of 6,000 people in three files of one folder."""
    survey = Survey.parse(SURVEY)
    reports = randomize_table(survey, read(folder / "answers.csv"))
    (folder / "reports").mkdir()
    files = [folder / "reports" / f"{i}.parquet" for i in range(3)]
    for place, file in enumerate(files):
        write_reports(survey, reports[place::3], file)
    return survey, files


def numbers(collection: Collection) -> dict[str, Any]:
    """All counts, and sums of floats without the digits that depend on the order in which they were added."""
    return {
        f"{question} {name}": float(f"{value:.9e}") if isinstance(value, float) else value
        for question, tally in collection.to_dict()["questions"].items()
        for name, value in tally.items()
    }


def counted(survey: Survey, files: list[Path]) -> Collection:
    collection = Collection(survey)
    for file in files:
        collection.add_file(file)
    return collection


def test_duckdb_counts_many_files_as_the_collector_does(
    parts: tuple[Survey, list[Path]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sfumato.collecting.report_scan._ROWS", 500)
    survey, files = parts
    folder = files[0].parent
    for given in ([folder], [folder / "*.parquet"], [*files, folder]):
        found = tally_with_duckdb(survey, parquet_files(given))
        assert found.reports == 6000
        assert numbers(found) == numbers(counted(survey, files))
    assert main(["collect", "estimate", str(folder.parent / "survey.yaml"), str(folder), "--engine", "duckdb"]) == 0
    assert "never" in capsys.readouterr().out


def test_spark_counts_many_files_as_the_collector_does(parts: tuple[Survey, list[Path]], java: str) -> None:
    survey, files = parts
    assert numbers(tally_with_engine("spark", survey, files)) == numbers(counted(survey, files))


def test_an_engine_refuses_files_of_another_survey_and_other_formats(parts: tuple[Survey, list[Path]]) -> None:
    _, files = parts
    other = Survey.parse(SURVEY.replace("epsilon: 2", "epsilon: 3"))
    with pytest.raises(BadParameter, match="another survey"):
        tally_with_duckdb(other, files)
    for wrong, error in ((files[0].with_suffix(".jsonl"), BadParameter), (files[0].parent / "x*", FileMissing)):
        with pytest.raises(error):
            parquet_files([wrong])


DAILY = """
survey: smoking
epsilon: 2
people: 300
questions: {smoker: {domain: {values: [never, former, daily, other]}}}
repeats: {per_day: 1, days: 30, memoized: true}
"""


def test_processes_that_ask_at_once_draw_one_report(tmp_path: Path) -> None:
    """Three independent draws among 50 values at epsilon 2 would agree with probability below 0.01."""
    survey = tmp_path / "survey.yaml"
    survey.write_text(DAILY.replace("[never, former, daily, other]", str([f"v{i}" for i in range(50)])))
    command = [sys.executable, "-m", "sfumato", "collect", "randomize", str(survey), "--answer", "smoker=v7"]
    running = [
        subprocess.Popen([*command, "--memory", str(tmp_path / "me.json")], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    sent = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * 3
    assert len(set(sent)) == 1
    assert json.loads((tmp_path / "me.json").read_text())["sent"] == 3


@pytest.mark.parametrize(
    "text",
    ["", "garbage", "[]", "null", '{"survey": 1}', '{"survey": "x", "question": "smoker", "reports": [], "sent": 1}'],
)
def test_a_damaged_memory_is_refused_in_words(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    survey, memory = tmp_path / "survey.yaml", tmp_path / "me.json"
    survey.write_text(DAILY)
    memory.write_text(text)
    command = ["collect", "randomize", str(survey), "--answer", "smoker=daily", "--memory", str(memory)]
    assert main(command) == 2
    assert "damaged" in capsys.readouterr().err
    assert memory.read_text() == text


def test_reports_that_are_sent_again_count_as_one_person() -> None:
    """80 trials of 300 people over 30 days: intervals that take copies for people cover about 28 %."""
    survey, source = Survey.parse(DAILY), FixedSource()
    protocol = survey.protocols()["smoker"]
    codes = np.random.default_rng(4).choice(4, 300, p=[0.5, 0.3, 0.15, 0.05])
    true = np.bincount(codes, minlength=4) / 300
    covered, naive = [], []
    for _ in range(80):
        collection = Collection(survey)
        collection.add("smoker", [row.tobytes() for row in protocol.randomize(codes, source=source)] * 30)
        [found], [day] = collection.estimate(), collection.estimate(copies=1)
        assert (found.reports, found.people) == (9000, 300)
        for estimate, list_ in ((found.frequencies, covered), (day.frequencies, naive)):
            assert estimate is not None
            list_.append((estimate.low / 9000 <= true) & (true <= estimate.high / 9000))
    assert np.mean(covered) > 0.88
    assert np.mean(naive) < 0.5
    with pytest.raises(BadParameter, match="1 to 30"):
        collection.estimate(copies=31)


def test_means_of_reports_that_are_sent_again_cover() -> None:
    """200 trials of 200 people over 10 days; without the copies about 47 % would cover."""
    protocol, source = Piecewise(epsilon=1, low=0, high=10), FixedSource()
    numbers = np.random.default_rng(5).uniform(0, 10, 200)
    covered = []
    for _ in range(200):
        tally = protocol.tally(np.tile(protocol.randomize(numbers, source=source), 10))
        mean = protocol.mean(tally, copies=10)
        covered.append(mean.low <= numbers.mean() <= mean.high)
    assert np.mean(covered) > 0.87


@pytest.mark.parametrize(("epsilon", "copies"), [(1, 1), (3, 4)])
def test_intervals_of_quantiles_cover(epsilon: int, copies: int) -> None:
    """Numbers at two places: intervals by resampling a smoothed fit cover none of the quantiles.

    Five trials of two quantiles, whose intervals hold together with 95 %: at most three trials may fail.
    """
    source, chances, covered = FixedSource(), [0.5, 0.9], []
    protocol = SquareWave(epsilon=epsilon, low=0, high=100)
    for trial in range(5):
        numbers = np.random.default_rng(trial).choice([10.0, 88.0], 1500, p=[0.7, 0.3])
        tally = protocol.tally(np.tile(protocol.randomize(numbers, source=source), copies))
        centre, low, high = protocol.quantiles(tally, chances, copies=copies)
        true = np.quantile(numbers, chances, method="inverted_cdf")
        covered.append(bool(((low <= true) & (true <= high)).all()))
        assert ((low <= centre) & (centre <= high)).all()
        assert (high - low).min() < 60
    assert sum(covered) >= 2
