"""Noise shares add up to the central noise, and the messages of a secure sum tell nothing.

With 100,000 noises the mean of abs(x) is known to 0.32 % (one standard error): a scale 2 % off is seen, and a
chi-square test sees a wrong shape. The half-noise mutants below are far beyond both.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import signal, stats

from parties_sample import agreement, coordinator, parties, rows
from sfumato.dp.noise_shares import laplace_shares, polya
from sfumato.dp.noise_sums import laplace_radius
from sfumato.errors import PartyFailed
from sfumato.parties.channels import LocalChannel
from sfumato.parties.residues import add
from sfumato.parties.secure_sum import OpenRound

COUNT = 100_000
NEVER = 1e-9


def total(scale: Fraction, parties: int, shares: int, count: int = COUNT) -> npt.NDArray[np.int64]:
    return np.sum([laplace_shares(scale, shares, count) for _ in range(parties)], axis=0)


def shape_p(noise: npt.NDArray[np.int64], scale: float, shape: float = 1.0) -> float:
    """p-value of a chi-square test against the difference of two negative binomial variables."""
    far = int(8 * scale * shape) + 4
    q = np.exp(-1 / scale)
    pmf = stats.nbinom.pmf(np.arange(5 * far), shape, 1 - q)
    both = signal.fftconvolve(pmf, pmf[::-1])
    middle = len(pmf) - 1
    inside = both[middle - far : middle + far + 1] / both.sum()
    chances = np.append(inside, 1 - inside.sum())
    seen = np.append(
        np.bincount((noise + far)[np.abs(noise) <= far], minlength=2 * far + 1), (np.abs(noise) > far).sum()
    )
    enough = chances * len(noise) > 5
    pooled = [np.append(x[enough], x[~enough].sum()) for x in (seen, chances * len(noise))]
    kept = pooled[1] > 0
    return float(stats.chisquare(pooled[0][kept], pooled[1][kept]).pvalue)


def size_error(noise: npt.NDArray[np.int64], scale: float) -> float:
    """Relative error of the mean of abs(x) against discrete Laplace noise, in standard errors."""
    q = np.exp(-1 / scale)
    expected = 2 * q / (1 - q * q)
    return float(abs(np.abs(noise).mean() - expected) / (np.abs(noise).std() / len(noise) ** 0.5))


@pytest.mark.parametrize(("scale", "members"), [(Fraction(1, 2), 2), (Fraction(7, 2), 5), (Fraction(1000), 3)])
def test_the_shares_of_all_parties_are_discrete_laplace_noise(scale: Fraction, members: int) -> None:
    noise = total(scale, members, members)
    assert shape_p(noise, float(scale)) > NEVER
    assert size_error(noise, float(scale)) < 6
    assert abs(noise.mean()) < 6 * noise.std() / COUNT**0.5


@pytest.mark.parametrize(("made", "shares"), [(5, 10), (5, 6), (4, 5)])
def test_shares_that_are_too_small_are_seen(made: int, shares: int) -> None:
    """Half of the noise; shares for one party more than there are; one party that adds none."""
    noise = total(Fraction(7, 2), made, shares)
    assert shape_p(noise, 3.5) < NEVER
    assert size_error(noise, 3.5) > 6


def test_shares_enlarged_against_colluding_parties_leave_the_whole_noise_without_them() -> None:
    members, colluding = 5, 2
    honest = total(Fraction(3), members - colluding, members - colluding)
    assert shape_p(honest, 3.0) > NEVER
    everybody = total(Fraction(3), members, members - colluding)
    assert shape_p(everybody, 3.0, shape=members / (members - colluding)) > NEVER


def test_one_share_alone_is_polya() -> None:
    drawn = polya(Fraction(5), 4, COUNT)
    q = np.exp(-1 / 5)
    most = 60
    expected = stats.nbinom.pmf(np.arange(most), 0.25, 1 - q) * COUNT
    seen = np.bincount(drawn, minlength=most)[:most]
    expected, seen = np.append(expected, COUNT - expected.sum()), np.append(seen, COUNT - seen.sum())
    assert stats.chisquare(seen, expected).pvalue > NEVER
    assert polya(Fraction(5), 1, 3).shape == (3,)


@pytest.mark.parametrize("shape", [1.0, 1.25, 1.5, 2.0, 3.0, 10.0])
def test_the_interval_for_enlarged_noise_covers_it(shape: float) -> None:
    for scale in (0.2, 1.0, 8.0):
        q = np.exp(-1 / scale)
        pmf = stats.nbinom.pmf(np.arange(int(60 * scale * shape) + 60), shape, 1 - q)
        noise = signal.fftconvolve(pmf, pmf[::-1])
        sizes = np.abs(np.arange(len(noise)) - (len(pmf) - 1))
        for chance in (0.5, 0.1, 0.05, 0.01, 1e-4):
            radius = laplace_radius(Fraction(scale * shape), Fraction(1), Fraction(chance))
            assert noise[sizes > radius].sum() <= chance * (1 + 1e-6)


CELLS = tuple(f"c{i:03d}" for i in range(400))
COLUMN = {"person": {"kind": "integer"}, "ward": {"kind": "category", "domain": {"values": list(CELLS)}}}
HISTOGRAM = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"


class Stopping(LocalChannel):
    """A party that stops before it contributes."""

    def contribute(self, *given: object) -> npt.NDArray[np.uint64]:
        raise PartyFailed("gone")


def noises(members: int, *, colluding: int = 0, per_person: int = 1, stopping: int = 0) -> npt.NDArray[np.int64]:
    """Noise of 4,000 cells of histograms over empty tables, at epsilon 1/4."""
    table = {"visits": {"bounds": {"rows": 1, "groups": 1}, "columns": COLUMN}}
    allowed = {"dropouts": stopping, "min_parties": members - stopping}
    agreed = agreement(members, tables=table, colluding=colluding, parties_per_person=per_person, **allowed)
    empty = rows("c000", 0, 0.0).drop("bill")
    everybody = parties(agreed, [empty] * members)
    asked = coordinator(agreed, everybody)
    stopped = {name: Stopping(party=everybody[name], analyst="ann") for name in sorted(everybody)[:stopping]}
    asked = replace(asked, channels={**asked.channels, **stopped})
    return np.concatenate([asked.ask(HISTOGRAM, epsilon="1/4", fit=0).frame["COUNT(*)"].to_numpy() for _ in range(10)])


def test_answers_of_parties_have_the_noise_of_the_central_answer() -> None:
    """4,000 noises: an error of 10 % in size is seen."""
    noise = noises(4)
    assert shape_p(noise, 4.0) > NEVER
    assert size_error(noise, 4.0) < 6
    for wrong in (3.5, 4.6, 2.0, 8.0):
        assert size_error(noise, wrong) > 6 or shape_p(noise, wrong) < NEVER


def test_people_in_several_parties_have_noise_for_all_their_rows() -> None:
    """Who may be in two tables adds twice, so that the noise has twice the scale."""
    noise = noises(3, per_person=2)
    assert shape_p(noise, 8.0) > NEVER
    assert size_error(noise, 4.0) > 6


def test_answers_have_the_noise_for_colluding_parties() -> None:
    assert shape_p(noises(4, colluding=2), 4.0, shape=2.0) > NEVER


def test_answers_without_the_parties_that_stopped_have_the_whole_noise() -> None:
    """Shares for all four parties would leave three quarters of the noise, which is seen."""
    noise = noises(4, stopping=1)
    assert shape_p(noise, 4.0) > NEVER
    assert size_error(noise, 4.0) < 6
    assert shape_p(noise, 4.0, shape=0.75) < NEVER


def messages(frames: list[object], rounds: int) -> list[npt.NDArray[np.uint64]]:
    """What the coordinator sees of each party: rounds x words."""
    agreed = agreement(len(frames))
    members = parties(agreed, frames, budget=10_000)  # type: ignore[arg-type]
    seen: dict[str, list[npt.NDArray[np.uint64]]] = {name: [] for name in members}
    asked = coordinator(agreed, members)
    for name, channel in asked.channels.items():
        inner = channel.contribute

        def spying(*given: object, name: str = name, inner: object = inner) -> npt.NDArray[np.uint64]:
            reply: npt.NDArray[np.uint64] = inner(*given)  # type: ignore[operator]
            seen[name].append(reply)
            return reply

        object.__setattr__(channel, "contribute", spying)
    for _ in range(rounds):
        asked.ask("SELECT ward, COUNT(*), SUM(bill) FROM visits GROUP BY ward", epsilon=1)
    return [np.stack(found) for found in seen.values()]


def uniform_p(words: npt.NDArray[np.uint64]) -> float:
    return float(stats.kstest(words.ravel().astype(np.float64) / 2.0**64, "uniform").pvalue)


SPLITS = (
    [rows("east", 30, 10.0), rows("west", 30, 10.0), rows("east", 0, 10.0)],
    [rows("east", 0, 10.0), rows("west", 30, 10.0), rows("east", 30, 10.0)],
)
"""The same total, held by different parties."""


@pytest.mark.parametrize("frames", SPLITS)
def test_the_coordinator_sees_uniform_numbers_whatever_the_data(frames: list[object]) -> None:
    """Each party's messages, and the sum of any two of three, are uniform: a simulator needs only the total."""
    one, two, three = messages(frames, 12)
    for view in (one, two, three):
        assert uniform_p(view) > NEVER
    for first, second in ((one, two), (two, three), (one, three)):
        pair = np.stack([add(a, b) for a, b in zip(first, second, strict=True)])
        assert uniform_p(pair) > NEVER
        assert (
            abs(stats.spearmanr(first[..., 0].ravel(), second[..., 0].ravel()).statistic)
            < 6 / first[..., 0].size ** 0.5
        )


def test_a_mask_that_one_pair_forgets_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = OpenRound.mask

    def forgetful(self: OpenRound, size: int, announcements: object, among: object = None) -> object:
        kept = [a for a in announcements if {a.party, self.announcement.party} != {"p000", "p001"}]  # type: ignore[attr-defined]
        kept = [a for a in kept if a.party == "p002" or a.party == self.announcement.party]
        return whole(self, size, kept if self.announcement.party != "p002" else kept[-1:])

    monkeypatch.setattr(OpenRound, "mask", forgetful)
    third = messages(SPLITS[0], 5)[2]
    assert uniform_p(third) < NEVER
