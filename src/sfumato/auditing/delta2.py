"""Δ2-matchings: a polynomial approximation of k-assign auditing, limited to one swap of values per answer.

A matching is the set of people whose value differs from their true one. For a new query there are four cases. A
matching that changes nobody in the query is kept. One that changes two people of the query is kept if they exchange
their values. One that changes a single person is extended by every partner in the query who has the value taken, or by
a counterfeit of that value. All others are deleted. A partner who is in earlier queries brings a stored matching along.

Every matching is an assignment that agrees with all answers, so the values in it are possible. The auditor may refuse
more than necessary, but never answers a query that the exact auditor refuses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matching = frozenset[tuple[int, int]]
"""Changed people, each with the value taken instead of the true one."""


@dataclass(frozen=True, kw_only=True)
class _AnsweredQuery:
    people: frozenset[int]
    fakes: Mapping[int, int]


class Delta2Auditor:
    """k-assign auditor by Δ2-matchings, for tables of hundreds of people.

    At most ``most`` matchings are stored per pair of person and value. A smaller number can only cause more refusals.
    """

    def __init__(self, secrets: npt.ArrayLike, *, values: int, most: int = 200) -> None:
        self.secrets = np.asarray(secrets).tolist()
        self.values = values
        self.most = most
        self._queries: list[_AnsweredQuery] = []
        self._touched: set[int] = set()
        self._matchings: set[Matching] = set()

    def after(self, people: Sequence[int], fakes: Sequence[int] = ()) -> set[Matching]:
        """The matchings after one more answer. The state does not change."""
        query = _AnsweredQuery(people=frozenset(people), fakes=Counter(fakes))
        by_pair: dict[tuple[int, int], list[Matching]] = defaultdict(list)
        for matching in self._matchings:
            for pair in matching:
                by_pair[pair].append(matching)
        holders: dict[int, list[int]] = defaultdict(list)
        for person in sorted(query.people):
            holders[self.secrets[person]].append(person)
        kept: set[Matching] = set()
        for matching in sorted(self._matchings, key=sorted):
            kept.update(self._meet(matching, query, holders, by_pair))
        fresh = query.people - self._touched
        for person in fresh:
            mine = self.secrets[person]
            for value in range(self.values):
                if value != mine and query.fakes.get(value):
                    kept.add(frozenset({(person, value)}))
                for partner in holders[value] if value > mine else ():
                    if partner in fresh:
                        kept.add(frozenset({(person, value), (partner, mine)}))
        return self._trim(kept)

    def accept(self, people: Sequence[int], fakes: Sequence[int] = ()) -> None:
        """Record an answer that was given."""
        self._matchings = self.after(people, fakes)
        self._queries.append(_AnsweredQuery(people=frozenset(people), fakes=Counter(fakes)))
        self._touched.update(people)

    def table(self, matchings: set[Matching] | None = None, people: Sequence[int] = ()) -> npt.NDArray[np.bool_]:
        """People by values: the values that the matchings prove possible. People in no query may have any value."""
        possible = np.ones((len(self.secrets), self.values), np.bool_)
        touched = sorted(self._touched | set(people))
        possible[touched] = False
        possible[touched, [self.secrets[person] for person in touched]] = True
        for matching in self._matchings if matchings is None else matchings:
            for person, value in matching:
                possible[person, value] = True
        return possible

    def safe(self, people: Sequence[int], k: int, fakes: Sequence[int] = ()) -> bool:
        """Whether the matchings prove that everyone keeps k values after this answer."""
        return bool((self.table(self.after(people, fakes), people).sum(axis=1) >= k).all())

    def _meet(
        self,
        matching: Matching,
        query: _AnsweredQuery,
        holders: Mapping[int, Sequence[int]],
        by_pair: Mapping[tuple[int, int], Sequence[Matching]],
    ) -> list[Matching]:
        inside = [(person, value) for person, value in matching if person in query.people]
        changed = {person for person, _ in matching}
        if not inside:
            return [matching]
        if len(inside) == 2:
            (p, s), (q, t) = inside
            return [matching] if s == self.secrets[q] and t == self.secrets[p] else []
        if len(inside) > 2:
            return []
        person, value = inside[0]
        gone = self.secrets[person]
        extended = [matching] if query.fakes.get(value) else []
        for partner in holders.get(value, ()):
            if partner in changed:
                continue
            if partner not in self._touched:
                extended.append(matching | {(partner, gone)})
                continue
            for other in by_pair.get((partner, gone), ()):
                joined = matching | other
                apart = not changed & {p for p, _ in other}
                alone = sum(p in query.people for p, _ in other) == 1
                if apart and alone and all(self._agrees(joined, old) for old in self._queries):
                    extended.append(joined)
        return extended

    def _agrees(self, matching: Matching, query: _AnsweredQuery) -> bool:
        """Whether an earlier answer differs by at most one swap."""
        inside = [(person, value) for person, value in matching if person in query.people]
        if len(inside) > 2:
            return False
        change: Counter[int] = Counter()
        for person, value in inside:
            change[value] += 1
            change[self.secrets[person]] -= 1
        return all(count <= query.fakes.get(value, 0) for value, count in change.items())

    def _trim(self, matchings: set[Matching]) -> set[Matching]:
        """Keep at most ``most`` matchings per pair, the shortest first."""
        count: Counter[tuple[int, int]] = Counter()
        kept = set()
        for matching in sorted(matchings, key=lambda m: (len(m), sorted(m))):
            if any(count[pair] < self.most for pair in matching):
                kept.add(matching)
                count.update(matching)
        return kept
