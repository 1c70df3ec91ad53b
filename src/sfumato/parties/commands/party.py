"""Take part in queries over the tables of several parties."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from types import FrameType

import click

from sfumato.cli._console import CommandGroup, emit_json, json_option, note, typed_path
from sfumato.parties.commands._party_linkage import attack, blind, encode, link, overlap, reply

PERSON = "operator"


@click.group("party", cls=CommandGroup)
def command() -> None:
    """Answer queries together with other parties; only the noisy total becomes known.

    All parties have the same parties file; see docs/parties.md. Analysts ask with `sfumato query --parties`. Two
    parties count the people whom both have with `blind`, `reply` and `overlap`, and link them with `encode` and `link`.
    """


for part in (blind, reply, overlap, encode, link, attack):
    command.add_command(part)


@command.command("serve")
@click.argument("party", type=typed_path)
def serve(party: Path) -> None:
    """Serve the party file PARTY over HTTPS with mutual TLS, until it is interrupted."""
    from sfumato.parties.party_file import PartyFile

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    server = PartyFile.load(party).server()

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    click.echo(f"Party {server.party.name} listens on port {server.port}.")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        note("Stopped.")
    finally:
        server.server_close()


@command.command("keys")
@click.argument("folder", type=typed_path)
@click.option("--party", "parties", multiple=True, metavar="NAME=HOST", help="A party and the host of its address.")
@click.option("--analyst", "analysts", multiple=True, metavar="NAME", help="An analyst who may ask.")
@json_option
def keys(folder: Path, parties: tuple[str, ...], analysts: tuple[str, ...], as_json: bool) -> None:
    """Make keys and certificates for trials, and print the keys for the parties file.

    The key of the authority is thrown away. In production every party makes its own key, and an authority that all of
    them trust signs it.
    """
    from sfumato.errors import OutputExists
    from sfumato.parties.certificates import make_certificates

    hosts = dict(text.partition("=")[::2] for text in parties)
    names = [*hosts, *analysts]
    plain = all(name.replace("-", "").replace("_", "").isalnum() for name in names)
    if not hosts or not all(hosts.values()) or len(set(names)) < len(parties) + len(analysts) or not plain:
        raise click.UsageError("Name every party as NAME=HOST and every analyst as NAME, each once.")
    if (folder / "authority.crt").exists():
        raise OutputExists(f"{folder} has keys already.", fix="Name another folder.")
    public = make_certificates(folder, parties=hosts, analysts=analysts)
    if as_json:
        emit_json(public)
        return
    for name, key in public.items():
        click.echo(f"{name}: {key}")
