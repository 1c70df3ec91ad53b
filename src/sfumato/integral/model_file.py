"""Model files: algorithm, encoding and model as JSON. They are what is published and hold no record."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from sfumato.data.atomic import replacing
from sfumato.data.yaml_documents import read_text_file
from sfumato.errors import NotThatFormat
from sfumato.integral.encoding import Encoding
from sfumato.integral.learner import Learner
from sfumato.registry import registry

_KIND = "integral-model"


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """A published model with the algorithm that made it."""

    learner: Learner
    encoding: Encoding
    model: bytes

    def to_dict(self) -> dict[str, object]:
        return {
            "sfumato": _KIND,
            "learner": {self.learner.part_name(): self.learner.to_dict()},
            "encoding": self.encoding.model_dump(mode="json", exclude_none=True),
            "model": self.model.hex(),
            "text": self.learner.describe(self.model, self.encoding),
        }

    def save(self, path: Path, *, force: bool = False) -> None:
        with replacing(path, force=force) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> ModelFile:
        fix = "Write it with `sfumato integral fit`."
        try:
            document = json.loads(read_text_file(path, kind="model", fix=fix))
            if document["sfumato"] != _KIND:
                raise ValueError
            [(name, parameters)] = document["learner"].items()
            encoding, model = Encoding.model_validate(document["encoding"]), bytes.fromhex(document["model"])
        except (ValueError, KeyError, TypeError, AttributeError, ValidationError):
            raise NotThatFormat(f"{path} is not a model file.", fix=fix, path=str(path)) from None
        learner = registry("learner").get(name).build(parameters)
        assert isinstance(learner, Learner)
        return cls(learner=learner, encoding=encoding, model=model)
