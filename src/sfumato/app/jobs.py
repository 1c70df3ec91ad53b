"""Jobs: long work in worker processes, with progress, cancel and a time limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.errors import BadParameter

State = Literal["running", "done", "failed", "cancelled", "out of time"]
_KEPT = 50


@dataclass(kw_only=True)
class BackgroundJob:
    """One piece of work and how far it is."""

    number: int
    kind: str
    started: float
    limit: float | None
    state: State = "running"
    progress: list[dict[str, Any]] = field(default_factory=list)
    """Open tasks, the outer one first: title, done, total."""
    finished: float | None = None
    error: dict[str, Any] | None = None
    result: Any = None
    process: Any = field(default=None, repr=False)

    def to_dict(self, now: float) -> dict[str, Any]:
        """What pages show; the result is not part of it."""
        return {
            "number": self.number,
            "kind": self.kind,
            "state": self.state,
            "seconds": (self.finished or now) - self.started,
            "limit": self.limit,
            "progress": list(self.progress),
            "error": self.error,
        }


class Jobs:
    """The jobs of one app. Work of a kind runs once at a time; a new start replaces nothing that runs."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._jobs: dict[int, BackgroundJob] = {}
        self._lock = threading.Lock()
        self._count = 0

    def start(
        self,
        kind: str,
        arguments: Mapping[str, object],
        *,
        seconds: float | None = None,
        then: Callable[[Any], None] | None = None,
    ) -> BackgroundJob:
        """Start work in a process of its own. ``then`` gets the result before the job counts as done."""
        with self._lock:
            running = [job for job in self._jobs.values() if job.kind == kind and job.state == "running"]
            if running:
                raise BadParameter("This work is running already.", fix="Wait for it, or cancel it first.")
            self._count += 1
            job = BackgroundJob(number=self._count, kind=kind, started=self._clock(), limit=seconds)
            self._jobs[job.number] = job
            for number in sorted(self._jobs)[:-_KEPT]:
                if self._jobs[number].state != "running":
                    del self._jobs[number]
        job.process = subprocess.Popen(
            [sys.executable, "-m", "sfumato.app.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback may contain values of the data
            start_new_session=True,  # processes that the work starts end with it
            text=True,
            encoding="utf-8",
        )
        threading.Thread(target=self._follow, args=(job, dict(arguments), then), daemon=True).start()
        if seconds is not None:
            timer = threading.Timer(seconds, self._end, args=(job, "out of time"))
            timer.daemon = True
            timer.start()
        return job

    def _follow(self, job: BackgroundJob, arguments: dict[str, Any], then: Callable[[Any], None] | None) -> None:
        with suppress(OSError, ValueError):
            job.process.stdin.write(json.dumps({"kind": job.kind, "arguments": arguments}))
            job.process.stdin.close()
        outcome: dict[str, Any] = {}
        for line in job.process.stdout:
            message = json.loads(line)
            if "progress" in message:
                job.progress = message["progress"]
            else:
                outcome = message
        job.process.wait()
        with self._lock:
            if job.state != "running":
                return
        if "result" in outcome:
            try:
                if then is not None:
                    then(outcome["result"])
                self._finish(job, "done", result=outcome["result"])
                return
            except Exception as failure:
                outcome = {"error": _unexpected(type(failure).__name__)}
        self._finish(job, "failed", error=outcome.get("error") or _unexpected("the process ended"))

    def _finish(
        self, job: BackgroundJob, state: State, *, error: dict[str, object] | None = None, result: object = None
    ) -> None:
        with self._lock:
            if job.state == "running":
                job.state, job.error, job.result = state, error, result
                job.finished, job.progress = self._clock(), []

    def _end(self, job: BackgroundJob, state: State) -> None:
        """End a job and every process that it started."""
        with self._lock:
            if job.state != "running":
                return
            job.state, job.finished, job.progress = state, self._clock(), []
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(job.process.pid, signal.SIGKILL)

    def cancel(self, number: int) -> None:
        """Cancel a running job. Its partial results stay where the work keeps them."""
        self._end(self.get(number), "cancelled")

    def get(self, number: int) -> BackgroundJob:
        job = self._jobs.get(number)
        if job is None:
            raise BadParameter("There is no such job.")
        return job

    def running(self, kind: str) -> BackgroundJob | None:
        """The running job of a kind."""
        return next((job for job in self._jobs.values() if job.kind == kind and job.state == "running"), None)

    def latest(self, kind: str) -> BackgroundJob | None:
        """The last job of a kind, running or ended."""
        return next((job for job in reversed(list(self._jobs.values())) if job.kind == kind), None)

    def to_list(self) -> list[dict[str, Any]]:
        """All jobs, newest first."""
        now = self._clock()
        return [job.to_dict(now) for job in reversed(list(self._jobs.values()))]

    def close(self) -> None:
        """Cancel everything that runs; the app ends."""
        for job in list(self._jobs.values()):
            self._end(job, "cancelled")


def _unexpected(what: str) -> dict[str, object]:
    message = f"Internal error ({what}). Its details may contain values of your data and are not shown."
    return {"code": "SFU-003", "message": message, "fix": "Run the command on the command line with SFUMATO_DEBUG=1."}
