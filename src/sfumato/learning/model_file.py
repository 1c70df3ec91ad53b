"""Model files: a fitted private model as JSON, with its privacy statement. Nothing in a file is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.yaml_documents import read_text_file
from sfumato.errors import NotThatFormat, SfumatoError
from sfumato.learning.catalogue import estimator, name_of
from sfumato.release.guarantee import Guarantee

_VERSION = 1
_NOT_STORED = {"ledger", "dataset"}
_KINDS = {"f": "float64", "i": "int64", "b": "bool", "U": "str", "O": "object"}


def model_document(model: Any) -> dict[str, object]:
    """A fitted model as plain data: parameters, fitted values and the privacy statement, all public."""
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_STORED}
    fitted = {
        name: _plain(value)
        for name, value in sorted(vars(model).items())
        if name.endswith("_") and not name.startswith("_") and name != "privacy_"
    }
    return {
        "sfumato_model": _VERSION,
        "estimator": name_of(type(model)),
        "privacy": model.privacy_.to_dict(),
        "parameters": {name: _plain(value) for name, value in sorted(parameters.items())},
        "fitted": fitted,
    }


def model_text(model: object) -> str:
    """The text of a model file."""
    return json.dumps(model_document(model), ensure_ascii=False, allow_nan=False) + "\n"


def is_private_model(path: str | Path) -> bool:
    """Whether a file is a model that ``sfumato learn`` wrote."""
    try:
        document = json.loads(read_text_file(path, kind="model", fix="`sfumato learn` writes one."))
    except ValueError:
        return False
    return isinstance(document, dict) and "sfumato_model" in document


def load_model(path: str | Path) -> object:
    """Read a model that ``sfumato learn`` wrote."""
    text = read_text_file(path, kind="model", fix="`sfumato learn` writes one.")
    try:
        document = json.loads(text)
        if document["sfumato_model"] != _VERSION:
            raise ValueError
        cls = estimator(document["estimator"])
        model = cls(**{name: _value(value) for name, value in document["parameters"].items()})
        for name, value in document["fitted"].items():
            if not name.endswith("_") or name.startswith("_"):
                raise ValueError
            setattr(model, name, _value(value))
        model.privacy_ = Guarantee.from_dict(document["privacy"])
    except (ValueError, KeyError, TypeError, AttributeError, SfumatoError):
        raise NotThatFormat(
            f"{path} is not a model of this version of sfumato.", fix="Write it with `sfumato learn`.", path=str(path)
        ) from None
    return model


def _plain(value: Any) -> Any:
    """JSON of a value; arrays, tuples and mappings keep their kind."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "kind": _KINDS[value.dtype.kind]}
    if isinstance(value, dict):
        return {"mapping": [[_plain(key), _plain(one)] for key, one in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_plain(one) for one in value]}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _value(plain: object) -> Any:
    if isinstance(plain, list):
        return [_value(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        if plain["kind"] not in _KINDS.values():
            raise ValueError("kind of an array")
        return np.array(plain["array"], dtype=None if plain["kind"] == "str" else plain["kind"])
    if "tuple" in plain:
        return tuple(_value(one) for one in plain["tuple"])
    return {_value(key): _value(one) for key, one in plain["mapping"]}
