"""Boots the guest once and brings back what its scenarios found."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.guest.image import Image
from tests.guest.inside import BEGIN, END

LIMIT = 540.0
"""Seconds from power on to power off; it takes about 60, and 220 were seen beside the other tests."""

# Emulated even where there is /dev/kvm: qemu aborts where that is there in part, as in nested machines.
MACHINE = (
    "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024",
    "-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio",
)  # fmt: skip


class GuestError(Exception):
    """The guest brought no results; with all that its console said."""


def boot(image: Image) -> dict[str, Any]:
    """Scenario → what it found."""
    command = [*MACHINE, "-kernel", str(image.kernel), "-initrd", str(image.initramfs)]
    command += ["-append", "console=ttyS0 quiet panic=-1 mitigations=off"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as machine:
        try:
            output, _ = machine.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            machine.kill()
            output, _ = machine.communicate()
            raise GuestError(f"not done after {LIMIT:.0f} s. Its console:\n{_text(output)}") from None
    console = _text(output)
    _, begun, rest = console.partition(BEGIN)
    document, ended, _ = rest.partition(END)
    if not begun or not ended:
        raise GuestError(f"no results; qemu ended with {machine.returncode}. Its console:\n{console}")
    results: dict[str, Any] = json.loads(document)
    return results


def _text(console: bytes) -> str:
    return console.decode(errors="replace").replace("\r", "")
