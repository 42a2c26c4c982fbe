"""The end of the kernel's answers on TCP connections, from messages as it writes them."""

from __future__ import annotations

import errno
import struct

import pytest

from jobmeter.kernel.sock_diag import ends_the_list

CONNECTION, DONE, ERROR = 20, 3, 2


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 0, 0) + body


def code(number: int) -> bytes:
    return struct.pack("=i", number)


@pytest.mark.parametrize("kind", [DONE, ERROR])
def test_a_kernel_that_cannot_list_connections_is_an_error_and_not_an_empty_list(kind: int) -> None:
    """Linux without tcp_diag answers `done` with an error code, one without inet_diag answers `error`."""
    with pytest.raises(OSError, match="sock_diag") as raised:
        ends_the_list(message(kind, code(-errno.ENOENT)))
    assert errno.ENOENT == raised.value.errno


def test_the_list_ends_with_the_message_that_says_so() -> None:
    connection = message(CONNECTION, b"x" * 72)
    assert not ends_the_list(connection)
    assert ends_the_list(connection + message(DONE, code(0)))
