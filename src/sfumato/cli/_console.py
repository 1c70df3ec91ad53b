"""Shared by the commands: JSON output, progress bars, common options."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from sfumato.api.results import Results

from sfumato.progress import SILENT, Progress, Tick

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")
force_option = click.option("--force", is_flag=True, help="Replace the output if it exists.")
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=None, help="Draw the same targets and samples again."
)
typed_path = click.Path(path_type=Path)


class CommandGroup(click.Group):
    """A group of commands whose help shows the first sentence of each command whole; so do the groups in it."""

    group_class = type

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their first sentences, wrapped and not cut."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, one.get_short_help_str(limit=1000)) for name, one in commands if one and not one.hidden]
            )


def place_options(command: Callable[..., object]) -> Callable[..., Any]:
    """The options ``--engine`` and ``--memory``: where the rows lie while they are processed."""
    from sfumato.engines.choice import engine_options

    text = "Where the data is processed; auto, the default: memory if the files fit, otherwise DuckDB."
    engine = click.option("--engine", type=click.Choice(engine_options()), default=None, help=text)
    memory = click.option("--memory", default=None, help="Memory limit of an engine, such as DuckDB.  [default: 4GB]")
    return engine(memory(command))


def emit_json(document: object) -> None:
    """Print the one JSON document of a command."""
    click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


class _Number(click.ParamType[Any]):
    """A number as text, so that 0.1 stays exactly one tenth."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        from sfumato.errors import BadParameter
        from sfumato.params import percent_hint
        from sfumato.rationals import rational

        try:
            rational(value)
        except BadParameter:
            hint = percent_hint(value) or " such as 0.05 or 1/3"
            self.fail(f"is not a number{hint}.", param, ctx)
        return value


NUMBER = _Number()


def listed(names: tuple[str, ...]) -> list[str]:
    """Split names at commas; a doubled comma is part of a name."""
    parts = [part for text in names for part in text.replace(",,", "\0").split(",")]
    return [name for part in parts if (name := part.replace("\0", ",").strip())]


def chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that have a value: those of the command line, and defaults of the command."""
    return {name: value for name, value in options.items() if not (value is None or value is False or _empty(value))}


def _empty(value: object) -> bool:
    return isinstance(value, tuple | list | dict) and not value


@contextmanager
def option_names() -> Iterator[None]:
    """Name an option that does not apply as it is written on the command line."""
    from sfumato.errors import BadParameter

    try:
        yield
    except BadParameter as refusal:
        name = refusal.facts.get("option")
        written = options_as_typed(click.get_current_context().command)
        if name not in written:
            raise
        refusal.with_options(written)
        raise click.UsageError(refusal.message) from None


def options_as_typed(command: click.Command) -> dict[str, str]:
    """How each option of a command, or of the commands of a group, is written; arguments are in capitals."""
    if isinstance(command, click.Group):
        return {name: flag for one in command.commands.values() for name, flag in options_as_typed(one).items()}
    flags = {str(param.name): max(param.opts, key=len) for param in command.params}
    return {name: flag if flag.startswith("-") else flag.upper() for name, flag in flags.items()}


def show(results: Results[object], *, as_json: bool, **more: object) -> int:
    """Print the result of a verb for any kind of release; the exit code is 1 if something is not met."""
    if as_json:
        emit_json({**more, **results.to_dict()})
    else:
        results.show()
    return 0 if results.met else 1


def names_of(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    """Callback of options with names that are separated by commas."""
    return listed(value)


def parts_of(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> list[str | dict[str, object]]:
    """Callback of options with parts: a name, or `name=parameters` as a recipe writes them."""
    parts: list[str | dict[str, object]] = []
    for text in value:
        name, sign, parameters = (word.strip() for word in text.partition("="))
        if sign:
            from sfumato.data.yaml_documents import parse_yaml

            parts.append({name: parse_yaml(parameters, source=f"{parameter.opts[0]} {name}").value})
        else:
            parts.append(name)
    return parts


def note(text: str) -> None:
    """Print a note to standard error; never part of the result."""
    click.echo(text, err=True)


class _RichProgress:
    """Progress bars on standard error, nested for tasks within tasks."""

    def __init__(self) -> None:
        self._bars: Bars | None = None

    @contextmanager
    def task(self, title: str, total: float | None) -> Iterator[Tick]:
        if self._bars is not None:
            yield from self._bar(self._bars, title, total)
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        shown = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        columns = (TextColumn("{task.description}"), *shown)
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            self._bars = bars
            try:
                yield from self._bar(bars, title, total)
            finally:
                self._bars = None

    @staticmethod
    def _bar(bars: Bars, title: str, total: float | None) -> Iterator[Tick]:
        task = bars.add_task(title, total=total)
        try:
            yield lambda units: bars.update(task, advance=units)
        finally:
            bars.remove_task(task)


class LineProgress:
    """Progress as plain lines, for standard error that is not a terminal: a log file or a pipe.

    A task within the outer one prints a line when it begins; the outer one prints a line when it advances, with the
    time since its begin and an estimate of the time left.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._depth = 0

    @contextmanager
    def task(self, title: str, total: float | None) -> Iterator[Tick]:
        self._depth += 1
        outer, begin, done = self._depth == 1, self._clock(), 0.0
        if not outer:
            self._write(f"  running: {title.strip()}")

        def advance(units: float) -> None:
            nonlocal done
            done += units
            if outer and total and units:
                spent = self._clock() - begin
                left = f", about {duration(spent * (total - done) / done)} left" if 0 < done < total else ""
                self._write(f"{title}: {done:g} of {total:g}, {duration(spent)}{left}")

        try:
            yield advance
        finally:
            self._depth -= 1


def duration(seconds: float) -> str:
    """
    >>> duration(7.2), duration(83), duration(7300)
    ('7 s', '1 min 23 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def progress(*, quiet: bool = False, lines: bool = False) -> Progress:
    """Progress bars if standard error is a terminal; otherwise nothing, or plain lines if ``lines``."""
    if quiet:
        return SILENT
    if sys.stderr.isatty():
        return _RichProgress()
    return LineProgress(note) if lines else SILENT
