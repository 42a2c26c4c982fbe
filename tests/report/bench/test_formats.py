from __future__ import annotations

from jobmeter.analyse.bench import BENCH_MEASURES, BenchFigure, BenchRun
from jobmeter.analyse.bench_result import BenchResult, VariantResult, result_from_json
from jobmeter.analyse.bench_verdict import judge
from jobmeter.report.bench.formats import format_of, markdown
from jobmeter.report.bench.page import axis_end
from jobmeter.report.bench.text import all_lines, remarks, verdict_lines

MIB = 2**20


def a_run(number: int, wall: float, mib: float, *, status: str = "completed", at_least: bool = False) -> BenchRun:
    figures = {
        "wall_seconds": BenchFigure(wall, "clock"),
        "cpu_seconds": BenchFigure(wall / 2, "cgroup_cpu_seconds"),
        "memory_peak_bytes": BenchFigure(mib * MIB, "cgroup_mem_peak", at_least),
    }
    return BenchRun(f"r{number}", status, 0 if status == "completed" else 1, figures)


def a_result(slow: float = 4.0) -> BenchResult:
    one = [a_run(number, 2.0 + number / 100, 10) for number in range(6)]
    two = [a_run(number, slow + number / 100, 20, at_least=True) for number in range(6)]
    variants = [VariantResult("n=1", "work 1", {"n": "1"}, one), VariantResult("n=2", "work 2", {"n": "2"}, two)]
    return BenchResult("bench-1", "2026-01-31T12:00:00.000Z", "host", 0, "n", variants)


def test_the_text_has_every_figure_of_every_variant() -> None:
    assert [
        "n=1: work 1  (6 runs)",
        "               median   spread  95 % interval  range",
        "  wall         2.02 s    25 ms  2 s to 2.05 s  2 s to 2.05 s",
        "  cpu          1.01 s  12.5 ms  1 s to 1.02 s  1 s to 1.02 s",
        "  memory_peak  10 MiB      0 B  10 MiB         10 MiB",
        "",
        "n=2: work 2  (6 runs)",
    ] == all_lines(a_result())[:7]
    assert "≥ 20 MiB" in all_lines(a_result())[10]


def test_no_line_is_wider_than_80_columns() -> None:
    assert 80 >= max(map(len, all_lines(a_result())))


def test_the_markdown_is_a_table_with_intervals() -> None:
    lines = markdown(a_result()).splitlines()
    assert "| `n=1` | 2.02 s (2 s to 2.05 s) | 1.01 s (1 s to 1.02 s) | 10 MiB (10 MiB) | 1.00 | 100 % |" == lines[2]
    assert lines[3].endswith("| 0.50 | 25 % |")


def test_a_result_survives_json() -> None:
    result = a_result()
    assert result == result_from_json(result.as_json())


def test_what_is_odd_is_remarked() -> None:
    runs = [a_run(0, 9.0, 10), *(a_run(number, 1.0, 10) for number in range(1, 8))]
    assert ["1 of 8 runs: wall far from the others (9 s); the first run: --warmup 1 leaves it out"] == [
        line for line in remarks(VariantResult("a", "a", {}, runs)) if "wall" in line
    ]
    few = VariantResult("a", "a", {}, [a_run(0, 1.0, 10, status="failed")] * 2)
    assert ["2 of 2 runs failed; their figures are included", "too few runs for an interval: it takes 6"] == remarks(
        few
    )


def test_the_verdict_names_each_figure_and_counts_regressions() -> None:
    before, after = ({each.name: each.runs for each in a_result(slow).variants} for slow in (4.0, 6.0))
    verdict = judge(before, after, 0.05, BENCH_MEASURES[:1])
    lines = verdict_lines(verdict, "before", 0.05)
    assert "n=1: wall: the same" == lines[0]
    assert lines[1].startswith("n=2: wall rose by 50 % (")
    assert "1 regression against before, beyond 5 %" == lines[-1]


def test_the_extension_says_what_to_write() -> None:
    assert format_of("a.MD") is markdown
    assert format_of("a.txt") is None
    assert format_of("md") is None


def test_an_axis_ends_at_a_round_number_above_the_largest_value() -> None:
    assert 2.0 == axis_end(1.81, "seconds")
    assert 40 * MIB == axis_end(33.1 * MIB, "bytes")
    assert 1.0 == axis_end(0.0, "bytes")
    assert 5.0 == axis_end(5.0, "count")
