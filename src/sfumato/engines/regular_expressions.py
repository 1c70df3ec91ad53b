"""Regular expressions of a subset that all engines read alike and match in bounded time.

Characters, classes such as ``[a-z]``, ``[^0-9]``, ``\\d``, ``\\w`` and ``\\s`` (of ASCII), ``.`` (no line break),
groups, alternatives, ``^`` and ``$`` at the ends of an alternative, and repeats. A pattern is parsed to a tree and
written anew, with every character escaped: nothing that an analyst wrote reaches an engine as it is.

Spark's engine tries one way to match after the other, so that its time grows with their number. Therefore what is
repeated is one character or class, at most two repeats have no end, and the others have at most 10,000 combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_MOST_CHARACTERS = 200
_MOST_REPEATS = 100
_MOST_WAYS = 10_000
_MOST_UNBOUNDED = 2
_CLASSES = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (12, 13), (32, 32)),
}
"""Ranges of code points, as RE2 has them; other engines would add letters and digits of other scripts."""
_CONTROL = {"n": 10, "t": 9, "r": 13, "f": 12}
_LAST = 0x10FFFF
_SPECIAL = frozenset("\\^$.|?*+()[]{}")
Ranges = tuple[tuple[int, int], ...]


class PatternRefused(Exception):
    """The pattern is outside the subset; the words say why and what to do."""


@dataclass(frozen=True)
class PatternBranch:
    """An alternative: its pattern without anchors, and whether it must begin or end where the text does."""

    body: str
    starts: bool
    ends: bool


def parse_pattern(pattern: str, *, whole: bool = False) -> tuple[PatternBranch, ...]:
    r"""The alternatives of a pattern, written in the common language of all engines.

    >>> parse_pattern(r"^E1[0-4]|\d{2}$")
    (PatternBranch(body='E1[0-4]', starts=True, ends=False), PatternBranch(body='[0-9]{2}', starts=False, ends=True))
    """
    if len(pattern) > _MOST_CHARACTERS:
        raise PatternRefused(f"A pattern has at most {_MOST_CHARACTERS} characters.")
    parser = _Parser(pattern)
    branches = parser.branches(whole=whole)
    if parser.unbounded > _MOST_UNBOUNDED or parser.ways > _MOST_WAYS:
        raise PatternRefused(
            f"The pattern has too many ways to match: at most {_MOST_UNBOUNDED} of * and +, and few {{m,n}}."
        )
    return branches


def written_pattern(branches: Sequence[PatternBranch], end: str = "$") -> str:
    """The alternatives as one regular expression; ``end`` is how an engine writes the end of a text."""
    parts = [f"{'^' if branch.starts else ''}{branch.body}{end if branch.ends else ''}" for branch in branches]
    return "|".join(parts)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.unbounded = 0
        self.ways = 1

    def _peek(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _take(self) -> str:
        letter = self._peek()
        self._at += 1
        return letter

    def _accept(self, letter: str) -> bool:
        found = self._text.startswith(letter, self._at)
        self._at += len(letter) * found
        return found

    def branches(self, *, whole: bool) -> tuple[PatternBranch, ...]:
        made = []
        while True:
            starts = self._accept("^")
            body = self._sequence(required=not starts)
            ends = self._accept("$")
            made.append(PatternBranch(body=body, starts=starts or whole, ends=ends or whole))
            if not self._accept("|"):
                break
        if self._peek():
            raise PatternRefused(f"`{self._peek()}` is not supported here: ^ and $ stand at the ends of a pattern.")
        return tuple(made)

    def _alternatives(self) -> str:
        parts = [self._sequence(required=True)]
        while self._accept("|"):
            parts.append(self._sequence(required=True))
        self.ways *= len(parts)
        if not self._accept(")"):
            raise PatternRefused("A group is not closed, or has an anchor inside.")
        return f"(?:{'|'.join(parts)})"

    def _sequence(self, *, required: bool) -> str:
        parts = []
        while self._peek() and self._peek() not in "|)$^":
            parts.append(self._item())
        if required and not parts and self._peek() != "$":
            raise PatternRefused("An alternative is empty.")
        return "".join(parts)

    def _item(self) -> str:
        if self._accept("("):
            if self._peek() == "?" and not self._accept("?:"):
                raise PatternRefused("Groups with `(?` are not supported. Use (...), and LOWER(x) to ignore case.")
            group = self._alternatives()
            if self._peek() and self._peek() in "*+{":
                raise PatternRefused("A group cannot be repeated, except by `?`. Repeat a character or a class.")
            return group + self._repeat()
        return _written(self._character()) + self._repeat()

    def _repeat(self) -> str:
        sign = self._peek()
        if not sign or sign not in "*+?{":
            return ""
        self._take()
        if sign == "{":
            sign = self._counts()
        elif sign == "?":
            self.ways *= 2
        else:
            self.unbounded += 1
        if self._peek() and self._peek() in "*+?{":
            raise PatternRefused("A repeat cannot be repeated, and no repeat is lazy or possessive.")
        return sign

    def _counts(self) -> str:
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at : max(end, self._at)].partition(",")
        if end < 0 or not _whole(least) or not (_whole(most) if comma else not most):
            raise PatternRefused("A repeat has the form {2}, {2,5}, ?, * or +.")
        low, high = int(least), int(most if comma else least)
        if not low <= high or not 1 <= high <= _MOST_REPEATS:
            raise PatternRefused(f"A repeat counts up to {_MOST_REPEATS}, the smaller number first.")
        self._at = end + 1
        self.ways *= high - low + 1
        return f"{{{low}}}" if low == high else f"{{{low},{high}}}"

    def _character(self) -> Ranges:
        letter = self._take()
        if letter == ".":
            return _others(((10, 10),))
        if letter == "[":
            return self._class()
        if letter == "\\":
            return self._escaped()
        if letter in _SPECIAL:
            raise PatternRefused(f"`{letter}` is not supported here. Write `\\{letter}` for the character.")
        return ((ord(letter), ord(letter)),)

    def _escaped(self) -> Ranges:
        letter = self._take()
        if letter in _CLASSES:
            return _CLASSES[letter]
        if letter and letter.lower() in _CLASSES:
            return _others(_CLASSES[letter.lower()])
        if letter in _CONTROL:
            return ((_CONTROL[letter], _CONTROL[letter]),)
        if not letter or letter.isalnum():
            raise PatternRefused(f"`\\{letter}` is not supported. Known: \\d, \\w, \\s, \\n, \\t and escaped signs.")
        return ((ord(letter), ord(letter)),)

    def _class(self) -> Ranges:
        negated = self._accept("^")
        found: list[tuple[int, int]] = []
        while not self._accept("]"):
            first = self._member()
            if self._peek() == "-" and self._peek(1) not in ("]", ""):
                self._take()
                last = self._member()
                if len(first) != 1 or len(last) != 1 or first[0][0] > last[0][0] or first[0][0] != first[0][1]:
                    raise PatternRefused("A range in a class has the form a-z.")
                found.append((first[0][0], last[0][1]))
            else:
                found += first
        if not found:
            raise PatternRefused("A class is empty.")
        return _others(tuple(found)) if negated else _merged(found)

    def _member(self) -> Ranges:
        letter = self._take()
        if not letter or letter == "[":
            raise PatternRefused("A class has the form [a-z0-9_]; write `\\[` for a bracket.")
        return self._escaped() if letter == "\\" else ((ord(letter), ord(letter)),)


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _merged(ranges: Sequence[tuple[int, int]]) -> Ranges:
    """Ascending ranges that neither overlap nor touch."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def _others(ranges: Ranges) -> Ranges:
    """All characters outside of some ranges; surrogates, which no text has, stay out."""
    found, at = [], 0
    for low, high in _merged([*ranges, (0, 0), (0xD800, 0xDFFF)]):
        if low > at:
            found.append((at, low - 1))
        at = high + 1
    return (*found, (at, _LAST)) if at <= _LAST else tuple(found)


def _written(ranges: Ranges) -> str:
    """A class that begins with the character 1 is written by what it leaves out, in a short form."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _letter(ranges[0][0])
    if ranges[-1][1] == _LAST:
        return f"[^{_members(_others(ranges))}]"
    return f"[{_members(ranges)}]"


def _members(ranges: Ranges) -> str:
    return "".join(_letter(low) if low == high else f"{_letter(low)}-{_letter(high)}" for low, high in ranges)


def _letter(code: int) -> str:
    letter = chr(code)
    return (
        f"\\{letter}"
        if letter.isascii() and not letter.isalnum() and letter.isprintable() and letter != " "
        else letter
    )
