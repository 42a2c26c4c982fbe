"""The output of a container in frames, as engines send it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time

from jobmeter.launch.container.streams import StreamRelay, can_be_input


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


class Ends:
    """A relay between two ends of a socket and pipes."""

    def __init__(self, stdin: int | None = None) -> None:
        self.engine, ours = socket.socketpair()
        self.out, stdout = os.pipe()
        self.err, stderr = os.pipe()
        self.closed = threading.Event()
        self.relay = StreamRelay(ours, stdin=stdin, stdout=stdout, stderr=stderr, on_closed=self.closed.set)
        self.relay.start()


def test_frames_however_they_are_cut_come_out_whole_and_apart() -> None:
    ends = Ends()
    sent = frame(1, b"one ") + frame(2, b"bad") + frame(1, b"") + frame(1, b"two" * 1000)
    for start in range(0, len(sent), 7):
        ends.engine.sendall(sent[start : start + 7])
    ends.engine.close()
    ends.relay.finish(10)
    assert (b"one " + b"two" * 1000, b"bad") == (os.read(ends.out, 65536), os.read(ends.err, 65536))
    assert not ends.closed.is_set()


def test_a_reader_that_leaves_is_reported_and_the_rest_is_still_relayed() -> None:
    ends = Ends()
    os.close(ends.out)
    for _ in range(50):
        ends.engine.sendall(frame(1, b"x" * 65536))
    assert ends.closed.wait(10)
    ends.engine.sendall(frame(2, b"still heard"))
    ends.engine.close()
    ends.relay.finish(10)
    assert b"still heard" == os.read(ends.err, 100)


def test_input_is_passed_to_its_end() -> None:
    read, write = os.pipe()
    ends = Ends(read)
    os.write(write, b"given")
    os.close(write)
    received = b""
    while part := ends.engine.recv(100):
        received += part
    ends.engine.close()
    ends.relay.finish(10)
    assert b"given" == received


def test_an_engine_that_never_ends_the_output_is_not_waited_for_long() -> None:
    ends = Ends()
    ends.engine.sendall(frame(1, b"begun"))
    ends.relay.finish(0.2)
    assert b"begun" == os.read(ends.out, 100)
    ends.engine.close()


def send(ends: Ends, data: bytes) -> None:
    """More than the pipes between hold, and the end."""

    def run() -> None:
        with contextlib.suppress(OSError):
            ends.engine.sendall(frame(1, data))
        ends.engine.close()

    threading.Thread(target=run, daemon=True).start()


def test_a_reader_that_takes_its_time_gets_all_there_is() -> None:
    ends, data = Ends(), b"x" * 2_000_000
    send(ends, data)
    finishing = threading.Thread(target=ends.relay.finish, args=(0.1,), daemon=True)
    finishing.start()
    time.sleep(0.4)  # longer than a silent engine would be waited for
    received = b""
    while part := os.read(ends.out, 65536):
        received += part
    finishing.join()
    assert len(data) == len(received)


def test_when_someone_wants_the_end_a_reader_that_does_not_read_is_not_waited_for() -> None:
    ends = Ends()
    send(ends, b"x" * 2_000_000)
    ends.relay.hurry()
    ends.relay.finish(0.1)
    assert os.read(ends.out, 65536)


def test_a_terminal_and_dev_null_are_no_input() -> None:
    controller, terminal = os.openpty()
    null = os.open(os.devnull, os.O_RDONLY)
    read, write = os.pipe()
    assert [False, False, True] == [can_be_input(fd) for fd in (terminal, null, read)]
    for descriptor in (controller, terminal, null, read, write):
        os.close(descriptor)
    assert not can_be_input(read)
