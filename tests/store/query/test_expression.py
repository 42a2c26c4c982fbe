from __future__ import annotations

import pytest

from jobmeter.errors import UsageError
from jobmeter.store import Store
from jobmeter.store.query.expression import compile_expression
from tests.store.kept import five, ids, kept


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return kept(tmp_path_factory.mktemp("store"), *five())


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ('memory_peak_bytes > 4GiB and status = "oom"', ["aab2"]),
        ("memory_peak_bytes>4g", ["aab2", "aaa1"]),
        ("memory_peak_bytes <= 1MiB", ["bbb3"]),
        ("wall_seconds >= 1h30m", ["ccc4"]),
        ("wall_seconds < 5", ["ddd5", "bbb3"]),
        ("wall_seconds != 10 and wall_seconds != 20s", ["ddd5", "ccc4", "bbb3"]),
        ("cpu_seconds = 0", ["bbb3"]),
        ("cpu_seconds > -1", ["ccc4", "bbb3", "aaa1"]),
        ("exit_code == 0", ["ddd5", "ccc4", "bbb3", "aab2", "aaa1"]),
        ("status = oom", ["aab2"]),
        ("name ~ 'test*'", ["ccc4", "bbb3"]),
        ('name ~ "t?st"', ["bbb3"]),
        ('not name ~ "t*"', ["ddd5"]),
        ("NOT (name = 'train' OR name = \"test\") AND wall_seconds > 1", ["ccc4"]),
        ("name = train or name = test and status = failed", ["bbb3", "aab2", "aaa1"]),
        ("(name = train or name = test) and status = failed", ["bbb3"]),
        ("labels.team = a", ["ccc4", "aaa1"]),
        ('labels.team != "a"', ["aab2"]),
        ("labels.none = x", []),
        ('started >= "2026-01-31T15"', ["ddd5", "ccc4"]),
        ('host = "here" and user = me and id = aaa1', ["aaa1"]),
        ('name = "x\' or 1=1 --"', []),
        (r'name = "a\"b"', []),
        ('command ~ "*true*" and cwd = "/" and id = "ddd5"', ["ddd5"]),
    ],
)
def test_an_expression_finds_the_runs_it_says(store: Store, where: str, expected: list[str]) -> None:
    assert expected == ids(store, where=where)


@pytest.mark.parametrize(
    ("where", "expected", "place"),
    [
        ("memory > 4", "there is no field 'memory'. Did you mean 'memory_peak'?", 0),
        ("memory_peak_bytes > 4x", "'4x' is not an amount of memory", 20),
        ("wall_seconds > 4GiB", "'4GiB' is not a duration", 15),
        ("exit_code = 1.2.3", "'1.2.3' is not a number", 12),
        ("memory_peak_bytes >", "a value is missing here", 19),
        ("memory_peak_bytes", "a comparison is missing here", 17),
        ("status = oom oom", "'oom' is not expected here", 13),
        ("status = oom and", "a field is missing here", 16),
        ("", "a field is missing here", 0),
        ("(status = oom", "this ( is never closed", 0),
        ("status = oom)", "')' is not expected here", 12),
        ("not", "a field is missing here", 3),
        ('status = "oom', "the text that begins here has no end", 9),
        ('"oom" = status', "write a field on the left", 0),
        ("status = oom; drop", "';' has no meaning here", 12),
        ("name ~ train", "~ compares with a pattern in quotes", 7),
        ('wall_seconds > "5"', "this field is a number (seconds)", 15),
        ("status.x = 1", "only labels and metrics have parts", 0),
        ("__import__('os')", "there is no field '__import__'", 0),
        ("name = a & 1", "'&' has no meaning here", 9),
        ("(" * 200 + "status = oom", "too many nested parentheses", 100),
    ],
)
def test_a_bad_expression_is_reported_with_a_caret_under_the_place(where: str, expected: str, place: int) -> None:
    with pytest.raises(UsageError) as refused:
        compile_expression(where)
    message, shown, caret = str(refused.value).split("\n")
    assert message.startswith(f"--where: {expected}")
    assert (f"  {where}", f"  {' ' * place}^") == (shown, caret)


def test_no_value_becomes_part_of_the_sql() -> None:
    compiled = compile_expression("name = 'drop table' and labels.drop = 'drop' and cpu_seconds > 4217")
    assert ("drop" in str(compiled), "4217" in str(compiled)) == (False, False)


def test_more_comparisons_than_the_database_takes_are_refused_in_one_line(store: Store) -> None:
    with pytest.raises(UsageError, match=r"^--where: more than 500 comparisons$"):
        ids(store, where=" and ".join(["wall_seconds > 1"] * 1200))
    assert ids(store, where=" and ".join(["wall_seconds >= 0"] * 500)) == ids(store, where="wall_seconds >= 0")
