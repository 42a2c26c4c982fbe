"""Another user plants links and swaps directories where this one, or root, reads and writes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from jobmeter.errors import StoreError
from jobmeter.journal.writer import append_to_journal
from jobmeter.links import Refused, open_directory, open_output
from tests.parts import need_root
from tests.running import NOBODY, become, interpreter, workplace
from tests.several_users import ANOTHER, jobmeter_of

VICTIMS = "the victim's own text\n"


@pytest.fixture
def store() -> str:
    """A store of NOBODY, with two runs."""
    path = f"{workplace()}/store"
    for name in ("one", "two"):
        done = jobmeter_of("run", "--quiet", "--store", path, "--name", name, "--", "sleep", "0.05", user=NOBODY)
        assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def victim() -> Path:
    """A file of root that nobody else may write to."""
    path = Path(workplace(), "victim")
    path.write_text(VICTIMS)
    path.chmod(0o600)
    return path


def journals(store: str) -> list[str]:
    return sorted(f"{store}/journal/{name}" for name in os.listdir(f"{store}/journal"))


def as_planted(path: str) -> None:
    """As if NOBODY had made it."""
    need_root("to make files of another user")
    os.lchown(path, NOBODY, NOBODY)


GC = ("gc", "--older-than", "0.001s", "--keep-summary")
WRITERS = {
    "gc --keep-summary": GC,
    "gc": ("gc", "--older-than", "0.001s"),
    "rm": ("rm", "--yes", "one"),
    "label": ("label", "one", "a=b"),
}


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_root_writes_no_file_that_a_link_in_a_journals_place_points_to(
    store: str, victim: Path, words: tuple[str, ...]
) -> None:
    for number, path in enumerate(journals(store)):
        # The content is a run's, so that it is listed; then it is where the victim's file is.
        elsewhere = Path(victim.parent, f"victim-{number}.jsonl")
        elsewhere.write_bytes(Path(path).read_bytes())
        elsewhere.chmod(0o600)
        os.unlink(path)
        os.symlink(elsewhere, path)
        as_planted(path)
    before = {path.name: (path.read_bytes(), path.stat()) for path in victim.parent.iterdir()}
    done = jobmeter_of(*words, "--store", store)
    assert "Traceback" not in done.stderr
    assert before == {path.name: (path.read_bytes(), path.stat()) for path in victim.parent.iterdir()}


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_root_writes_no_file_that_is_hard_linked_in_a_journals_place(
    store: str, victim: Path, words: tuple[str, ...]
) -> None:
    path = journals(store)[0]
    victim.write_bytes(Path(path).read_bytes())
    os.unlink(path)
    os.link(victim, path)
    content, mode = victim.read_bytes(), victim.stat().st_mode
    done = jobmeter_of(*words, "--store", store)
    assert "Traceback" not in done.stderr
    assert (content, mode, 0) == (victim.read_bytes(), victim.stat().st_mode, victim.stat().st_uid)


@pytest.mark.parametrize("words", [*WRITERS.values(), ("ls",), ("stats",)], ids=[*WRITERS, "ls", "stats"])
def test_root_follows_no_link_in_the_place_of_the_index(store: str, victim: Path, words: tuple[str, ...]) -> None:
    for name in ("index.db", "index.db-wal", "index.db-shm", "index.db.lock", "index.db-journal"):
        os.symlink(victim, f"{store}/{name}")
        as_planted(f"{store}/{name}")
    done = jobmeter_of(*words, "--store", store)
    assert (0, VICTIMS) == (done.returncode, victim.read_text()), done.stderr


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_root_does_not_go_where_a_link_in_the_place_of_the_directory_points(store: str, words: tuple[str, ...]) -> None:
    theirs = f"{workplace()}/store"
    jobmeter_of("run", "--quiet", "--store", theirs, "--name", "one", "--", "sleep", "0.05", user=ANOTHER)
    (journal,) = journals(theirs)
    content = Path(journal).read_bytes()
    os.rename(f"{store}/journal", f"{store}/old")
    os.symlink(f"{theirs}/journal", f"{store}/journal")
    as_planted(f"{store}/journal")
    done = jobmeter_of(*words, "--store", store)
    assert content == Path(journal).read_bytes(), done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def linked_store(store: str) -> tuple[str, str]:
    """A store of ANOTHER, and a path to it that goes through a link which NOBODY made."""
    theirs = f"{workplace()}/store"
    jobmeter_of("run", "--quiet", "--store", theirs, "--name", "one", "--", "sleep", "0.05", user=ANOTHER)
    return theirs, os.path.dirname(store)


@pytest.mark.parametrize("place", ["the store itself", "a directory above it"])
@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_root_changes_no_store_that_a_link_in_the_path_leads_to(
    linked_store: tuple[str, str], words: tuple[str, ...], place: str
) -> None:
    theirs, folder = linked_store
    link = f"{folder}/link"
    os.symlink(theirs if place == "the store itself" else os.path.dirname(theirs), link)
    as_planted(link)
    before = {path: Path(path).read_bytes() for path in journals(theirs)}
    done = jobmeter_of(*words, "--store", link if place == "the store itself" else f"{link}/store")
    assert before == {path: Path(path).read_bytes() for path in journals(theirs)}
    assert done.returncode == 125
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("jobmeter: ")]
    assert "'link' in this path is a symbolic link of" in line


def test_a_run_of_root_is_not_stored_where_a_link_in_the_path_leads_to(linked_store: tuple[str, str]) -> None:
    theirs, folder = linked_store
    os.symlink(os.path.dirname(theirs), f"{folder}/link")
    as_planted(f"{folder}/link")
    for store in ("store", "new", "new/deeper/store"):
        done = jobmeter_of("run", "--quiet", "--store", f"{folder}/link/{store}", "--", "sh", "-c", "exit 3")
        assert (3, True) == (done.returncode, "this run is not stored" in done.stderr), done.stderr
    assert (["store"], 1) == (os.listdir(os.path.dirname(theirs)), len(journals(theirs)))


def test_a_link_of_another_user_to_a_store_of_their_own_is_followed(store: str) -> None:
    link = f"{workplace()}/link"
    os.symlink(store, link)
    as_planted(link)
    assert 0 == jobmeter_of("run", "--quiet", "--store", link, "--", "true").returncode
    assert 3 == len(journals(store))
    done = jobmeter_of("rm", "--yes", "one", "--store", link)
    assert (0, 2) == (done.returncode, len(journals(store))), done.stderr


def test_links_of_ones_own_and_of_root_are_followed_wherever_they_are(store: str) -> None:
    folder = workplace()
    os.symlink(os.path.dirname(store), f"{folder}/roots")
    os.symlink("roots", f"{folder}/own")
    as_planted(f"{folder}/own")
    done = jobmeter_of("label", "one", "a=b", "--store", f"{folder}/own/../own/store", user=NOBODY)
    assert done.returncode == 0, done.stderr


def test_a_run_of_root_in_anothers_store_is_not_written_through_their_link(store: str) -> None:
    target = workplace()
    os.rename(f"{store}/journal", f"{store}/old")
    os.symlink(target, f"{store}/journal")
    as_planted(f"{store}/journal")
    done = jobmeter_of("run", "--quiet", "--store", store, "--", "sh", "-c", "exit 3")
    assert (3, []) == (done.returncode, os.listdir(target))
    assert "this run is not stored" in done.stderr


def test_what_root_prunes_stays_the_users_who_sees_it(store: str) -> None:
    assert jobmeter_of("ls", "--json", "--store", store, user=NOBODY).returncode == 0
    done = jobmeter_of(*GC, "--store", store)
    assert done.returncode == 0, done.stderr
    for path in journals(store):
        info = os.stat(path)
        assert (NOBODY, NOBODY, 0o600) == (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode))
    after = jobmeter_of("ls", "--json", "--store", store, user=NOBODY)
    assert {"one", "two"} == {run["name"] for run in json.loads(after.stdout)}, after.stderr
    assert jobmeter_of("label", "one", "a=b", "--store", store).returncode == 0
    shown = jobmeter_of("show", "one", "--json", "--store", store, user=NOBODY)
    assert json.loads(shown.stdout)["labels"] == {"a": "b"}


def test_root_leaves_nothing_of_its_own_in_anothers_store(store: str) -> None:
    for words in (["ls"], ["stats"], ["check"], ["show", "one"], GC):
        assert jobmeter_of(*words, "--store", store).returncode in (0, 1)
    owners = {os.lstat(os.path.join(folder, name)).st_uid for folder, _, names in os.walk(store) for name in names}
    assert owners == {NOBODY}


def test_directories_swapped_while_root_prunes_do_no_harm(store: str, tmp_path: Path) -> None:
    """A user swaps `journal` for a link to another directory and back, as fast as they can."""
    theirs = f"{workplace()}/store"
    for _ in range(3):
        jobmeter_of("run", "--quiet", "--store", theirs, "--name", "one", "--", "sleep", "0.05", user=ANOTHER)
    # Of the same names, so that a path may mean the one or the other.
    for path in journals(theirs):
        Path(f"{store}/journal", os.path.basename(path)).write_bytes(Path(path).read_bytes())
        os.chown(f"{store}/journal/{os.path.basename(path)}", NOBODY, NOBODY)
    before = {path: Path(path).read_bytes() for path in journals(theirs)}
    program = (
        "import os, sys\n"
        "store, target = sys.argv[1:]\n"
        "os.symlink(target, store + '/link')\n"
        "while True:\n"
        "    os.rename(store + '/journal', store + '/real'); os.rename(store + '/link', store + '/journal')\n"
        "    os.rename(store + '/journal', store + '/link'); os.rename(store + '/real', store + '/journal')\n"
    )
    words = [*become(NOBODY), interpreter(), "-c", program, store, f"{theirs}/journal"]
    swapping = subprocess.Popen(words)
    try:
        for _ in range(15):
            done = jobmeter_of(*GC, "--store", store)
            assert "Traceback" not in done.stderr, done.stderr
            assert swapping.poll() is None
    finally:
        swapping.kill()
        swapping.wait()
    assert before == {path: Path(path).read_bytes() for path in journals(theirs)}


def test_a_journal_that_is_a_link_or_a_fifo_gets_no_line(tmp_path: Path) -> None:
    (tmp_path / "true").write_text("")
    (tmp_path / "link").symlink_to("true")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        with pytest.raises(StoreError, match=str(tmp_path / name)):
            append_to_journal(str(tmp_path / name), {"removed": "x"})
    assert (tmp_path / "true").read_text() == ""


OUTPUTS = {
    "run --report": ("run", "--quiet", "--report", "@/out", "--", "true"),
    "run --capture": ("run", "--quiet", "--capture", "@/capture", "--", "echo", "x"),
    "export": ("export", "--format", "csv", "-o", "@/out"),
    "plot": ("plot", "-o", "@", "--prefix", "out", "last"),
}


@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "file of another"])
@pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS)
def test_output_does_not_go_where_another_user_wants_it(words: tuple[str, ...], kind: str, victim: Path) -> None:
    place = workplace()
    os.chmod(place, 0o1777)
    store = f"{workplace()}/store"
    for _ in range(2):
        jobmeter_of("run", "--quiet", "--store", store, "--interval", "0.01", "--", "sleep", "0.1")
    os.mkdir(f"{place}/capture")
    os.chmod(f"{place}/capture", 0o1777)
    for planted in (f"{place}/out", f"{place}/out.html", f"{place}/capture/stdout", f"{place}/capture/stderr"):
        if kind == "symbolic link":
            os.symlink(victim, planted)
        elif kind == "hard link":
            os.link(victim, planted)
            continue
        else:
            Path(planted).write_text("")
            os.chmod(planted, 0o666)
        as_planted(planted)
    done = jobmeter_of(words[0], "--store", store, *(word.replace("@", place) for word in words[1:]))
    assert (VICTIMS, False) == (victim.read_text(), "Traceback" in done.stderr)
    assert done.returncode != 0
    assert "another user" in done.stderr or "other users" in done.stderr
    if kind == "file of another":
        assert Path(place, "out").read_text() == ""


@pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS)
def test_output_does_not_go_into_a_directory_that_anothers_link_leads_to(words: tuple[str, ...]) -> None:
    place, store, target = workplace(), f"{workplace()}/store", workplace()
    jobmeter_of("run", "--quiet", "--store", store, "--interval", "0.01", "--", "sleep", "0.1")
    os.symlink(target, f"{place}/link")
    as_planted(f"{place}/link")
    os.chown(target, 0, 0)
    os.mkdir(f"{target}/capture")
    done = jobmeter_of(words[0], "--store", store, *(word.replace("@", f"{place}/link") for word in words[1:]))
    assert (True, False) == ("another user" in done.stderr, "Traceback" in done.stderr), done.stderr
    assert (["capture"], []) == (os.listdir(target), os.listdir(f"{target}/capture"))


def test_output_goes_through_links_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old and longer")
    (tmp_path / "second").symlink_to("target")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    with open(open_output(str(tmp_path / "first")), "w") as file:
        file.write("new")
    assert (tmp_path / "target").read_text() == "new"
    assert (tmp_path / "first").is_symlink()


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        open_output(str(tmp_path / "a"))


def test_stdout_is_a_file_to_write_a_report_to() -> None:
    done = jobmeter_of("run", "--quiet", "--report", "/dev/stdout", "--", "true")
    assert json.loads(done.stdout)["outcome"]["status"] == "completed"


def test_a_directory_behind_anothers_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    os.close(open_directory(str(tmp_path / "link")))
    as_planted(str(tmp_path / "link"))
    with pytest.raises(Refused):
        open_directory(str(tmp_path / "link"))
