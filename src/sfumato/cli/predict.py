"""Predict with a model that `sfumato learn` saved."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, typed_path

PERSON = "analyst"


@click.command("predict")
@click.argument("model", type=typed_path)
@click.argument("data")
@click.option(
    "--out", type=typed_path, default=None, help="File for the predictions. Default: standard output, as CSV."
)
@click.option("--privacy", is_flag=True, help="Print the privacy statement of MODEL and nothing else. DATA may be `-`.")
@force_option
@json_option
def command(model: Path, data: str, out: Path | None, privacy: bool, force: bool, as_json: bool) -> None:
    """Predict every row of DATA with MODEL, a model file or a release folder.

    A prediction is the class and its probabilities, a number, a cluster or components.

    Predictions depend on the row and the model only, so they cost no budget of the people in the training data.
    """
    from sfumato.api.attack_model import stored_model
    from sfumato.api.predict import predict
    from sfumato.data import Table, write
    from sfumato.errors import NotThatFormat

    if privacy:
        loaded = stored_model(model)
        if not hasattr(loaded, "privacy_"):
            raise NotThatFormat(f"{model} has no privacy statement.", fix="`sfumato learn` writes a model with one.")
        emit_json(loaded.privacy_.to_dict()) if as_json else click.echo(str(loaded.privacy_))
        return
    found = predict(model, data)
    if out is not None:
        write(Table(frame=found), out, force=force)
        note(f"{out}: {found.height:,} predictions.")
    elif as_json:
        emit_json(found.to_dicts())
    else:
        click.echo(found.write_csv(), nl=False)
