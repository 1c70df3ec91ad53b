"""All errors of sfumato, each with a stable code, a message and a fix.

A message never contains a value of the data: columns are named, rows are counted or numbered, values are not shown.
The facts behind a message are attributes of the exception, so that a program need not parse the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Protocol


class Offered(Protocol):
    """One decision that would change the refusal: in words, as plain data, and for the door one came through."""

    @property
    def does(self) -> str:
        """What it does, in words."""
        ...

    def to_dict(self) -> dict[str, object]:
        """The decision as plain data."""
        ...

    def command(self, recipe: str) -> str:
        """The decision as a command about a recipe file."""
        ...


class SfumatoError(Exception):
    """Base class of all errors. ``status`` is the exit code of the command.

    A text names an option as Python writes it: `` `force` ``. The fact ``option`` lists the options that a text names,
    so that the command line writes them its own way: ``--force``.
    """

    code: ClassVar[str] = "SFU-000"
    status: ClassVar[int] = 2

    def __init__(self, message: str, *, fix: str = "", **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)

    def with_options(self, written: Mapping[str, str]) -> None:
        """Write the options that the texts name as somebody types them."""
        named = self.facts.get("option", ())
        for name in (named,) if isinstance(named, str) else named if isinstance(named, tuple) else ():
            if name in written:
                self.message = self.message.replace(f"`{name}`", written[name])
                self.fix = self.fix.replace(f"`{name}`", written[name])

    def __str__(self) -> str:
        return f"{self.message} {self.fix}".strip()

    def _render_traceback_(self) -> list[str]:
        """What IPython and Jupyter show: the caller's own lines, the message and the fix, no frames of this package."""
        return [*_own_lines(self), f"{type(self).__name__} ({self.code}): {self.message}", *filter(None, [self.fix])]

    def to_dict(self) -> dict[str, object]:
        """The error as plain data. An error after completed work also contains the results of that work."""
        results = self.facts.get("document")
        error = {"error": {"code": self.code, "message": self.message, "fix": self.fix}}
        return {**error, **results} if isinstance(results, dict) else dict(error)


def _own_lines(error: BaseException) -> list[str]:
    """The lines of the caller's code that led to the error, up to the first frame of this package."""
    import linecache
    from pathlib import Path

    package, lines, frame = Path(__file__).parent, [], error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if Path(file).is_relative_to(package):
            break
        if "IPython" not in Path(file).parts:
            lines.append(f"line {frame.tb_lineno}: {linecache.getline(file, frame.tb_lineno).strip()}")
        frame = frame.tb_next
    return lines


# --- files: SFU-1xx -----------------------------------------------------------------------------------------------


class FileMissing(SfumatoError):
    """The file or folder that was named does not exist or cannot be opened."""

    code = "SFU-101"


class NotThatFormat(SfumatoError):
    """The content of the file is not what its suffix says."""

    code = "SFU-102"


class EmptyTable(SfumatoError):
    """The file or table has no rows, or no columns."""

    code = "SFU-103"


class DuplicateColumns(SfumatoError):
    """Two columns of the table have the same name."""

    code = "SFU-104"


class UnknownFormat(SfumatoError):
    """No registered format reads or writes this suffix."""

    code = "SFU-105"


class ExtraMissing(SfumatoError):
    """An optional library is needed for this and is not installed."""

    code = "SFU-106"


class OutputExists(SfumatoError):
    """The output exists already, and nobody allowed that it is replaced (``force``)."""

    code = "SFU-107"


class WriteFailed(SfumatoError):
    """The output could not be written: disk full, no permission. Nothing half-written is left behind."""

    code = "SFU-108"


class RaggedLine(SfumatoError):
    """A line of a text file has more or fewer fields than the first one, or a quote is never closed."""

    code = "SFU-109"


class DatabaseFailed(SfumatoError):
    """A database cannot be reached, refuses the query, or the URL does not say what to read."""

    code = "SFU-110"


class ReleaseChanged(SfumatoError):
    """A file of a release is not the one its manifest names: its SHA-256 differs, or it is gone."""

    code = "SFU-111"


# --- schema: SFU-2xx ----------------------------------------------------------------------------------------------


class UnknownColumn(SfumatoError):
    """The table has no column of that name."""

    code = "SFU-201"


class WrongKind(SfumatoError):
    """A column holds values that do not fit the kind declared for it."""

    code = "SFU-202"


class HierarchyGap(SfumatoError):
    """A hierarchy has no generalization for some value of its column."""

    code = "SFU-203"


class HierarchyNotNested(SfumatoError):
    """A hierarchy merges two values at one level and splits them again at a higher one, or repeats a leaf."""

    code = "SFU-204"


class TooFewRows(SfumatoError):
    """The table has fewer rows than the request needs, for example k larger than the table."""

    code = "SFU-205"


class ColumnsDiffer(SfumatoError):
    """Two tables that must share columns do not."""

    code = "SFU-206"


class SingularData(SfumatoError):
    """The columns depend on each other, or hardly vary, so that a covariance cannot be inverted."""

    code = "SFU-207"


class InvalidGraph(SfumatoError):
    """Edge and node tables do not make a simple graph: self-loops, duplicate edges, unknown or repeated nodes."""

    code = "SFU-208"


# --- recipe: SFU-3xx ----------------------------------------------------------------------------------------------


class Problem:
    """One problem of a recipe or metadata file: the key, its line, and what is wrong."""

    def __init__(self, *, where: str, line: int | None, message: str) -> None:
        self.where = where
        self.line = line
        self.message = message

    def __str__(self) -> str:
        line = f"line {self.line}: " if self.line is not None else ""
        where = f"{self.where}: " if self.where else ""
        return f"{line}{where}{self.message}"


class InvalidRecipe(SfumatoError):
    """The recipe does not fit its schema. All problems are reported at once, each with its line."""

    code = "SFU-301"

    def __init__(self, problems: Iterable[Problem], *, source: str = "recipe") -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{source}: {count} problem{'s' if count != 1 else ''}"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))

    def to_dict(self) -> dict[str, object]:
        shape = super().to_dict()
        error = shape["error"]
        assert isinstance(error, dict)
        error["problems"] = [{"line": p.line, "where": p.where, "message": p.message} for p in self.problems]
        return shape


class UnknownPart(SfumatoError):
    """No method, model, attack, measure, format or hierarchy of that name is registered."""

    code = "SFU-302"


class BadParameter(SfumatoError):
    """A parameter of a part has a value that its declaration does not allow."""

    code = "SFU-303"


# --- privacy conditions: SFU-4xx ----------------------------------------------------------------------------------


class Unmet(SfumatoError):
    """A privacy model cannot be met, or a release does not meet it. No release is written unless asked for."""

    code = "SFU-401"
    status = 1
    columns: tuple[str, ...] = ()
    """Sensitive columns about which even the coarsest table fails."""
    ways: tuple[Offered, ...] = ()
    """Decisions with which a release would meet the models, each of them tried."""

    def to_dict(self) -> dict[str, object]:
        shape = super().to_dict()
        error = shape["error"]
        assert isinstance(error, dict)
        if self.ways:
            error["ways"] = [way.to_dict() for way in self.ways]
        return shape


class PolicyNotMet(SfumatoError):
    """The work is done, but a limit of the policy is exceeded, for example a measured risk."""

    code = "SFU-402"
    status = 1


class UndecidedColumns(SfumatoError):
    """Nobody has decided the role of some columns, so no release is made. All are named at once, with what each singles
    out."""

    code = "SFU-403"

    def to_dict(self) -> dict[str, object]:
        shape = super().to_dict()
        error = shape["error"]
        assert isinstance(error, dict)
        error["columns"] = self.facts["columns"]
        return shape


# --- attacks and measures: SFU-5xx --------------------------------------------------------------------------------


class NotApplicable(SfumatoError):
    """An attack or a measure does not apply here; this is never reported as a risk of zero."""

    code = "SFU-501"


class OutOfTime(NotApplicable):
    """The time allowed was used up before there was a result; never a risk of zero, and never a limit that is met."""

    code = "SFU-502"


class OutOfMemory(NotApplicable):
    """The work would need more memory than there is; never a risk of zero, and never a limit that is met."""

    code = "SFU-503"


# --- secrets: SFU-6xx ---------------------------------------------------------------------------------------------


class SecretAccessRefused(SfumatoError):
    """A secret value was printed, compared, computed with or serialized instead of opened with a permit."""

    code = "SFU-601"
    status = 3


class SelfTestFailed(SfumatoError):
    """A randomizer does not have the probabilities that its privacy loss is computed from."""

    code = "SFU-603"
    status = 3


class NoReceipt(SfumatoError):
    """A mechanism was called without a budget receipt, or for more than the receipt covers."""

    code = "SFU-602"
    status = 3


# --- private answers: SFU-7xx -------------------------------------------------------------------------------------


class OverBudget(SfumatoError):
    """The remaining privacy budget does not cover the request. Nothing was computed and nothing was charged."""

    code = "SFU-701"
    status = 1


class QueryRefused(SfumatoError):
    """The query is not supported. Decided from the query and the public schema alone; nothing is charged."""

    code = "SFU-702"

    def __init__(self, reason: str, *, line: int | None = None, column: int | None = None, fix: str = "") -> None:
        where = f"line {line}, column {column}: " if line is not None else ""
        super().__init__(f"{where}{reason}", fix=fix, line=line, column=column, reason=reason)

    def to_dict(self) -> dict[str, object]:
        shape = super().to_dict()
        error = shape["error"]
        assert isinstance(error, dict)
        error |= {"line": self.facts["line"], "column": self.facts["column"], "reason": self.facts["reason"]}
        return shape


class AnswerFailed(SfumatoError):
    """The engine failed. The message is always the same and the budget stays charged: neither depends on the data."""

    code = "SFU-703"
    status = 3


class LedgerBroken(SfumatoError):
    """The ledger's chain of hashes does not hold: an entry was changed, removed or put in later."""

    code = "SFU-704"
    status = 3


class UnknownBudget(SfumatoError):
    """No budget was set for this data set, so nothing may be spent on it."""

    code = "SFU-705"


class NotComparable(SfumatoError):
    """Two privacy losses are stated in measures that cannot be turned into one another here."""

    code = "SFU-706"


class MetadataMissing(SfumatoError):
    """The public metadata lacks what a private answer needs: bounds, keys or the privacy unit."""

    code = "SFU-707"


class AnswerDenied(SfumatoError):
    """The answering policy of the data set refuses this question. Nothing was answered and nothing was charged."""

    code = "SFU-708"
    status = 1


class UnitsDiffer(SfumatoError):
    """The budget counts losses of another privacy unit. Losses of rows, people and edges do not add up."""

    code = "SFU-709"


class AccountMoved(SfumatoError):
    """The data set is charged in another ledger, such as that of a server. Two accounts would each allow the cap."""

    code = "SFU-710"


# --- server: SFU-8xx ----------------------------------------------------------------------------------------------


class NotSignedIn(SfumatoError):
    """The request has no valid credential: none, an unknown, expired or revoked one, all with the same message."""

    code = "SFU-801"


class AccessDenied(SfumatoError):
    """The role or the scope of the token does not allow this. Depends on the account alone, never on what exists."""

    code = "SFU-802"


class NoSuchItem(SfumatoError):
    """There is no such thing, or the account may not know of it; the two cannot be told apart."""

    code = "SFU-803"


class TooManyRequests(SfumatoError):
    """Too many requests or failed sign-ins in a short time."""

    code = "SFU-804"


class Conflict(SfumatoError):
    """The request contradicts an earlier one: a name is taken, or an idempotency key was used for something else."""

    code = "SFU-805"


class LedgerRolledBack(SfumatoError):
    """The ledger is older than one that was seen before: a backup was restored, and budget would be given back."""

    code = "SFU-806"
    status = 3


class Cancelled(SfumatoError):
    """The question was cancelled. What was charged before stays charged."""

    code = "SFU-807"
    status = 1


class PartyFailed(SfumatoError):
    """A party of a question cannot be reached, stopped, or replied with something that is no reply."""

    code = "SFU-808"
    status = 3


def catalogue() -> Iterator[type[SfumatoError]]:
    """Every concrete error class that has a code, in the order of the codes."""

    def walk(kind: type[SfumatoError]) -> Iterator[type[SfumatoError]]:
        for child in kind.__subclasses__():
            yield child
            yield from walk(child)

    yield from sorted(walk(SfumatoError), key=lambda kind: kind.code)
