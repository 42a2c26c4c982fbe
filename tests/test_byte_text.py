"""Bytes that are not UTF-8 have one representation, from launch to every output, and can be had back."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobmeter.byte_text import as_represented, bytes_to_text, json_text, to_bytes, to_path, to_text, without_surrogates
from tests.parts import need_module
from tests.running import environment
from tests.waiting import LONG

RAW = b"caf\xe9"
TEXT = "caf�e9"
LOCALES: dict[str, dict[str, str]] = {
    "C": {"LANG": "C", "LC_ALL": "C"},
    "C.UTF-8, ascii output": {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii"},
    "ascii files": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}
SPEC = b"""name: bytes
jobs:
  - {name: one, command: "true", cwd: "."}
"""


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain", "plain"),
        ("é 🦆".encode(), "é 🦆"),
        (b"caf\xe9.txt", "caf�e9.txt"),
        (b"\xff\xfe", "�ff�fe"),
        (b"\xed\xa0\x80", "�ed�a0�80"),
        (rb"sed s/\xc2\xa0/-/", r"sed s/\xc2\xa0/-/"),
        ("�".encode(), "�"),
        ("�. �7f �e".encode(), "�. �7f �e"),
        ("�e9".encode(), "�ef�bf�bde9"),
        ("�".encode() + b"\xe9", "��e9"),
    ],
)
def test_a_byte_that_is_not_utf_8_is_spelt_after_a_mark_and_all_else_is_itself(raw: bytes, text: str) -> None:
    assert text == bytes_to_text(raw)
    assert raw == to_bytes(text)


def test_any_bytes_come_back_and_no_two_texts_are_alike() -> None:
    pieces = [
        b"\xef\xbf\xbd",
        b"\xe9",
        b"e",
        b"9",
        b"a",
        b"\xef",
        b"\xbf",
        b"\xbd",
        "é".encode(),
        b"\\",
        b"\xed\xa0\x80",
    ]
    chance = random.Random(11)
    seen: dict[str, bytes] = {}
    for _ in range(20_000):
        raw = b"".join(chance.choices(pieces, k=chance.randrange(8)))
        text = bytes_to_text(raw)
        assert raw == to_bytes(text) == seen.setdefault(text, raw)
        assert text == to_text(os.fsdecode(raw))
        assert raw == os.fsencode(to_path(text))
        text.encode()  # it is Unicode text


def test_what_a_person_writes_or_copies_means_the_same() -> None:
    assert TEXT == as_represented(os.fsdecode(RAW)) == as_represented(TEXT)


def test_json_has_no_lone_surrogate_and_no_control_character() -> None:
    text = json_text({"a\udce9": ["\ud800", "\x7f\x1b\n", "🦆"]})
    assert {"a�e9": ["�ed�a0�80", "\x7f\x1b\n", "🦆"]} == json.loads(text)
    assert text.isascii()
    assert text.isprintable()


def test_records_of_earlier_versions_are_read_as_the_same() -> None:
    assert {"command": [TEXT], "n": 1} == without_surrogates(json.loads(r'{"command": ["caf\udce9"], "n": 1}'))


class Place:
    """A directory whose name is not UTF-8, with a store in it and one run whose every text has such bytes."""

    def __init__(self, folder: Path, more: dict[str, str]) -> None:
        self.folder = os.fsencode(folder) + b"/" + RAW
        os.mkdir(self.folder)
        self.env: dict[str, str] = {**environment(), **more, "JOBMETER_STORE": os.fsdecode(self.folder + b"/store")}

    def run(self, *words: str | bytes, code: int | tuple[int, ...] = 0) -> subprocess.CompletedProcess[bytes]:
        line = [os.fsencode(word) for word in (sys.executable, "-m", "jobmeter", *words)]
        done = subprocess.run(line, env=self.env, cwd=self.folder, capture_output=True, timeout=LONG, check=False)
        codes = (code,) if isinstance(code, int) else code
        assert done.returncode in codes, (words, done.stdout, done.stderr)
        assert b"Traceback" not in done.stderr, done.stderr
        return done

    def json(self, *words: str | bytes, code: int | tuple[int, ...] = 0) -> Any:
        return strict_json(self.run(*words, code=code).stdout)


def strict_json(data: bytes) -> Any:
    """As readers of other languages take it: ASCII here, and a lone surrogate in it is an error."""
    value = json.loads(data.decode("ascii"))
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


@pytest.fixture(params=LOCALES, scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("bytes"), LOCALES[request.param])
    place.run(
        "run", "--name", RAW, "--label", b"k" + RAW + b"=" + RAW, "--memory", "1k", "--report", RAW + b".json",
        "--", "sh", "-c", "exec sleep 0.2", RAW,
    )  # fmt: skip
    place.run("run", "--quiet", "--name", "other", "--memory", "1g", "--", "true")
    with open(place.folder + b"/" + RAW + b".yaml", "wb") as file:
        file.write(SPEC)
    place.run("workflow", "run", RAW + b".yaml")
    return place


def test_the_record_has_the_bytes_of_everything(place: Place) -> None:
    with open(place.folder + b"/" + RAW + b".json", "rb") as file:
        report = file.read()
    record = strict_json(report)
    assert (TEXT, {f"k{TEXT}": TEXT}, TEXT) == (record["name"], record["labels"], record["command"][-1])
    assert place.folder == to_bytes(record["cwd"])
    assert any(TEXT in process["cmd"] for process in record["processes"])
    assert report == place.run("show", "--json", RAW).stdout


@pytest.mark.parametrize("name", [RAW, TEXT, b"*" + RAW[-1:]], ids=["bytes", "as printed", "glob"])
def test_a_run_is_found_by_its_bytes_and_as_it_is_printed(place: Place, name: str | bytes) -> None:
    assert [TEXT] == [run["name"] for run in place.json("ls", "--json", name)]
    where = b'name ~ "' + os.fsencode(name) + b'"'
    assert [TEXT] == [run["name"] for run in place.json("ls", "--json", "--where", where)]


def test_every_command_that_takes_a_run_finds_it(place: Place) -> None:
    label = b"k" + RAW + b"=" + RAW
    assert [TEXT] == [run["name"] for run in place.json("ls", "--json", "--label", label)]
    assert {f"k{TEXT}": TEXT} == place.json("label", "--json", RAW)
    assert TEXT == place.json("check", "--json", RAW, code=1)["violations"][0]["job_name"]
    assert TEXT == place.json("size", "--format", "json", RAW)["jobs"][0]["job_name"]
    assert [TEXT] == [group["name"] for group in place.json("stats", "--json", "--name", RAW)["groups"]]
    groups = place.json("stats", "--json", "--by", b"k" + RAW)["groups"]
    assert TEXT in [group.get(f"k{TEXT}", group.get("name")) for group in groups]
    assert TEXT == place.json("compare", "--json", RAW, "other")["a"]["of"]
    assert 1 == place.json("compare", "--json", b"name=" + RAW, "other")["a"]["runs"]


def test_every_command_for_people_prints_it(place: Place) -> None:
    encoding = "ascii" if place.env.get("PYTHONIOENCODING") or place.env.get("PYTHONUTF8") == "0" else "utf-8"
    expected = TEXT.encode(encoding, "backslashreplace")
    for words in (
        ("ls",), ("ls", RAW), ("show", RAW), ("check", RAW, "--exit-zero"), ("size", RAW), ("stats",),
        ("compare", RAW, "other"), ("label", RAW), ("workflow", "status"), ("workflow", "list"),
        ("workflow", "graph", "--html", RAW + b".html"),
        *(("size", RAW, "--format", form) for form in ("yaml", "slurm")),
    ):  # fmt: skip
        assert expected in place.run(*words).stdout, words
    for words in (("show", RAW + b"2"), ("import", RAW + b"2"), ("workflow", "run", RAW + b"2.yaml")):
        assert b"\n" == place.run(*words, code=(2, 125)).stderr[-1:], words


def test_every_export_holds_it(place: Place) -> None:
    rows = list(csv.DictReader(io.StringIO(place.run("export", RAW).stdout.decode("utf-8"))))
    assert TEXT == rows[0]["name"]
    assert rows[0]["command"].endswith(f"'{TEXT}'")
    for words in (("ls", "--csv", RAW), ("export", "--windows", RAW), ("stats", "--csv", "--name", RAW)):
        assert TEXT in place.run(*words).stdout.decode("utf-8")
    for options in (("--format", "jsonl"), ("--records",), ("--records", "--windows")):
        assert TEXT == strict_json(place.run("export", *options, RAW).stdout)["name"]
    place.run("export", "-o", RAW + b".csv", RAW)
    place.run("plot", "-o", RAW, RAW)
    assert [] != os.listdir(place.folder + b"/" + RAW)


def test_parquet_holds_it(place: Place) -> None:
    parquet = need_module("pyarrow.parquet")
    place.run("export", "-o", RAW + b".parquet", RAW)
    with open(place.folder + b"/" + RAW + b".parquet", "rb") as file:
        assert [TEXT] == parquet.read_table(file)["name"].to_pylist()


@pytest.mark.parametrize("form", ["html", "svg", "png"])
def test_plots_of_it_are_written(place: Place, form: str) -> None:
    if form != "html":
        need_module("matplotlib")
    (path,) = place.json("plot", "--json", "--format", form, "-o", RAW, RAW)["files"]
    assert os.path.getsize(os.path.join(place.folder, to_bytes(path))) > 0


def test_what_was_exported_is_imported_as_it_was(place: Place) -> None:
    records = place.run("export", "--records", RAW).stdout
    with open(place.folder + b"/" + RAW + b".jsonl", "wb") as file:
        file.write(records)
    place.run("import", RAW + b".jsonl", "--store", RAW + b"-store")
    assert TEXT + ".jsonl" == place.json("import", "--json", RAW + b".jsonl", "--store", RAW + b"-store")[0]["file"]
    assert records == place.run("export", "--records", "--store", RAW + b"-store").stdout
    assert 1 == place.json("gc", "--json", "--older-than", "1ms", "--dry-run", "--store", RAW + b"-store")["runs"]
    place.run("rm", b"--yes", RAW, "--store", RAW + b"-store")
    assert [] == place.json("ls", "--json", "--store", RAW + b"-store")


def test_a_workflow_of_such_a_path_is_shown_and_resumed(place: Place) -> None:
    spec = place.folder + b"/" + RAW + b".yaml"
    for words in (("status",), ("graph",), ("run", "--dry-run", RAW + b".yaml")):
        assert spec == to_bytes(place.json("workflow", *words, "--json")["spec"])
    assert spec == to_bytes(place.json("workflow", "list", "--json")[0]["spec"])
    assert 1 == len(place.json("workflow", "results", "--json", RAW + b".yaml")["results"])
    place.run("workflow", "results", "--csv")
    assert b"nothing is to be run" in place.run("workflow", "resume").stderr


def test_a_label_of_such_bytes_is_set_and_removed(place: Place) -> None:
    assert TEXT == place.json("label", "--json", "other", b"x" + RAW + b"=" + RAW)[f"x{TEXT}"]
    assert {} == place.json("label", "--json", "other", b"x" + RAW + b"=")
