"""Routes of runs: jobs, forms, the report of the last run, comparison with the original, and publishing."""

from __future__ import annotations

import io
import shutil
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from sfumato.app.documents import JobRequest, JobStatus, PairRequest, PublishRequest, SignOffRequest
from sfumato.app.project import RecipeProject, text_version
from sfumato.app.runs import SIGNED, Run, SignOff, current_run, new_run, remove_other_runs
from sfumato.app.workspace import AppWorkspace
from sfumato.data.yaml_documents import yaml_text
from sfumato.errors import BadParameter, PolicyNotMet, SfumatoError
from sfumato.release.folder import MICRODATA, private_document, private_folder, refuse_existing
from sfumato.release.guarantee import guarantees_of
from sfumato.release.public_folder import release_folders


def run_routes(workspace: AppWorkspace) -> APIRouter:
    """The routes of jobs and their results."""
    router = APIRouter(tags=["runs"])

    @router.get("/api/jobs")
    def jobs() -> list[JobStatus]:
        return [JobStatus(**job) for job in workspace.jobs.to_list()]

    @router.post("/api/jobs")
    def start(request: JobRequest) -> dict[str, int | None]:
        match request.kind:
            case "profile":
                workspace.start_profile()
            case "protect":
                _start_protect(workspace, request)
            case "study":
                _start_study(workspace, request)
            case "lattice":
                _start_lattice(workspace, request)
        job = workspace.jobs.latest(request.kind)
        return {"number": job.number if job is not None else None}

    @router.post("/api/jobs/{number}/cancel")
    def cancel(number: int) -> dict[str, bool]:
        workspace.jobs.cancel(number)
        return {"cancelled": True}

    @router.get("/api/forms")
    def forms() -> dict[str, Any]:
        """Fields and docs of all parts; empty until they are collected."""
        return workspace.forms() or {}

    @router.get("/api/report")
    def report() -> dict[str, Any]:
        return {"report": workspace.report()}

    @router.get("/api/study")
    def study() -> dict[str, Any]:
        return {"study": workspace.need().stored("study.json")}

    @router.get("/api/lattice")
    def lattice() -> dict[str, Any]:
        """All combinations of levels as last evaluated, and whether columns, models or the step have changed since."""
        project = workspace.need()
        found = project.stored("lattice.json")
        return {"lattice": found, "stale": found is not None and found["about"] != lattice_key(project)}

    @router.get("/api/compare/rows")
    def compare_rows(offset: int = 0, count: int = 50) -> dict[str, Any]:
        """Released rows beside the original rows they were made from."""
        released, original = workspace.compared()
        numbers = [int(n) for n in workspace.row_map()[offset : offset + max(0, min(count, 200))]]
        after = released.page(offset, len(numbers))
        before = original.rows_at(numbers)
        pairs = [[n, old, new] for n, old, new in zip(numbers, before, after, strict=False)]
        return {
            "rows": released.rows,
            "before": list(original.columns),
            "after": list(released.columns),
            "pairs": pairs,
        }

    @router.post("/api/compare/pair")
    def compare_pair(request: PairRequest) -> dict[str, Any]:
        """Two columns together, before and after, as shares of the rows."""
        released, original = workspace.compared()
        return {
            "before": original.crosstab(request.one, request.other),
            "after": released.crosstab(request.one, request.other),
        }

    @router.get("/report/{audience}")
    def page(audience: str) -> Response:
        """The report as a page, for reading and printing. It has no script and its own content security policy."""
        release = workspace.last_run().release
        folder = {"internal": private_folder(release), "external": release}.get(audience)
        if folder is None or not (folder / "report.html").is_file():
            raise BadParameter("There is no such report.", fix="Run the recipe on the Protect page.")
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"
        headers = {"content-security-policy": policy, "x-frame-options": "SAMEORIGIN"}
        return Response((folder / "report.html").read_bytes(), media_type="text/html", headers=headers)

    @router.post("/api/publish")
    def publish(request: PublishRequest) -> dict[str, str]:
        """Copy the last run to a release folder and its private folder, as `sfumato protect --out` writes them."""
        run = _current(workspace)
        if run.unmet and not request.unmet:
            raise PolicyNotMet(
                "The release does not meet its models or limits: " + "; ".join(run.unmet) + ".",
                fix="Change the recipe, or confirm that it is written nevertheless.",
            )
        target = Path(workspace.need().recipe_path.parent, Path(request.folder).expanduser())
        refuse_existing(target, force=request.replace, kind=MICRODATA)
        folders = release_folders(
            target, promise=run.promise, force=request.replace, record=_recorder(workspace, run, target.name)
        )
        with folders as (public, private):
            shutil.copytree(run.release, public.path, dirs_exist_ok=True)
            shutil.copytree(private_folder(run.release), private, dirs_exist_ok=True)
            _write_sign_off(run, private)
            private.chmod(0o700)
        return {"release": str(target), "private": str(private_folder(target))}

    @router.post("/api/sign-off")
    def sign_off(request: SignOffRequest) -> dict[str, bool]:
        """Sign the run with this fingerprint. The run stays as it is: a sign-off is about values that were reviewed."""
        _current(workspace).sign(SignOff(**request.model_dump(), at=time.time()))
        return {"signed": True}

    @router.get("/api/package")
    def package() -> Response:
        """The release folder as one file: data, codebook, manifest with hashes, external report. Nothing private."""
        run = _current(workspace)
        if run.unmet:
            raise PolicyNotMet(
                "There is no release to hand over.", fix="Run the recipe until its models and limits are met."
            )
        record = _recorder(workspace, run, "release.zip")
        if record is not None:
            record(run.release)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(run.release.iterdir()):
                archive.write(path, f"release/{path.name}")
        headers = {"content-disposition": 'attachment; filename="release.zip"'}
        return Response(packed.getvalue(), media_type="application/zip", headers=headers)

    return router


def _current(workspace: AppWorkspace) -> Run:
    """The last run, which recipe and data still are those of."""
    run = workspace.last_run()
    changed = workspace.stale(run)
    if changed:
        what = "recipe" if changed == "recipe" else "data file"
        raise BadParameter(f"The {what} has changed since the last run.", fix="Run the recipe again.")
    return run


def _recorder(workspace: AppWorkspace, run: Run, name: str) -> Callable[[Path], None] | None:
    """What enters a run into the register of what left, as `sfumato protect --out` does. A run that is only looked at
    has not left."""
    from sfumato.api.protection import release_recorder

    recipe = workspace.need().recipe()
    assert recipe is not None
    judged = private_document(run.release)["verdicts"]
    assert isinstance(judged, list)
    return release_recorder(
        guarantees_of(run.manifest), kind=MICRODATA, name=name, plan=recipe.to_yaml(), verdicts=judged,
        account=recipe.account, why=recipe.about.purpose or "",
    )  # fmt: skip


def _write_sign_off(run: Run, folder: Path) -> None:
    """The internal report of a signed run names who signed it."""
    from sfumato.api.kinds.microdata.report import load_report
    from sfumato.reports import write_report

    signed = run.signed
    if signed is not None:
        names = {"prepared_by": signed.prepared_by, "approved_by": signed.approved_by}
        report = load_report(run.release)
        about = {**report.about, **{key: name for key, name in names.items() if name}}
        (folder / "report.html").unlink()
        write_report(replace(report, about=about), folder / "report.html", audience="internal")
        shutil.copy(run.folder / SIGNED, folder / SIGNED)


def _start_protect(workspace: AppWorkspace, request: JobRequest) -> None:
    project = workspace.need()
    recipe = project.recipe()  # an invalid recipe is refused with its lines
    if recipe is None:
        raise BadParameter("There is no recipe yet.", fix="Wait until the profile is done.")
    text, folder, before = project.text() or "", new_run(project.folder), current_run(project.folder)
    remove_other_runs(project.folder, keep=folder)

    def keep(result: dict[str, Any]) -> None:
        remove_other_runs(project.folder)

    arguments = {
        "text": text, "base": str(project.recipe_path.parent), "out": str(folder),
        "before": str(before.release) if before is not None else None, "targets": request.targets,
        "seconds": request.seconds,
    }  # fmt: skip
    # Attacks and measures stop by themselves at the limit; masking does not, so the process ends some time later.
    limit = request.seconds * 2 + 30 if request.seconds is not None else None
    workspace.jobs.start("protect", arguments, seconds=limit, then=keep)


def lattice_key(project: RecipeProject) -> str:
    """What a survey of the lattice depends on: the data, columns, models and steps, but not the range of levels."""
    try:
        recipe = project.recipe()
    except SfumatoError:
        return ""
    parts = [*recipe.models, *recipe.steps] if recipe is not None else []
    settings = [(part.part_name(), part.to_dict()) for part in parts]
    plain = [(name, {k: v for k, v in one.items() if k not in ("lowest", "highest")}) for name, one in settings]
    document = project.document()
    return text_version(repr((document.get("data"), document.get("columns"), plain)))


def _start_lattice(workspace: AppWorkspace, request: JobRequest) -> None:
    project = workspace.need()
    if project.recipe() is None:  # an invalid recipe is refused with its lines
        raise BadParameter("There is no recipe yet.", fix="Wait until the profile is done.")
    about = lattice_key(project)

    def keep(result: dict[str, Any]) -> None:
        project.store("lattice.json", {**result, "about": about})

    workspace.jobs.start("lattice", {"recipe": str(project.recipe_path)}, seconds=request.seconds, then=keep)


def _start_study(workspace: AppWorkspace, request: JobRequest) -> None:
    from sfumato.studies import StudyPlan

    project = workspace.need()
    document = dict(project.document())
    steps = document.get("steps") or []
    pseudonyms = [step for step in steps if isinstance(step, dict) and "pseudonymize" in step]
    candidates = request.candidates or [entry for entry in steps if entry not in pseudonyms]
    location, options = project.source()
    document["data"] = {"file": location, **options} if options else location
    document["steps"] = pseudonyms
    document["study"] = {"candidates": candidates, "targets": min(request.targets, 1000)}
    StudyPlan.parse(document, base=project.recipe_path.parent)  # refused before the work
    plan = project.recipe_path.parent / f".{project.recipe_path.stem}.study.yaml"
    plan.write_text(yaml_text(document), encoding="utf-8")
    plan.chmod(0o600)

    def keep(result: dict[str, Any]) -> None:
        project.store("study.json", result)

    arguments = {"plan": str(plan), "out": str(project.folder / "study"), "seconds": request.seconds}
    workspace.jobs.start("study", arguments, then=keep)
