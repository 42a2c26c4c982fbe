from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jobmeter.collectors.contract import Ending, Moment, ProcessUse, Readings, Source
from jobmeter.errors import NoData
from jobmeter.kernel.procfs import Identity
from jobmeter.meter.watch import Sample, Watch, Window
from jobmeter.model import Across, Gauge, Kind, Measurement, Quality

LEVEL = Measurement("level", "bytes", Kind.GAUGE, Across.SUM, Quality.SAMPLED, "A level.")
TOTAL = Measurement("total", "count", Kind.COUNTER, Across.LAST, Quality.EXACT, "A counter.")
OTHER = Measurement("other", "count", Kind.GAUGE, Across.LAST, Quality.SAMPLED, "Another level.")
RATE = Measurement("rate", "percent", Kind.GAUGE, Across.LAST, Quality.SAMPLED, "A rate.", Gauge.RATE)
MEASUREMENTS = {m.key: m for m in (LEVEL, TOTAL, OTHER, RATE)}
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
    """A source that knows CPU time as well."""

    def __init__(self, *readings: Mapping[str, Any], pulse: int | None = 0) -> None:
        super().__init__(*readings)
        self.pulse = pulse

    def cpu_nanoseconds(self) -> int | None:
        return self.pulse


class Clock:
    """Time that hardly passes by itself."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1e-8
        return self.now


class Watched:
    """A watch on a clock of its own, and what it reported."""

    def __init__(
        self,
        sources: dict[str, Source],
        *,
        window: float = NEVER,
        interval: float = NEVER,
        per_process: bool = False,
        fine: bool = False,
    ) -> None:
        self.windows: list[Window] = []
        self.samples: list[Sample] = []
        self.peeks: list[Sample] = []
        self.clock = Clock()
        self.watch = Watch(
            sources,
            MEASUREMENTS,
            interval=interval,
            window=window,
            fine=fine,
            on_window=self.windows.append,
            on_sample=self.samples.append,
            on_peek=self.peeks.append,
            per_process=per_process,
            clock=self.clock,
        )

    def tick_at(self, seconds: float) -> None:
        """Let it be so many seconds after the start of the job, and time for the meter to call."""
        self.clock.now = self.watch.started + seconds
        self.watch.tick()

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


def test_every_source_is_read_for_the_same_moment() -> None:
    first, second = Script({"level": 1}), Pulsing({"other": 1})
    Watched({"a": first, "b": second}).watch.sample_now()
    assert first.moments == second.moments


def test_a_sample_is_taken_when_due_and_not_before() -> None:
    watched = Watched({"s": Script({"level": 1}, {"level": 2})}, interval=1.0)
    watched.tick_at(0.005)
    early = watched.watch.samples
    watched.tick_at(0.0101)
    assert (0, 1) == (early, watched.watch.samples)


class Peeking(Pulsing):
    """A source whose levels are cheap to read."""

    def __init__(self, *levels: int, pulse: int | None = 0) -> None:
        super().__init__(pulse=pulse)
        self.levels = list(levels)

    def peek(self, moment: Moment) -> Readings:
        return {"level": self.levels.pop(0)}


def test_between_samples_the_levels_are_peeked_at_and_change_in_the_middle_between_two_looks() -> None:
    source = Peeking(100, 300, 100)
    watched = Watched({"s": source})
    for number, seconds in enumerate((0.005, 0.205, 0.605)):
        source.pulse = number
        watched.tick_at(seconds)
    watched.clock.now = watched.watch.started + 1.0
    watched.watch.finish(Ending())
    level = watched.watch.summary()["level"]
    assert [100, 300, 100] == [peek.values["level"] for peek in watched.peeks]
    # 300 from 0.105 s to 0.405 s, 100 for the rest of a second
    assert (300, 160, 100) == (level["peak"], level["mean"], level["min"])


def test_a_level_did_not_change_while_the_job_did_not_run() -> None:
    source = Peeking(100, 300)
    watched = Watched({"s": source})
    for seconds, pulse in ((0.005, 1), (0.3, 1), (0.5, 1), (0.7, 2)):
        source.pulse = pulse
        watched.tick_at(seconds)
    watched.clock.now = watched.watch.started + 1.0
    watched.watch.finish(Ending())
    # 100 until 0.6 s, the middle between the last look at which it had not run and the next one
    assert (2, 180) == (len(watched.peeks), watched.watch.summary()["level"]["mean"])


def test_a_job_that_did_not_run_is_not_peeked_at_and_its_level_holds() -> None:
    source = Peeking(100)
    watched = Watched({"s": source})
    for seconds in (0.005, 1.0, 2.0, 3.0):
        watched.tick_at(seconds)
    watched.watch.finish(Ending())
    assert (1, 100) == (len(watched.peeks), watched.watch.summary()["level"]["mean"])


class Counting(Script):
    """A source whose peeks read a level and a counter, and whose samples read another level besides."""

    def __init__(self) -> None:
        super().__init__()
        self.pulse = self.level = 0

    def cpu_nanoseconds(self) -> int:
        return self.pulse

    def peek(self, moment: Moment) -> Readings:
        return {"level": self.level, "total": self.pulse}

    def read(self, moment: Moment) -> Readings:
        return {"level": self.level, "total": self.pulse, "other": 1}

    def finish(self, moment: Moment, ending: Ending) -> Readings:
        return {"total": self.pulse}


def fine_windows(*looks: tuple[float, int, int], window: float = 10.0, fine: bool = True) -> list[Window]:
    """The windows of a job that had so much CPU time and such a level at these times, one sample being at 10 ms."""
    source = Counting()
    watched = Watched({"s": source}, window=window, fine=fine)
    for seconds, source.pulse, source.level in looks:
        watched.tick_at(seconds)
    watched.watch.finish(Ending())
    return [window._replace(seconds=round(window.seconds, 3)) for window in watched.windows]


def test_fine_windows_have_what_peeks_read_and_whole_ones_the_rest_too() -> None:
    windows = fine_windows((0.01, 1, 100), (0.016, 3, 200), (0.033, 7, 300), (0.07, 9, 300))
    assert [
        (0.016, 1, {"level": [200, 119], "total": 3}),  # 100 for 13 ms, 200 for 3 ms
        (0.033, 1, {"level": [300, 250], "total": 4, "other": 1}),
        (0.07, 1, {"level": 300, "total": 2, "other": 1}),
        (0.07, 1, {"level": 300, "total": 0, "other": 1}),
    ] == [(w.seconds, w.samples, w.cells) for w in windows]


def test_a_time_in_which_nothing_ran_is_a_window_of_its_own_when_the_job_runs_again() -> None:
    quiet = [(0.1 + number / 10, 5, 100) for number in range(5)]
    windows = fine_windows((0.01, 1, 100), (0.09, 5, 100), *quiet, (0.55, 8, 900))
    (held,) = [w for w in windows if w.seconds == 0.5]
    assert {"level": 100, "total": 0} == held.cells
    assert [900, 500] == next(w.cells["level"] for w in windows if w.seconds == 0.55)


def test_fine_windows_add_up_to_the_run() -> None:
    looks = [(0.01 * number, number * number, 100 + number) for number in range(1, 90)]
    fine, coarse = fine_windows(*looks), fine_windows(*looks, fine=False)
    assert len(fine) > 30 > 2 >= len(coarse)
    assert [89 * 89] * 2 == [sum(w.cells.get("total", 0) for w in windows) for windows in (fine, coarse)]  # type: ignore[misc]


def test_a_window_that_was_requested_has_no_finer_ones() -> None:
    looks = [(0.05 * number, number, number) for number in range(1, 100)]
    assert {1.0, 2.0, 3.0, 4.0} >= {float(int(w.seconds)) for w in fine_windows(*looks, window=1.0, fine=False)}


def test_without_a_pulse_every_peek_reads() -> None:
    watched = Watched({"s": Peeking(1, 2, 3, pulse=None)})
    for seconds in (0.005, 1.0, 2.0):
        watched.tick_at(seconds)
    assert 3 == len(watched.peeks)


def test_what_is_read_when_the_main_process_has_ended_is_no_level() -> None:
    watched = Watched({"s": Script({"level": 100, "total": 1}, {"level": 0, "total": 7})})
    watched.watch.sample_now()
    watched.clock.now += 2
    watched.watch.sample_at_exit()
    watched.watch.finish(Ending())
    level = watched.watch.summary()["level"]
    assert (100, 100, 7) == (level["mean"], level["min"], watched.watch.summary()["total"]["total"])


def test_levels_end_with_the_job_however_late_the_last_reading_is() -> None:
    watched = Watched({"s": Script({"level": 100}, {"level": 300}, {"level": 0}, finish={"level": 0, "total": 3})})
    watched.watch.sample_now()
    watched.clock.now += 1
    watched.watch.sample_now()
    watched.clock.now += 1
    watched.watch.end_levels()
    watched.watch.sample_now()
    watched.clock.now += 98
    watched.watch.finish(Ending())
    level = watched.watch.summary()["level"]
    # 100 for half a second, 300 for one and a half
    assert (250, 100, 3) == (level["mean"], level["min"], watched.watch.summary()["total"]["total"])


def test_a_rate_stands_for_the_time_before_it() -> None:
    watched = Watched({"s": Script({"rate": 50}, {"rate": 200}, finish={"rate": 100})})
    for seconds in (3, 1):
        watched.clock.now += seconds
        watched.watch.sample_now()
    watched.clock.now += 1
    watched.watch.finish(Ending())
    # 50 for 3 s, 200 for 1 s, 100 for 1 s
    assert 90 == watched.watch.summary()["rate"]["mean"]


def test_a_level_goes_on_into_the_next_window() -> None:
    watched = Watched({"s": Script({"level": 100}, {"level": 300}, {"level": 0})}, window=1.0)
    for seconds in (1.0, 1.5, 4.0):
        watched.clock.now = watched.watch.started + seconds
        watched.watch.sample_now()
    # Of the second window 0.25 s at 100, 1.5 s at 300, and 1.25 s at 0.
    assert [{"level": 100}, {"level": [300, 158]}] == watched.cells()


def test_the_last_window_has_the_level_the_job_ended_with() -> None:
    watched = Watched({"s": Script({"level": 100}, finish={"level": 0, "total": 1})}, window=1.0)
    watched.clock.now += 1.0
    watched.watch.sample_now()
    watched.clock.now += 0.1
    watched.watch.finish(Ending())
    assert [{"level": 100}, {"level": 100, "total": 1}] == watched.cells()


def test_after_the_end_nothing_is_sampled() -> None:
    source = Script({"level": 1}, {"level": 2}, finish={"level": 9})
    watched = Watched({"s": source})
    watched.watch.sample_now()
    watched.watch.finish(Ending())
    watched.watch.sample_now()
    watched.tick_at(10 * NEVER)
    watched.watch.finish(Ending())
    assert (1, 2, 1, True) == (
        len(source.moments),
        watched.watch.samples,
        len(watched.windows),
        watched.watch.finished,
    )


def test_a_job_that_ended_before_its_first_sample_has_the_values_of_its_end() -> None:
    watched = Watched({"s": Script(finish={"total": 5})})
    watched.watch.finish(Ending())
    assert ([{"total": 5}], 1) == (watched.cells(), watched.watch.samples)


def test_the_interval_reached_is_the_mean_between_regular_samples() -> None:
    watched = Watched({"s": Script(*({"level": 1} for _ in range(4)))}, interval=0.001)
    before = watched.watch.reached_interval()
    for seconds in (0.001, 10.0, 14.0):
        watched.tick_at(seconds)
    assert 0.001 == before
    assert 7.0 == pytest.approx(watched.watch.reached_interval(), abs=0.001)


def test_processes_are_listed_by_the_source_that_knows_them_and_only_on_request() -> None:
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
