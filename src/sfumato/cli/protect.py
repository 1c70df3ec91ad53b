"""Run a recipe or plan: protect the data, attack and measure the release, write reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import (
    chosen,
    emit_json,
    force_option,
    json_option,
    note,
    option_names,
    place_options,
    progress,
    typed_path,
)

if TYPE_CHECKING:
    from sfumato.api.protection import Protection
    from sfumato.errors import Offered

PERSON = "steward"


def _ending(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    return None if value is None else f".{value.lstrip('.')}"


@click.command("protect")
@click.argument("plan", type=typed_path)
@click.argument("data", required=False)
@click.option("--out", type=typed_path, default=Path("release"), show_default=True, help="Folder of the release.")
@click.option(
    "--format",
    "suffix",
    default=None,
    callback=_ending,
    help="Format of the released file, for example csv or parquet.",
)
@place_options
@click.option(
    "--targets", "n_targets", type=click.IntRange(min=1), default=None,
    help="Targets per attack.  [default: 5000; models 1000]",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=None, help="Stop attacks and measures after this time."
)
@click.option("--unmet", is_flag=True, help="Write the release even if a model or a limit is not met.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=None,
    help="Repeat a run, together with its key. Without the key, a seed determines nothing.",
)
@click.option(
    "--key",
    type=typed_path,
    default=None,
    help="Key of the run to repeat (run.key of its private folder).  [default: that of --out if there is one, else a"
    " new random key]",
)
@force_option
@json_option
def command(
    plan: Path, data: str | None, out: Path, key: Path | None, unmet: bool, force: bool, as_json: bool, **options: Any
) -> int:
    """Run PLAN, a recipe or a plan, on its own data, or on DATA (a file or a database URL) with the same columns.

    Writes two folders: --out, which may be published, and OUT-private, which must not be: the internal report, the
    secret row map, the recipe and the key of the random numbers. Exit code 1 if a model or a limit is not met; nothing
    is written then, unless --unmet is set. With --seconds, inexpensive attacks run first, what was not reached is shown
    as stopped, and a limit whose attack was not reached is not met.

    The keys of PLAN say which kind of release it makes: microdata (`columns`, `steps`), a graph (`graph`), statistics
    of a graph (`graph` and `statistics`), tables (`tables`, `areas` or `statistics`), a model (`learn`). See
    `sfumato methods --kind release-kind`. An option that does not apply to the kind is refused.
    """
    from sfumato.api.kind import accepts, kind_of_plan
    from sfumato.api.protect import protect
    from sfumato.errors import PolicyNotMet, Unmet
    from sfumato.release.folder import refuse_existing, stored_key

    kind = kind_of_plan(plan)
    refuse_existing(out, force=force, kind=kind.part_name())
    if key is not None or accepts(kind.protect, "key"):
        options["key"] = key or stored_key(out)
    if accepts(kind.protect, "workspace"):
        options["workspace"] = out.absolute().parent
    try:
        with option_names():
            done = protect(plan, data, progress=progress(quiet=as_json), **chosen(options))
    except Unmet as refusal:
        refusal.fix = _choices(refusal.ways, plan) or refusal.fix
        raise
    if done.unmet and not unmet and not as_json:
        done.show()
    try:
        document = done.save(out, force=force, unmet=unmet)
    except (PolicyNotMet, Unmet) as refusal:
        untold = "Change the recipe as said above, or write it nevertheless with --unmet."
        refusal.fix = _choices(done.evaluation.ways_out, plan) or untold
        raise
    return _show(done, document, out, as_json=as_json)


def _choices(ways: Sequence[Offered], plan: Path) -> str:
    """The ways out as commands about this recipe; empty if there are none."""
    lines = [f"  to {way.does}:\n    {way.command(str(plan))}" for way in ways]
    return "\n".join(["\nChoose one, then run the same command again:", *lines]) if lines else ""


def _show(done: Protection, document: dict[str, Any], out: Path, *, as_json: bool) -> int:
    from sfumato.release.folder import private_folder

    if as_json:
        emit_json(document)
        return 0 if done.met else 1
    done.show()
    note("\n" + done.judgement.standing.line(f"{out}/  ({', '.join(sorted(path.name for path in out.iterdir()))})"))
    note(f"Keep private:  {private_folder(out)}/  (internal report, recipe or plan; row map and key if there are any)")
    return 0 if done.met else 1
