"""Runs a command to which the kernel refuses perf events: `python forbid.py COMMAND [ARGUMENT...]`.

A seccomp filter, as container engines use. No package is imported, so any Python will do.
"""

import ctypes
import os
import struct
import sys

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_SYSCALL_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE_WITH_EACCES = 0x7FFF0000, 0x00050000 | 13

program = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in (
        (LOAD_SYSCALL_NUMBER, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, PERF_EVENT_OPEN),
        (RETURN, 0, 0, REFUSE_WITH_EACCES),
        (RETURN, 0, 0, ALLOW),
    )
)
code = ctypes.create_string_buffer(program, len(program))
header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0):
    sys.exit(f"no seccomp here: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
