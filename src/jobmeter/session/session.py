"""One run from its start to its record: the same for every kind of job."""

from __future__ import annotations

import threading
from collections.abc import Callable

from jobmeter.errors import JobmeterError
from jobmeter.kernel.machine import THIS_MACHINE, Machine
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.meter.meter import Meter
from jobmeter.meter.watch import Sample, Window
from jobmeter.model import Outcome
from jobmeter.session.measuring import USUAL, MeasureOptions, Measuring, ignore

if TYPE_CHECKING:
    from jobmeter.record.types import Record
    from jobmeter.session.contract import JobControl


class Session:
    """`start` it, then `wait` for its record; `stop`, from any thread, makes `wait` return.

    Once the job runs, no failure of the measuring changes how the job ends, or its recorded outcome.
    """

    def __init__(
        self,
        job: JobControl,
        options: MeasureOptions = USUAL,
        *,
        meter: Meter | None = None,
        machine: Machine = THIS_MACHINE,
        warn: Callable[[str], None] = ignore,
        on_sample: Callable[[Sample], None] = ignore,
        on_window: Callable[[Window], None] = ignore,
    ) -> None:
        """Raises UsageError, before anything is started, if an option is not valid."""
        if job.in_container:
            from jobmeter.collectors.container import with_container

            options = options._replace(measurements=with_container(options.measurements))
        self.outcome: Outcome
        self._job = job
        self._measuring = Measuring(
            options, meter=meter, machine=machine, warn=warn, on_sample=on_sample, on_window=on_window
        )
        self._prepared = self._runs = False
        self._stop_requested: bool | None = None  # whether at once; None: not requested
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        return self._measuring.id

    def exit_code(self) -> int | None:
        """The exit code of the job as a shell shows it; None until its outcome is known."""
        return self.outcome.shell_code if hasattr(self, "outcome") else None

    @property
    def journal_path(self) -> str | None:
        return self._measuring.journal.path if self._measuring.journal is not None else None

    def prepare(self) -> None:
        """Check the job and fetch what takes long, before anything is started; `start` does it if it was not done."""
        if not self._prepared:
            self._job.prepare(self._measuring)
            self._prepared = True

    def start(self) -> None:
        """Start the job and measure it. Raises JobmeterError if that is not possible; then nothing is left behind."""
        self.prepare()
        try:
            self._measuring.begin(self._job.open())
            self._measuring.start_sampling()
            self._job.run()
        except BaseException:
            self._close(discard=True)
            raise
        with self._lock:
            self._runs = True
            stop_requested = self._stop_requested
        if stop_requested is not None:
            self._job.stop(at_once=stop_requested)
        self._measuring.sync()

    def stop(self, *, at_once: bool = False) -> None:
        """End the run: a launched job with everything it started; of a job that already ran, only the measuring.

        `at_once`: send SIGKILL right away, without SIGTERM and a grace period. A call before `start` has returned takes
        effect at the end of `start`.
        """
        with self._lock:
            self._stop_requested = at_once or bool(self._stop_requested)
            if not self._runs:
                return
        self._job.stop(at_once=at_once)

    def wait(self) -> Record:
        """Wait for the end of the job, or for `stop`, and return the run record."""
        try:
            self._job.wait()
        except JobmeterError:
            # Its program was never executed: there is nothing to record.
            self._close(discard=True)
            raise
        except BaseException:
            try:
                self._stop_and_wait()
            finally:
                self._conclude()
            raise
        return self._conclude()

    def leave(self) -> None:
        """Take the last readings and write no record: the owner of the journal, which knows how the job ended, does."""
        try:
            self._measuring.finish(self._job.end())
        finally:
            self._close()

    def record_so_far(self) -> Record:
        """The record of a run that goes on, with the status `running` and no end."""
        return self._measuring.record_so_far()

    def _stop_and_wait(self) -> None:
        """End the job before an exception is passed on. On another one, such as a second Ctrl-C, kill it at once."""
        try:
            self._job.stop(at_once=False)
            self._job.wait()
        except BaseException:
            self._job.stop(at_once=True)
            self._job.wait()
            raise

    def _conclude(self) -> Record:
        try:
            end = self._job.end()
            self._measuring.finish(end)
            self.outcome = self._job.outcome()
            return self._measuring.record(end, self.outcome)
        finally:  # clean up, whatever interrupts us
            self._close()

    def _close(self, *, discard: bool = False) -> None:
        try:
            self._measuring.close(discard=discard)
        finally:
            self._job.close()
