"""How errors are told at both doors: the HTTP status and PostgreSQL's SQLSTATE of each kind of error."""

from __future__ import annotations

from sfumato import errors
from sfumato.errors import SfumatoError

_CODES: tuple[tuple[type[SfumatoError], int, str], ...] = (
    (errors.NotSignedIn, 401, "28000"),  # invalid_authorization_specification
    (errors.AccessDenied, 403, "42501"),  # insufficient_privilege
    (errors.AnswerDenied, 403, "42501"),
    (errors.OverBudget, 403, "53400"),  # configuration_limit_exceeded
    (errors.UnknownBudget, 403, "53400"),
    (errors.NoSuchItem, 404, "3D000"),  # invalid_catalog_name
    (errors.Conflict, 409, "55000"),  # object_not_in_prerequisite_state
    (errors.Cancelled, 409, "57014"),  # query_canceled
    (errors.QueryRefused, 422, "0A000"),  # feature_not_supported
    (errors.MetadataMissing, 422, "0A000"),
    (errors.TooManyRequests, 429, "53300"),  # too_many_connections
    (errors.AnswerFailed, 500, "XX000"),  # internal_error
    (errors.LedgerRolledBack, 503, "58030"),  # io_error
    (errors.LedgerBroken, 503, "58030"),
    (errors.WriteFailed, 503, "58030"),
    (errors.DatabaseFailed, 503, "58030"),
)


def error_codes(error: SfumatoError) -> tuple[int, str]:
    """HTTP status and SQLSTATE of an error; those that are not listed are faults of the request.

    >>> error_codes(errors.OverBudget("This costs too much.")), error_codes(errors.BadParameter("no"))
    ((403, '53400'), (422, '22023'))
    """
    return next(((status, state) for kind, status, state in _CODES if isinstance(error, kind)), (422, "22023"))
