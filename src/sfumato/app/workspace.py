"""State of one running app: the open project, its table, jobs and results."""

from __future__ import annotations

import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.app.jobs import Jobs
from sfumato.app.project import RecipeProject, open_project
from sfumato.app.runs import Run, current_run, remove_other_runs, run_version, stamp_of
from sfumato.app.table_view import TableView
from sfumato.errors import BadParameter, SfumatoError
from sfumato.release.folder import load_lineage, load_release, private_folder


class AppWorkspace:
    """What the pages of one app show. Everything that matters is in files; this holds what would be slow to reread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """Where the file chooser starts."""
        self.jobs = Jobs()
        self._project: RecipeProject | None = None
        self._lock = threading.RLock()
        self._view: tuple[object, TableView] | None = None
        self._released: tuple[object, TableView] | None = None
        self._summaries: dict[object, dict[str, object]] = {}
        self._forms: dict[str, object] | None = None

    @property
    def project(self) -> RecipeProject | None:
        """The open project; None while the start page is shown."""
        return self._project

    def need(self) -> RecipeProject:
        """The open project; refused if there is none."""
        if self._project is None:
            raise BadParameter("No file is open.", fix="Choose a file on the start page.")
        return self._project

    def open(self, source: str) -> RecipeProject:
        """Open a file or recipe, and profile it if there is no recipe yet."""
        project = open_project(source)
        with self._lock:
            for kept in (self._view, self._released):
                if kept is not None:
                    kept[1].close()
            self._project, self._view, self._released = project, None, None
            self._summaries.clear()
        remove_other_runs(project.folder)
        if project.text() is None or project.stored("profile.json") is None:
            self.start_profile()
        return project

    def start_profile(self, *, options: dict[str, object] | None = None) -> None:
        """Profile the data in a job; the first profile also writes the recipe.

        With ``options`` the file is read in another way, and the recipe is proposed anew. Undo brings the old one back.
        """
        project = self.need()
        location, usual = project.source()
        again, options = options is not None, usual if options is None else options

        def keep(result: dict[str, object]) -> None:
            project.store("profile.json", result["proposal"])
            if again or project.text() is None:
                change = "read the file in another way" if again else "proposed from the data"
                project.edit(change, lambda _: str(result["recipe"]))

        running = self.jobs.running("profile")
        if running is not None:
            self.jobs.cancel(running.number)
        arguments = {"data": location, "options": options, "recipe": str(project.recipe_path)}
        self.jobs.start("profile", arguments, then=keep)

    def view(self) -> TableView:
        """The table as the recipe declares its columns. Reopened when file, options or declarations change."""
        project = self.need()
        with self._lock:
            location, options = project.source()
            try:
                recipe = project.recipe()
            except SfumatoError:
                recipe = None
            schema = recipe.schema if recipe is not None else None
            casts = {n: (c.kind, c.missing_codes) for n, c in schema.columns.items()} if schema is not None else {}
            key = (location, stamp_of(location), repr(sorted(options.items())), repr(sorted(casts.items())))
            if self._view is None or self._view[0] != key:
                opened = TableView.open(location, options, schema)
                if self._view is not None:
                    self._view[1].close()
                self._view = (key, opened)
                self._summaries.clear()
            return self._view[1]

    def summary(self, column: str) -> dict[str, Any]:
        """The summary of a column, computed once for each state of the table."""
        view = self.view()
        if column not in self._summaries:
            self._summaries[column] = view.summary(column)
        return self._summaries[column]

    def last_run(self) -> Run:
        """The last run that ended; refused if there is none."""
        found = current_run(self.need().folder)
        if found is None:
            raise BadParameter("There is no run yet.", fix="Run the recipe on the Protect page.")
        return found

    def stale(self, run: Run) -> str:
        """What has changed since a run: ``recipe``, ``data`` or nothing."""
        if run.recipe != run_version(self.need().text() or ""):
            return "recipe"
        return "data" if run.data_changed(self.need().source()[0]) else ""

    def compared(self) -> tuple[TableView, TableView]:
        """The table of the last run and the one that it was made from; refused if the data file has changed since."""
        if self.last_run().data_changed(self.need().source()[0]):
            raise BadParameter("The data file has changed since the last run.", fix="Run the recipe again.")
        return self.released(), self.view()

    def released(self) -> TableView:
        """The table of the last run."""
        folder = self.last_run().release
        with self._lock:
            key = folder
            if self._released is None or self._released[0] != key:
                if self._released is not None:
                    self._released[1].close()
                self._released = (key, TableView(load_release(folder).table))
            return self._released[1]

    def row_map(self) -> Any:
        """For each released row the number of its original row, -1 if it has none."""
        lineage = load_lineage(self.last_run().release)
        if lineage is None:
            raise BadParameter("The row map of the last run is missing.", fix="Run the recipe again.")
        return np.asarray(lineage.rows)

    def report(self) -> dict[str, Any] | None:
        """The internal report of the last run as data: with drawn pictures, ways out of a limit, and who signed it."""
        import json

        from sfumato.drawing import chart_from_dict
        from sfumato.evaluation.limits import judged_words
        from sfumato.evaluation.ways_out import ways_out

        run = current_run(self.need().folder)
        if run is None:
            return None
        file = private_folder(run.release) / "report.json"
        report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        signed = run.signed
        drawn = {
            name: chart_from_dict(picture).draw(picture["width"]).svg(ident=name, label=name)
            for name, picture in report["pictures"].items()
        }
        attacks, limits = report["attacks"], report["limits"]
        return report | {
            "pictures": drawn,
            "limits": [limit | {"words": judged_words(limit, attacks)} for limit in limits],
            "ways": [way.to_dict() for way in ways_out(attacks, limits, report["manifest"], report["verdicts"])],
            "stale": self.stale(run),
            "unmet": list(run.unmet),
            "fingerprint": run.fingerprint,
            "signed": asdict(signed) if signed is not None else None,
        }

    def forms(self) -> dict[str, object] | None:
        """Fields and docs of all parts; None until the job that collects them is done."""
        job = self.jobs.latest("forms")
        if self._forms is None and job is not None and job.state == "done":
            self._forms = job.result
        if self._forms is None and (job is None or job.state not in ("running", "done")):
            self.start_forms()
        return self._forms

    def start_forms(self) -> None:
        """Collect the forms of all parts in a job; it takes some seconds, so it is started with the app."""
        self.jobs.start("forms", {})

    def close(self) -> None:
        """End jobs and close tables."""
        self.jobs.close()
        for kept in (self._view, self._released):
            if kept is not None:
                kept[1].close()
