"""Requests and responses of the app's HTTP interface. The types of the front end are generated from them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SignIn(_Document):
    token: str = Field(max_length=200)


class OpenRequest(_Document):
    path: str = Field(min_length=1, max_length=4000)


class FileEntry(_Document):
    name: str
    path: str
    folder: bool
    size: int | None = None


class FileList(_Document):
    folder: str
    parent: str | None
    entries: list[FileEntry]


class VersionEntry(_Document):
    number: int
    change: str
    at: float


class JobStatus(_Document):
    number: int
    kind: str
    state: Literal["running", "done", "failed", "cancelled", "out of time"]
    seconds: float
    limit: float | None
    progress: list[dict[str, Any]]
    error: dict[str, Any] | None


class RecipeState(_Document):
    text: str | None
    version: str
    path: str
    document: dict[str, Any]
    problems: list[dict[str, Any]]
    branch: str
    branches: list[str]
    undo: str | None
    redo: str | None
    recent: list[VersionEntry]


class AppState(_Document):
    sfumato: str
    project: str | None
    recipe: RecipeState | None
    jobs: list[JobStatus]
    profiled: bool
    run: float | None
    """When the last run ended; None if there was none."""
    study: bool
    user: str


class TextEdit(_Document):
    text: str = Field(max_length=2_000_000)
    version: str


class SectionEdit(_Document):
    key: str
    value: Any = None
    version: str


class ColumnEdit(_Document):
    column: str
    key: str
    value: Any = None
    version: str


class DecideRequest(_Document):
    roles: dict[str, str] = {}
    rest: str | None = None
    accept: bool = False
    unit: str | None = None
    k: int | None = None
    by: str
    reason: str | None = None
    version: str


class BranchRequest(_Document):
    name: str


class CompareRequest(_Document):
    one: str
    other: str


class UniquenessRequest(_Document):
    columns: list[str]


class RecordsRequest(_Document):
    rows: list[int] = Field(max_length=200)


class PairRequest(_Document):
    one: str
    other: str


class HierarchyRequest(_Document):
    column: str
    hierarchy: Any = None
    values: bool = False


class JobRequest(_Document):
    kind: Literal["profile", "protect", "study", "lattice"]
    seconds: float | None = Field(default=None, gt=0, le=7 * 24 * 3600)
    targets: int = Field(default=2000, ge=1, le=1_000_000)
    candidates: list[Any] = []


class PublishRequest(_Document):
    folder: str = Field(min_length=1, max_length=4000)
    unmet: bool = False
    replace: bool = False


class SignOffRequest(_Document):
    fingerprint: str
    """The fingerprint of the run that was reviewed, as the report shows it."""
    prepared_by: str = Field("", max_length=200)
    approved_by: str = Field("", max_length=200)
    notes: str = Field("", max_length=4000)


class ReadingRequest(_Document):
    options: dict[str, Any]
    """Options of the file's format, as in the recipe's ``data`` section."""


class AskSetup(_Document):
    unit: str = Field(min_length=1)
    epsilon: str | None = Field(default=None, min_length=1, max_length=40)
    """The budget of differential privacy as text, so that 0.1 stays exactly one tenth; None for an auditor."""
    k: int | None = Field(default=None, ge=2, le=1000)
    """With an auditor: possible values of the sensitive columns that everyone keeps."""
    sensitive: list[str] = []
    by: str = Field(min_length=1, max_length=200)


class AskState(_Document):
    text: str | None
    """The metadata file; None before the table is set up."""
    version: str
    path: str = ""
    dataset: str = ""
    policy: str = ""
    columns: list[str] = []
    tables: dict[str, list[list[str]]] = {}
    """The public schema: name, kind and declared values of the columns of each table."""
    budget: dict[str, Any] | None = None
    history: list[dict[str, Any]] = []
    sensitive: list[str] = []
    """Sensitive columns of the recipe."""
    promise: str = ""
    """What a policy other than differential privacy promises."""
    problem: str = ""


class AskRequest(_Document):
    sql: str = Field(min_length=1, max_length=100_000)
    epsilon: str | None = Field(default=None, max_length=40)
    delta: str | None = Field(default=None, max_length=40)
    analyst: str = Field(min_length=1, max_length=200)
