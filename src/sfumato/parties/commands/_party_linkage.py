"""Commands of `sfumato party` for people who are in two tables: intersection size and encoded names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import NUMBER, emit_json, force_option, json_option, note, typed_path

if TYPE_CHECKING:
    from sfumato.parties.bloom_encoding import Bits

ENCODING = "encoding"
columns_option = click.option(
    "--column", "columns", multiple=True, required=True, help="Column that names people; several are joined."
)


@click.command("blind")
@click.argument("data", type=typed_path)
@columns_option
@click.option("--out", type=typed_path, required=True, help="File for the other party.")
@click.option("--secret", type=typed_path, required=True, help="File that stays here; `party overlap` needs it.")
@force_option
def blind(data: Path, columns: tuple[str, ...], out: Path, secret: Path, force: bool) -> None:
    """Begin an intersection: write the items of DATA blinded, for the other party's `party reply`."""
    from sfumato.data.atomic import replacing, write_secret
    from sfumato.parties.intersection_size import PrivateSet
    from sfumato.parties.set_messages import blinded_text, opening_text

    own = PrivateSet(_texts(data, columns))
    write_secret(secret, opening_text(own.opening), force=force)
    with replacing(out, force=force) as temporary:
        temporary.write_text(blinded_text(own.blinded()), encoding="utf-8")
    note(f"{out}: {own.opening.items:,} blinded items for the other party. Keep {secret} here.")


@click.command("reply")
@click.argument("data", type=typed_path)
@click.argument("blinded", type=typed_path)
@columns_option
@click.option("--epsilon", type=NUMBER, default=None, help="Loss of the size that the other party learns.")
@click.option("--delta", type=NUMBER, default=None, help="Probability that noise is cut off.")
@click.option("--ledger", default=None, help="Ledger that is charged: a SQLite file or a postgresql:// address.")
@click.option("--dataset", default=None, help="Data set whose budget is charged.")
@click.option("--to", "analyst", default="other-party", show_default=True, help="Name of the other party.")
@click.option("--exact", is_flag=True, help="Without noise and without a charge: the other party learns the size.")
@click.option("--out", type=typed_path, required=True, help="File for the other party.")
@force_option
def reply(
    data: Path, blinded: Path, columns: tuple[str, ...], epsilon: Any, delta: Any, ledger: str | None,
    dataset: str | None, analyst: str, exact: bool, out: Path, force: bool,
) -> None:  # fmt: skip
    """Answer BLINDED, the message of another party's `party blind`, with the items of DATA.

    The other party learns how many items both have, with noise for (epsilon, delta). The charge is in the ledger before
    noise is drawn.
    """
    from sfumato.data.atomic import replacing, sha256
    from sfumato.parties.intersection_size import PrivateSet, SizeNoise, check_blinded
    from sfumato.parties.set_messages import load_blinded, reply_text

    private = (epsilon, delta, ledger, dataset)
    if (None in private) if not exact else any(given is not None for given in private):
        raise click.UsageError("Use --epsilon, --delta, --ledger and --dataset, or --exact without them.")
    message = load_blinded(blinded)
    check_blinded(message)
    own = PrivateSet(_texts(data, columns))
    with replacing(out, force=force) as temporary:
        noise = receipt = None
        if ledger is not None and dataset is not None:
            from sfumato.api.ledger import open_ledger
            from sfumato.ledger.charge import Charge

            noise = SizeNoise.for_budget(epsilon, delta)
            charge = Charge(
                loss=noise.loss, unit=", ".join(sorted(columns)), what="size of a private set intersection",
                key=sha256(blinded),
            )  # fmt: skip
            receipt = open_ledger(ledger)[0].charge(charge, dataset=dataset, analyst=analyst)
        temporary.write_text(reply_text(own.reply(message, noise=noise, receipt=receipt)), encoding="utf-8")
    note(f"{out}: the reply. Send it once; another reply is charged again.")


@click.command("overlap")
@click.argument("reply_file", metavar="REPLY", type=typed_path)
@click.option("--secret", type=typed_path, required=True, help="The file that `party blind` wrote.")
@json_option
def overlap(reply_file: Path, secret: Path, as_json: bool) -> None:
    """Read REPLY, the other party's answer: the size of the intersection."""
    from sfumato.parties.set_messages import load_opening, load_reply

    found = load_opening(secret).size(load_reply(reply_file))
    if as_json:
        emit_json({"size": found.size, "noise_at_most": found.radius})
    elif found.radius:
        click.echo(f"{found.size:,} items in both tables; the noise is at most {found.radius}.")
    else:
        click.echo(f"{found.size:,} items in both tables, exactly.")


@click.command("encode")
@click.argument("data", type=typed_path)
@columns_option
@click.option("--key-file", type=typed_path, required=True, help="Secret that the linking parties share.")
@click.option("--keep", multiple=True, help="Column to write beside the encoding, such as a row number.")
@click.option("--salt", default=None, help="Column that changes the bits of a record, such as the year of birth.")
@click.option("--flip", type=NUMBER, default="0", show_default=True, help="Probability with which a bit is flipped.")
@click.option("--bits", type=click.IntRange(min=8), default=1000, show_default=True)
@click.option("--hashes", type=click.IntRange(min=1), default=15, show_default=True, help="Bits of a q-gram.")
@click.option("--out", type=typed_path, required=True, help="File with a column `encoding`.")
@force_option
def encode(
    data: Path, columns: tuple[str, ...], key_file: Path, keep: tuple[str, ...], salt: str | None, flip: Any,
    bits: int, hashes: int, out: Path, force: bool,
) -> None:  # fmt: skip
    """Encode names as keyed Bloom filters, for linkage without clear names.

    Encodings are not anonymous: `sfumato party attack` reads names from them without the key. Salt and flips together
    are the hardened encoding.
    """
    import numpy as np
    import polars as pl

    from sfumato.data import Table, read, write
    from sfumato.data.yaml_documents import read_text_file
    from sfumato.errors import BadParameter
    from sfumato.parties.bloom_encoding import BloomEncoder

    key = read_text_file(key_file, kind="key", fix="Make one: openssl rand -hex 32 > shared.key").strip()
    if len(key) < 16:
        raise BadParameter(f"the key in {key_file} has fewer than 16 characters.", fix="openssl rand -hex 32")
    if ENCODING in keep:
        raise BadParameter(f"a kept column cannot be called `{ENCODING}`.")
    table = read(data)
    salts = None if salt is None else table.column(salt).cast(pl.String).fill_null("").to_list()
    encoder = BloomEncoder(key=key.encode(), bits=bits, hashes=hashes, flip=flip)
    made = np.packbits(encoder.encode(_joined(table, columns), salts), axis=1)
    texts = [row.tobytes().hex() for row in made]
    frame = pl.DataFrame([table.column(name) for name in keep]).with_columns(pl.Series(ENCODING, texts))
    write(Table(frame=frame), out, force=force)
    note(f"{out}: {frame.height:,} encodings of {made.shape[1] * 8} bits.")


@click.command("link")
@click.argument("ours", type=typed_path)
@click.argument("theirs", type=typed_path)
@click.option("--id", "name", required=True, help="Column that tells rows apart, in both files.")
@click.option(
    "--threshold", type=click.FloatRange(0, 1, min_open=True), default=0.8, show_default=True,
    help="Smallest Dice similarity of a link.",
)  # fmt: skip
@click.option("--out", type=typed_path, required=True, help="File for the links.")
@force_option
@json_option
def link(ours: Path, theirs: Path, name: str, threshold: float, out: Path, force: bool, as_json: bool) -> None:
    """Link two files of encodings: pairs that are most similar to each other."""
    import polars as pl

    from sfumato.data import Table, read, write
    from sfumato.parties.bloom_encoding import mutual_links

    tables = read(ours), read(theirs)
    one, other = (
        _bits(table.column(ENCODING).to_list(), place) for table, place in zip(tables, (ours, theirs), strict=True)
    )
    pairs = mutual_links(one, other, threshold=threshold)
    columns = [
        tables[0].column(name)[[row for row, _, _ in pairs]].alias("ours"),
        tables[1].column(name)[[row for _, row, _ in pairs]].alias("theirs"),
        pl.Series("similarity", [score for _, _, score in pairs], dtype=pl.Float64),
    ]
    write(Table(frame=pl.DataFrame(columns)), out, force=force)
    if as_json:
        emit_json({"ours": len(one), "theirs": len(other), "links": len(pairs), "threshold": threshold})
    else:
        click.echo(f"{len(pairs):,} links between {len(one):,} and {len(other):,} records.")


@click.command("attack")
@click.argument("encodings", type=typed_path)
@click.option("--population", type=typed_path, required=True, help="Public list of names: one line per person.")
@columns_option
@click.option("--count", default=None, help="Column of the population with the number of people of a name.")
@click.option("--truth", type=typed_path, default=None, help="The names that were encoded, in the same order.")
@click.option("--out", type=typed_path, default=None, help="File for the guessed names.")
@force_option
@json_option
def attack(
    encodings: Path, population: Path, columns: tuple[str, ...], count: str | None, truth: Path | None,
    out: Path | None, force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Read names from encodings without the key: frequency alignment and pattern mining.

    With --truth, the share of records that each attack reads is compared with guessing the most frequent name.
    """
    from collections import Counter

    import polars as pl

    from sfumato.data import Table, read, write
    from sfumato.errors import ColumnsDiffer
    from sfumato.parties.encoding_attacks import frequency_attack, pattern_attack

    table, public = read(encodings), read(population)
    bits = _bits(table.column(ENCODING).to_list(), encodings)
    known: Counter[str] = Counter()
    weights = [1] * public.rows if count is None else public.column(count).cast(pl.Int64).fill_null(0).to_list()
    for name, weight in zip(_joined(public, columns), weights, strict=True):
        known[name.lower()] += weight
    found = {"frequency": frequency_attack(bits, known), "pattern": pattern_attack(bits, known)}
    result: dict[str, object] = {"records": len(bits), "names": len(known)}
    if truth is not None:
        names = [name.lower() for name in _joined(read(truth), columns)]
        if len(names) != len(bits):
            raise ColumnsDiffer(f"{truth} has {len(names):,} lines and {encodings} {len(bits):,}.")
        result |= {attack: made.right(names) for attack, made in found.items()}
        result["most_frequent_name"] = names.count(known.most_common(1)[0][0]) / len(names)
    if out is not None:
        guessed = [pl.Series(attack, made.names, dtype=pl.String) for attack, made in found.items()]
        write(Table(frame=pl.DataFrame(guessed)), out, force=force)
    if as_json:
        emit_json(result)
        return
    click.echo(f"{len(bits):,} encodings, {len(known):,} different public names.")
    for attack, made in found.items():
        share = f"reads {result[attack]:.1%}" if truth is not None else "cannot be judged without --truth"
        click.echo(f"  {attack} attack: {share}; {sum(map(bool, made.names)):,} records are given a name.")
    if truth is not None:
        click.echo(f"  always guessing the most frequent name: {result['most_frequent_name']:.1%}")


def _joined(table: Any, columns: tuple[str, ...]) -> list[str]:
    import polars as pl

    parts = [table.column(name).cast(pl.String).fill_null("").to_list() for name in columns]
    return [" ".join(" ".join(row).split()) for row in zip(*parts, strict=True)]


def _texts(path: Path, columns: tuple[str, ...]) -> list[str]:
    """The items of a file; rows without any text are none."""
    from sfumato.data.declared import read_declared

    return [text for text in _joined(read_declared(path, dict.fromkeys(columns, "category")), columns) if text]


def _bits(texts: list[Any], path: Path) -> Bits:
    import numpy as np

    from sfumato.errors import NotThatFormat

    try:
        rows = [np.frombuffer(bytes.fromhex(text), np.uint8) for text in texts]
        return np.unpackbits(np.stack(rows), axis=1).astype(np.bool_)
    except (ValueError, TypeError):
        raise NotThatFormat(
            f"Column `{ENCODING}` of {path} has no encodings of one length.",
            fix="Write it with `sfumato party encode`.",
        ) from None
