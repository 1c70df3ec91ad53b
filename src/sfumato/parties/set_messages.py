"""Messages of a private set intersection as JSON files: what two parties send each other, and what the first keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sfumato.data.yaml_documents import read_text_file
from sfumato.errors import NotThatFormat
from sfumato.parties.intersection_size import BlindedSet, IntersectionReply, Opening

Message = TypeVar("Message")


def blinded_text(message: BlindedSet) -> str:
    return json.dumps({"message": "blinded set", "base": message.base.hex(), "points": _hex(message.points)}) + "\n"


def reply_text(message: IntersectionReply) -> str:
    document = {
        "message": "reply", "offset": message.offset, "radius": message.radius,
        "both": _hex(message.both), "own": _hex(message.own),
    }  # fmt: skip
    return json.dumps(document) + "\n"


def opening_text(opening: Opening) -> str:
    return json.dumps({"message": "secret", "secret": opening.secret.hex(), "items": opening.items}) + "\n"


def load_blinded(path: Path) -> BlindedSet:
    """The first party's message; anything else is refused."""
    return _load(path, "blinded set", lambda d: BlindedSet(points=_points(d["points"]), base=_points([d["base"]])[0]))


def load_reply(path: Path) -> IntersectionReply:
    """The second party's message; anything else is refused."""
    return _load(
        path,
        "reply",
        lambda d: IntersectionReply(
            both=_points(d["both"]), own=_points(d["own"]), offset=_whole(d["offset"]), radius=_whole(d["radius"])
        ),
    )


def load_opening(path: Path) -> Opening:
    """The first party's secret; anything else is refused."""
    return _load(path, "secret", lambda d: Opening(secret=_points([d["secret"]])[0], items=_whole(d["items"])))


def _load(path: Path, kind: str, make: Callable[[dict[str, Any]], Message]) -> Message:
    text = read_text_file(path, kind=kind, fix="Write it with `sfumato party`; see docs/parties.md.")
    try:
        document = json.loads(text)
        if isinstance(document, dict) and document.get("message") == kind:
            return make(document)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise NotThatFormat(f"{path} is not a {kind} of a set intersection.", path=str(path))


def _hex(points: tuple[bytes, ...]) -> list[str]:
    return [point.hex() for point in points]


def _points(texts: list[str]) -> tuple[bytes, ...]:
    points = tuple(bytes.fromhex(text) for text in texts)
    if any(len(point) != 32 for point in points):
        raise ValueError("a point has 32 bytes")
    return points


def _whole(number: object) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("not a count")
    return number
