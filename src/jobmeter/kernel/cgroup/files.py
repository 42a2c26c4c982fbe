"""The files of a cgroup directory, which are kept open, and parsers for their few formats."""

from __future__ import annotations

import os

from jobmeter.kernel.machine import read_bytes

_CHUNK = 16384


class Directory:
    """Reads the files of one cgroup and opens each only once. A file that does not exist reads as None."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptors: dict[str, int | None] = {}
        self._of_sizes: dict[tuple[str, str], list[str]] = {}

    def text(self, name: str) -> str | None:
        if name not in self._descriptors:
            try:
                self._descriptors[name] = os.open(f"{self.path}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                self._descriptors[name] = None
        descriptor = self._descriptors[name]
        if descriptor is None:
            return None
        try:
            content = os.pread(descriptor, _CHUNK, 0)
            while len(content) % _CHUNK == 0 and (more := os.pread(descriptor, _CHUNK, len(content))):
                content += more  # io.stat has a line per device, and a machine may have hundreds
            return content.decode()
        except OSError:
            return None  # ENODEV: the group was removed; EOPNOTSUPP: pressure is switched off

    def number(self, name: str) -> int | None:
        content = self.text(name)
        return None if content is None or content.startswith("max") else int(content)

    def sum_of_sizes(self, prefix: str, suffix: str) -> int | None:
        """The sum of files that differ only in a page size, such as `hugetlb.2MB.current`; None if there are none."""
        names = self._of_sizes.get((prefix, suffix))
        if names is None:
            try:
                present = [name for name in os.listdir(self.path) if name.startswith(prefix) and name.endswith(suffix)]
            except OSError:
                present = []
            # Not `hugetlb.2MB.rsvd.current`: reserved pages need not be in use.
            names = self._of_sizes[prefix, suffix] = [n for n in present if n.count(".") == prefix.count(".") + 1]
        numbers = [number for name in names if (number := self.number(name)) is not None]
        return sum(numbers) if numbers else None

    def table(self, name: str) -> dict[str, int] | None:
        content = self.text(name)
        return None if content is None else parse_table(content)

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            if descriptor is not None:
                os.close(descriptor)
        self._descriptors.clear()


def parse_table(content: str) -> dict[str, int]:
    """Parse lines of `name number`; lines that are not two words are ignored."""
    words = content.split()
    try:
        return dict(zip(words[::2], map(int, words[1::2])))
    except ValueError:
        pass  # some lines have another form
    pairs = (line.split() for line in content.splitlines())
    return {pair[0]: _number(pair[1], " ".join(pair)) for pair in pairs if len(pair) == 2}


def parse_blkio(content: str) -> tuple[int, int]:
    """Parse v1 `blkio.throttle.io_service_bytes`, lines of `8:0 Read 4096`, into bytes (read, written)."""
    amounts = {"Read": 0, "Write": 0}
    for line in content.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in amounts:
            amounts[words[1]] += _number(words[2], line)
    return amounts["Read"], amounts["Write"]


def parse_io_stat(content: str) -> tuple[int, int]:
    """Parse v2 `io.stat`, lines of `8:0 rbytes=4096 wbytes=0 rios=1 …`, into bytes (read, written)."""
    amounts = {"rbytes": 0, "wbytes": 0}
    for line in content.splitlines():
        for word in line.split()[1:]:
            name, _, value = word.partition("=")
            if name in amounts:
                amounts[name] += _number(value, line)
    return amounts["rbytes"], amounts["wbytes"]


def parse_pressure(content: str) -> float | None:
    """Parse a PSI file: seconds in which some task of the group waited for the resource."""
    for line in content.splitlines():
        if line.startswith("some "):
            return _number(line.rpartition("total=")[2], line) / 1e6
    return None


def _number(word: str, line: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"no number in {line!r}") from None


def read_pids(path: str) -> list[int]:
    return [int(line) for line in read_bytes(f"{path}/cgroup.procs").split()]


def move_all(path: str, destination: str) -> None:
    """Move every process of a group to another group, including those that are forked during the move."""
    for _ in range(100):
        pids = read_pids(path)
        if not pids:
            return
        for pid in pids:
            move(pid, destination)


def dissolve(path: str, destination: str) -> None:
    """Remove a group and all groups below it; processes still in them are moved to `destination`."""
    try:
        os.rmdir(path)
        return
    except OSError:
        pass  # processes, or groups below it, are still in it
    for directory, _, _ in os.walk(path, topdown=False):
        move_all(directory, destination)
        os.rmdir(directory)


def move(pid: int, destination: str) -> None:
    descriptor = os.open(f"{destination}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(pid).encode())
    except ProcessLookupError:
        pass  # it ended by itself
    finally:
        os.close(descriptor)
