"""What the guest boots: a Debian kernel, and an initramfs with Python and the package under test.

Kernel and interpreter are kept between test runs; the package is packed anew each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.parts import missing

KERNEL_METAPACKAGE = "linux-image-cloud-amd64"
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "cpio": "cpio",
    "busybox": "busybox-static",
    "ldd": "libc-bin",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}
"""Program → the Debian package that has it."""

PYTHON = Path("/usr/bin/python3")
"""The system's own: a virtual environment's would need half of the machine beside it."""

NOT_NEEDED = ("config-*", "test", "idlelib", "tkinter", "lib2to3", "ensurepip", "pydoc_data", "distutils", "turtledemo")
HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "src" / "jobmeter"
INIT = """\
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t tmpfs -o mode=1777 tmp /tmp
/bin/busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
export PATH=/usr/bin:/bin HOME=/tmp PYTHONPATH=/opt
/usr/bin/python3 /guest/inside.py
/bin/busybox poweroff -f
"""


class Image(NamedTuple):
    kernel: Path
    initramfs: Path


def build_image(directory: Path) -> Image:
    """Make what the guest needs; skip the test where that cannot be done."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        missing("the guest is made of the programs of a Linux x86_64 machine")
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            missing(f"no {program}: install the package {package}")
    if not PYTHON.exists():
        missing(f"no {PYTHON}: install the package python3")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobmeter-guest"
    cache.mkdir(parents=True, exist_ok=True)
    initramfs = directory / "initramfs"
    # The kernel unpacks archives that follow each other one over the other.
    with initramfs.open("wb") as file:
        for layer in (_base_layer(cache), _package_layer(directory)):
            file.write(layer.read_bytes())
    return Image(_kernel(cache), initramfs)


def _kernel(cache: Path) -> Path:
    """The newest kernel in the cache, or the one Debian has now."""
    kept = sorted(cache.glob("vmlinuz-*"), key=lambda path: path.stat().st_mtime)
    if kept:
        return kept[-1]
    with tempfile.TemporaryDirectory(dir=cache) as name:
        unpacked = _unpack_kernel(_download_kernel(Path(name)), Path(name))
        return unpacked.replace(cache / unpacked.name)


def _download_kernel(directory: Path) -> Path:
    package = _try_download(directory)
    if package is None:
        _output_of("apt-get", "update")  # package lists were missing, or older than the archive
        package = _try_download(directory)
    if package is None:
        missing(f"no kernel for the guest: the package that {KERNEL_METAPACKAGE} depends on could not be downloaded")
    return package


def _try_download(directory: Path) -> Path | None:
    depends = _output_of("apt-cache", "depends", KERNEL_METAPACKAGE).splitlines()
    for package in [line.split()[1] for line in depends if "Depends: linux-image-" in line]:
        _output_of("apt-get", "download", package, directory=directory)
    return next(directory.glob("linux-image-*.deb"), None)


def _output_of(*command: str, directory: Path | None = None) -> str:
    """What a command of apt printed, whether or not it succeeded."""
    english = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, cwd=directory, env=english, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout


def _unpack_kernel(package: Path, directory: Path) -> Path:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpacking:
        assert unpacking.stdout is not None
        with tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name.startswith("./boot/vmlinuz-") else None
                if content is not None:
                    path = directory / Path(member.name).name
                    path.write_bytes(content.read())
                    unpacking.kill()  # what follows are modules, and nobody needs them
                    return path
    raise FileNotFoundError(f"{package}: no boot/vmlinuz in it")


def _base_layer(cache: Path) -> Path:
    """busybox, Python and its library, as this machine has them."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    origins = (Path(__file__), PYTHON, Path(busybox))
    marks = [(os.path.realpath(path), path.stat().st_size, path.stat().st_mtime_ns) for path in origins]
    base = cache / f"base-{hashlib.sha256(repr(marks).encode()).hexdigest()[:16]}.cpio"
    if base.exists():
        return base
    with tempfile.TemporaryDirectory(dir=cache) as name:
        root = Path(name, "root")
        for folder in ("bin", "dev", "etc", "proc", "sys", "tmp", "usr/bin", "guest", "opt"):
            (root / folder).mkdir(parents=True)
        shutil.copy(busybox, root / "bin/busybox")
        (root / "bin/sh").symlink_to("busybox")
        (root / "bin/sleep").symlink_to("busybox")
        (root / "etc/passwd").write_text("root:x:0:0::/tmp:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n")
        (root / "init").write_text(INIT)
        (root / "init").chmod(0o755)
        _copy_python(root)
        packed = _pack(root, Path(name, "base.cpio"))
        for older in cache.glob("base-*.cpio"):
            older.unlink(missing_ok=True)
        return packed.replace(base)


def _copy_python(root: Path) -> None:
    done = subprocess.run(
        [PYTHON, "-c", "import json, sysconfig; print(json.dumps(sysconfig.get_paths()['stdlib']))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    library = Path(json.loads(done.stdout))
    shutil.copy2(PYTHON, root / "usr/bin/python3")
    shutil.copytree(
        library,
        root / library.relative_to("/"),
        ignore=shutil.ignore_patterns(*NOT_NEEDED),
        ignore_dangling_symlinks=True,
    )
    linked = subprocess.run(
        ["ldd", PYTHON, *library.glob("lib-dynload/*.so")], capture_output=True, text=True, check=True
    )
    libraries = {Path(word) for word in linked.stdout.split() if word.startswith("/") and not word.endswith(":")}
    # A thread that ends loads this one, and no program names it.
    libraries |= {path.with_name("libgcc_s.so.1") for path in libraries if path.name == "libc.so.6"}
    for path in libraries:
        destination = root / path.relative_to("/")
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, destination)


def _package_layer(directory: Path) -> Path:
    """The package under test and the programs that try it."""
    root = directory / "package"
    shutil.copytree(PACKAGE, root / "opt/jobmeter", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "guest").mkdir()
    for program in ("inside.py", "load.py", "pair.py"):
        shutil.copy(HERE / program, root / "guest")
    # An emulated machine takes long to compile.
    compiling = "-m compileall -q --invalidation-mode unchecked-hash opt"
    subprocess.run([PYTHON, *compiling.split()], cwd=root, check=True)
    return _pack(root, directory / "package.cpio")


def _pack(root: Path, archive: Path) -> Path:
    names = [".", *sorted(str(path.relative_to(root)) for path in root.rglob("*"))]
    with archive.open("wb") as file:
        command = ["cpio", "--create", "--format=newc", "--owner=0:0", "--quiet"]
        subprocess.run(command, cwd=root, input="\n".join(names).encode(), stdout=file, check=True)
    return archive
