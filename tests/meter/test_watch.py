from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from jobmeter.collectors.contract import Ending, Moment, ProcessUse, Readings, Source
from jobmeter.errors import NoData
from jobmeter.kernel.procfs import Identity
from jobmeter.meter.watch import Sample, Watch, Window
from jobmeter.model import Across, Kind, Measurement, Quality

LEVEL = Measurement("level", "bytes", Kind.GAUGE, Across.SUM, Quality.SAMPLED, "A level.")
TOTAL = Measurement("total", "count", Kind.COUNTER, Across.LAST, Quality.EXACT, "A counter.")
OTHER = Measurement("other", "count", Kind.GAUGE, Across.LAST, Quality.SAMPLED, "Another level.")
MEASUREMENTS = {m.key: m for m in (LEVEL, TOTAL, OTHER)}
AT_EVERY_SAMPLE, NEVER = 1e-9, 3600.0


class Script:
    """A source that reads from a list; an exception in it is raised."""

    def __init__(self, *readings: Mapping[str, Any] | Exception, finish: Readings | None = None) -> None:
        self.moments: list[Moment] = []
        self.closed = False
        self._readings = list(readings)
        self._finish = finish or {}

    def read(self, moment: Moment) -> Readings:
        self.moments.append(moment)
        reading = self._readings.pop(0)
        if isinstance(reading, Exception):
            raise reading
        return dict(reading)

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return self._finish

    def close(self) -> None:
        self.closed = True


class Pulsing(Script):
    """A source that knows CPU time and page faults as well."""

    def __init__(self, *readings: Mapping[str, Any], pulse: int | None = 0, faults: int | None = 0) -> None:
        super().__init__(*readings)
        self.pulse = pulse
        self.faults = faults

    def cpu_nanoseconds(self) -> int | None:
        return self.pulse

    def page_faults(self) -> int | None:
        return self.faults


class Watched:
    """A watch, and what it told."""

    def __init__(
        self, sources: dict[str, Source], *, window: float = NEVER, interval: float = NEVER, per_process: bool = False
    ) -> None:
        self.windows: list[Window] = []
        self.samples: list[Sample] = []
        self.watch = Watch(
            sources,
            MEASUREMENTS,
            interval=interval,
            window=window,
            on_window=self.windows.append,
            on_sample=self.samples.append,
            per_process=per_process,
        )

    def cells(self) -> list[dict[str, object]]:
        return [window.cells for window in self.windows]


def test_a_source_that_raises_costs_only_its_own_readings_and_is_named() -> None:
    well = Script({"level": 1}, {"level": 3}, {"level": 5})
    ill = Script({"other": 7}, OSError(5, "broken"), NoData("nothing left"))
    watched = Watched({"ill": ill, "well": well})
    for _ in range(3):
        watched.watch.sample_now()
    watched.watch.finish(Ending())
    assert [{"other": 7, "level": 1}, {"level": 3}, {"level": 5}] == [sample.values for sample in watched.samples]
    assert {"ill": "nothing left"} == watched.watch.failures
    assert (5, 7) == (watched.watch.summary()["level"]["peak"], watched.watch.summary()["other"]["peak"])


def test_a_source_that_raises_at_the_end_is_named_and_the_others_are_still_read() -> None:
    class EndsBadly(Script):
        def finish(self, moment: Moment, ending: Ending) -> Readings:
            raise ValueError("not a stat line: b''")

    watched = Watched({"ill": EndsBadly(), "well": Script(finish={"total": 9})})
    watched.watch.finish(Ending())
    assert ({"ill": "not a stat line: b''"}, [{"total": 9}]) == (watched.watch.failures, watched.cells())


def test_counters_go_on_over_windows_without_loss() -> None:
    totals = [3, 3, 10, 25, 24, 60]
    watched = Watched(
        {"s": Script(*({"total": total} for total in totals), finish={"total": 64})}, window=AT_EVERY_SAMPLE
    )
    for _ in totals:
        watched.watch.sample_now()
    watched.watch.finish(Ending())
    assert [3, 0, 7, 15, 0, 35, 4] == [cells["total"] for cells in watched.cells()]
    assert {"unit": "count", "kind": "counter", "total": 64} == watched.watch.summary()["total"]


def test_a_counter_missing_for_a_window_goes_on_where_it_was() -> None:
    watched = Watched({"s": Script({"total": 10}, {"level": 1}, {"total": 15})}, window=AT_EVERY_SAMPLE)
    for _ in range(3):
        watched.watch.sample_now()
    assert [{"total": 10}, {"level": 1}, {"total": 5}] == watched.cells()


def test_a_window_holds_only_what_was_measured_in_it() -> None:
    watched = Watched(
        {"s": Script({"level": [1, 2], "undescribed": 5}, {"level": []}, {"other": 0})}, window=AT_EVERY_SAMPLE
    )
    for _ in range(3):
        watched.watch.sample_now()
    # The second window had nothing at all: it is no window, and its sample counts in the next.
    assert [({"level": 3}, 1), ({"other": 0}, 2)] == [(w.cells, w.samples) for w in watched.windows]


def test_what_was_never_measured_is_not_in_the_summary() -> None:
    watched = Watched({"s": Script({"level": 4})})
    watched.watch.sample_now()
    watched.watch.finish(Ending())
    assert ["level"] == list(watched.watch.summary())


def test_a_moment_is_quiet_when_the_pulse_did_not_move() -> None:
    source = Pulsing(*({"level": 1} for _ in range(4)), pulse=500)
    watched = Watched({"s": source})
    for pulse in (500, 500, 501, 501):
        source.pulse = pulse
        watched.watch.sample_now()
    assert [False, True, False, True] == [moment.quiet for moment in source.moments]


def test_without_a_pulse_no_moment_is_quiet() -> None:
    source = Pulsing({"level": 1}, {"level": 1}, pulse=None)
    watched = Watched({"s": source})
    watched.watch.sample_now()
    watched.watch.sample_now()
    assert [False, False] == [moment.quiet for moment in source.moments]


def test_the_first_sample_is_never_quiet() -> None:
    source = Pulsing({"level": 1}, {"level": 1})
    watched = Watched({"s": source}, window=AT_EVERY_SAMPLE)
    watched.watch.sample_now()
    watched.watch.sample_now()
    assert [False, True] == [moment.quiet for moment in source.moments]


def test_the_columns_of_a_journal_are_in_the_order_of_the_measurements_whoever_is_read_first() -> None:
    watched = Watched(
        {"s": Script({"total": 1}, {"level": 1, "total": 2}, {"total": 3, "level": 1})}, window=AT_EVERY_SAMPLE
    )
    for _ in range(3):
        watched.watch.sample_now()
    first, second, third = (list(cells) for cells in watched.cells())
    assert (["total"], True) == (first, second == third)


def test_every_source_is_asked_for_the_same_moment() -> None:
    first, second = Script({"level": 1}), Pulsing({"other": 1})
    Watched({"a": first, "b": second}).watch.sample_now()
    assert first.moments == second.moments


def test_a_sample_is_taken_when_due_and_not_before() -> None:
    watched = Watched({"s": Script({"level": 1}, {"level": 2})}, interval=1.0)
    watched.watch.tick(watched.watch.started + 0.005)
    early = watched.watch.samples
    watched.watch.tick(watched.watch.started + 0.0101)
    assert (0, 1) == (early, watched.watch.samples)


@pytest.mark.parametrize(("grown", "expected"), [(0, 0), (63, 0), (64, 1), (10_000, 1)])
def test_memory_that_grows_between_samples_is_worth_a_sample(grown: int, expected: int) -> None:
    source = Pulsing({"level": 1}, {"level": 2}, faults=1000)
    watched = Watched({"s": source})
    watched.watch.sample_now()
    source.faults = 1000 + grown
    watched.watch.tick(watched.watch.started + 0.009)
    assert expected == watched.watch.samples - 1


def test_samples_outside_the_schedule_take_a_bounded_share_of_the_time() -> None:
    class Slow(Pulsing):
        def read(self, moment: Moment) -> Readings:
            time.sleep(0.01)
            self.faults = (self.faults or 0) + 1000
            return super().read(moment)

    source = Slow(*({"level": 1} for _ in range(50)))
    watched = Watched({"s": source})
    watched.watch.sample_now()
    for _ in range(40):
        source.faults = (source.faults or 0) + 1000
        # 2 % of the 9 ms since the start are less than the 10 ms that one look takes.
        watched.watch.tick(watched.watch.started + 0.009)
    assert 1 == watched.watch.samples


def test_after_the_end_nothing_is_sampled() -> None:
    source = Script({"level": 1}, {"level": 2}, finish={"level": 9})
    watched = Watched({"s": source})
    watched.watch.sample_now()
    watched.watch.finish(Ending())
    watched.watch.sample_now()
    watched.watch.tick(watched.watch.started + 10 * NEVER)
    watched.watch.finish(Ending())
    assert (1, 2, 1, True) == (
        len(source.moments),
        watched.watch.samples,
        len(watched.windows),
        watched.watch.finished,
    )


def test_a_job_that_ended_before_its_first_sample_has_what_its_end_told() -> None:
    watched = Watched({"s": Script(finish={"total": 5})})
    watched.watch.finish(Ending())
    assert ([{"total": 5}], 1) == (watched.cells(), watched.watch.samples)


def test_a_level_stands_for_the_time_since_the_one_before() -> None:
    source = Script({"level": 100}, {"level": 0})
    watched = Watched({"s": source})
    watched.watch.started = time.monotonic() - 9.0
    watched.watch.sample_now()
    time.sleep(0.2)
    watched.watch.sample_now()
    watched.watch.finish(Ending())
    level = watched.watch.summary()["level"]
    assert 100 == level["peak"]
    # 100 for 9 s and nothing for 0.2 s; 50 if samples weighed the same.
    assert 100 * 9 / 9.2 == pytest.approx(level["mean"], abs=2)


def test_the_interval_reached_is_the_mean_between_regular_samples() -> None:
    watched = Watched({"s": Script(*({"level": 1} for _ in range(4)))}, interval=0.001)
    before = watched.watch.reached_interval()
    for seconds in (0.001, 10.0, 14.0):
        watched.watch.tick(watched.watch.started + seconds)
    assert 0.001 == before
    assert 7.0 == pytest.approx(watched.watch.reached_interval(), abs=0.001)


def test_processes_are_told_by_the_source_that_knows_them_and_only_when_asked_for() -> None:
    use = ProcessUse(Identity(42, 1), "train", 1.5, 4096, 2.0)

    class Lister(Script):
        def processes(self) -> list[ProcessUse]:
            return [use, use]

        def live(self) -> list[ProcessUse]:
            return [use]

    for per_process, expected in ((True, [use]), (False, [])):
        watched = Watched({"a": Script({"level": 1}), "b": Lister({"other": 1})}, per_process=per_process)
        watched.watch.sample_now()
        watched.watch.finish(Ending())
        assert [expected] == [window.processes for window in watched.windows]
        assert [use, use] == watched.watch.processes()


def test_closing_closes_every_source() -> None:
    sources = {"a": Script(), "b": Script()}
    Watched(dict(sources)).watch.close()
    assert [True, True] == [source.closed for source in sources.values()]


def test_a_pulse_that_was_outrun_is_not_taken_for_quiet() -> None:
    class Outrun(Pulsing):
        def outran(self, cpu_nanoseconds: int) -> bool:
            return cpu_nanoseconds < 5

    left_behind, right = Outrun({"level": 1}, {"level": 1}, pulse=4), Outrun({"level": 1}, {"level": 1}, pulse=5)
    for source in (left_behind, right):
        watched = Watched({"s": source})
        watched.watch.sample_now()
        watched.watch.sample_now()
    assert [False, False] == [moment.quiet for moment in left_behind.moments]
    assert [False, True] == [moment.quiet for moment in right.moments]


def test_a_source_that_cannot_say_whether_a_pulse_was_outrun_costs_nothing_else() -> None:
    class Failing(Pulsing):
        def outran(self, cpu_nanoseconds: int) -> bool:
            raise IndexError("nothing was read")

    watched = Watched({"bad": Failing({"level": 1}, {"level": 1}, pulse=4)})
    watched.watch.sample_now()
    watched.watch.sample_now()
    assert 2 == watched.watch.samples
