"""Optional libraries: the error for one that is not installed, and the command that installs it."""

from __future__ import annotations

from sfumato.errors import ExtraMissing

__all__ = ["missing_extra"]


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
