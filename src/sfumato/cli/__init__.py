"""The command line: one module per command, imported when it is called.

Commands are modules of this package and of the folder ``commands`` of a family (``auditing/commands``).

Exit codes: 0 done; 1 done, but the policy is not met; 2 bad input or usage; 3 internal error; 130 interrupted.
Documents and tables go to standard output; progress, notes and errors to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import click

from sfumato import __version__
from sfumato.deferred import defer
from sfumato.errors import SfumatoError

__all__ = ["cli", "main"]

_PEOPLE = {
    "steward": "Data stewards: describe, protect and release data",
    "analyst": "Analysts: questions and models",
    "operator": "Operators: services, parties and surveys",
    "researcher": "Researchers: attacks, measures and studies",
}
"""Groups of `sfumato --help`. The field ``PERSON`` of a command's module names its group."""


class LazyCommands(click.Group):
    """Finds commands as modules and imports one only to run it or show its help.

    The line in ``sfumato --help`` is the first line of the module's docstring, read without importing the module.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = _modules().get(cmd_name)
        if name is None:
            return None
        defer("polars")
        module = importlib.import_module(name)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in self.list_commands(ctx) and not name.startswith("-"):
            from sfumato.wording import did_you_mean

            raise click.UsageError(f"There is no command `{name}`. {did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SfumatoError as error:
            if "option" in error.facts and ctx.invoked_subcommand:
                from sfumato.cli._console import options_as_typed

                command = self.get_command(ctx, ctx.invoked_subcommand)
                error.with_options({} if command is None else options_as_typed(command))
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        described = {name: _description(name) for name in self.list_commands(ctx)}
        for person, title in _PEOPLE.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (line, owner) in described.items() if owner == person])


@cache
def _modules() -> dict[str, str]:
    """The module of each command."""
    root = Path(__file__).parents[1]
    folders = [Path(__file__).parent, *sorted(root.glob("*/commands"))]
    found: dict[str, str] = {}
    for folder in folders:
        package = ".".join(["sfumato", *folder.relative_to(root).parts])
        names = (module.name for module in pkgutil.iter_modules([str(folder)]) if not module.name.startswith("_"))
        found |= {name.replace("_", "-"): f"{package}.{name}" for name in names}
    return found


def _description(name: str) -> tuple[str, str]:
    """First line of the docstring and ``PERSON`` of a command's module, which is not imported: `--help` is fast."""
    module = Path(__file__).parents[1].joinpath(*_modules()[name].split(".")[1:])
    source = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    text = source.read_text(encoding="utf-8")
    person = re.search(r'^PERSON = "(\w+)"$', text, re.MULTILINE)
    if person is None or person[1] not in _PEOPLE:
        raise ValueError(f"{source.name} needs PERSON, one of {', '.join(_PEOPLE)}")
    return text.split('"""', 2)[1].strip().splitlines()[0].rstrip("."), person[1]


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="sfumato")
def cli() -> None:
    """Statistical data privacy: mask microdata, answer queries privately, attack both, measure and report.

    Start with:  sfumato demo   or   sfumato init people.csv
    """


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code. Error messages contain no data values."""
    arguments = sys.argv[1:] if argv is None else argv
    wants_json = "--json" in arguments
    try:
        result = cli.main(args=arguments, prog_name="sfumato", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except SfumatoError as error:
        return _fail(error.to_dict(), error.code, str(error), error.status, wants_json)
    except click.ClickException as error:
        shape = {"error": {"code": "SFU-002", "message": error.format_message(), "fix": ""}}
        usage = error.ctx.get_usage() + "\n" if isinstance(error, click.UsageError) and error.ctx else ""
        return _fail(shape, "SFU-002", usage + error.format_message(), 2, wants_json)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted. No incomplete output was left.", err=True)
        return 130
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the reader is gone; keep the interpreter's exit quiet
        return 0
    except ModuleNotFoundError as error:
        from sfumato.extras import extra_of, missing_extra

        needed = extra_of(error.name or "")
        if needed is None:
            return _internal(error, wants_json)
        missing = missing_extra(*needed, needed_by="This command")
        return _fail(missing.to_dict(), missing.code, str(missing), missing.status, wants_json)
    except Exception as error:
        return _internal(error, wants_json)


def _internal(error: Exception, wants_json: bool) -> int:
    """Report a defect of sfumato without its details."""
    if os.environ.get("SFUMATO_DEBUG"):
        raise error
    message = (
        f"Internal error ({type(error).__name__}). Its details may contain values of your data and are not shown; "
        "set SFUMATO_DEBUG=1 to see them."
    )
    return _fail({"error": {"code": "SFU-003", "message": message, "fix": ""}}, "SFU-003", message, 3, wants_json)


def _fail(shape: dict[str, Any], code: str, text: str, status: int, wants_json: bool) -> int:
    if wants_json:
        click.echo(json.dumps(shape))
    click.echo(f"{code}  {text}", err=True)
    return status
