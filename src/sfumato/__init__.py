"""sfumato: statistical data privacy. Release microdata, answer queries, attack both, measure what is left.

>>> import sfumato
>>> proposal = sfumato.propose(frame)                                # doctest: +SKIP
>>> done = sfumato.protect(proposal.recipe(k=5), frame)              # doctest: +SKIP
>>> done.data                                                        # doctest: +SKIP
>>> sfumato.attack(done)                                             # doctest: +SKIP
>>> done.save("release/")                                            # doctest: +SKIP
>>> sfumato.session("hospital.yaml").ask("SELECT COUNT(*) FROM visits", epsilon=1)      # doctest: +SKIP

Everything below is loaded on first use, so that ``import sfumato`` stays fast. Type checkers see the real signatures.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # known to type checkers; `typing` takes longer to load than the rest of this module
    from sfumato.api.check import check
    from sfumato.api.evaluate import attack, measure
    from sfumato.api.protect import Protection, protect
    from sfumato.api.session import session
    from sfumato.data import read, write
    from sfumato.errors import SfumatoError
    from sfumato.profiling import propose
    from sfumato.query import Session
    from sfumato.recipe import Recipe
    from sfumato.rng import Rng
    from sfumato.schema import Column, Dataset, Role, Schema
    from sfumato.studies.run import run_study as study

__version__ = "0.2.0.dev0"

__all__ = [
    "Column",
    "Dataset",
    "Protection",
    "Recipe",
    "Rng",
    "Role",
    "Schema",
    "Session",
    "SfumatoError",
    "__version__",
    "attack",
    "check",
    "measure",
    "propose",
    "protect",
    "read",
    "session",
    "study",
    "write",
]

if not TYPE_CHECKING:
    _HOME = {
        "Column": "schema",
        "Dataset": "schema",
        "Protection": "api",
        "Recipe": "recipe",
        "Rng": "rng",
        "Role": "schema",
        "Schema": "schema",
        "Session": "query",
        "SfumatoError": "errors",
        "attack": "api",
        "check": "api",
        "measure": "api",
        "propose": "profiling",
        "protect": "api",
        "read": "data",
        "session": "api",
        "study": "api",
        "write": "data",
    }

    def __getattr__(name):
        import importlib

        if name in _HOME:
            return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted(__all__)
