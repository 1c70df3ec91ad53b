"""Optional libraries: the error for one that is not installed, and the command that installs it."""

from __future__ import annotations

from sfumato.errors import ExtraMissing

_MODULES = {"sklearn": "scikit-learn", "argon2": "argon2-cffi"}
"""Distributions whose modules have other names."""


def extra_of(module: str) -> tuple[str, str] | None:
    """The extra and the distribution that install a module; None for one that no extra installs.

    >>> extra_of("sklearn.linear_model")
    ('learning', 'scikit-learn')
    """
    import re
    from importlib.metadata import PackageNotFoundError, requires

    top = module.split(".")[0]
    wanted = _MODULES.get(top, top.replace("_", "-")).lower()
    try:
        declared = requires("sfumato") or []
    except PackageNotFoundError:  # run from the source tree, never installed
        return None
    for line in declared:
        found = re.match(r"([\w.-]+).*\bextra == ['\"]([\w-]+)['\"]", line)
        if found and found[1].lower() == wanted and found[2] not in ("all", "test"):
            return found[2], found[1]
    return None


def missing_extra(extra: str, library: str, *, needed_by: str) -> ExtraMissing:
    """The error for an optional library that is not installed; the fix repeats the way sfumato itself was installed."""
    return ExtraMissing(
        f"{needed_by} needs {library}, which is not installed.",
        fix=f"Install it with {_install_command(extra)}.",
        library=library,
        extra=extra,
    )


def _install_command(extra: str) -> str:
    """How to add an extra: from the checkout, from the same archive or repository, or from the package index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        record = distribution("sfumato").read_text("direct_url.json")
    except PackageNotFoundError:  # run from the source tree, never installed
        return f"`pip install '.[{extra}]'` in the folder of the checkout"
    if record is None:
        return f"`pip install 'sfumato[{extra}]'`"
    origin = json.loads(record)
    if "dir_info" in origin:
        return f"`pip install '.[{extra}]'` in the folder of the checkout"
    repository = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
    return f"`pip install 'sfumato[{extra}] @ {repository}{origin['url']}'`"
