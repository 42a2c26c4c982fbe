"""Packages with engines, as an installer leaves them: a folder with a module and its `dist-info`."""

from __future__ import annotations

from pathlib import Path

PIPE = Path(__file__).parent / "pipe_engine.py"


def install(folder: Path, package: str, code: str, **engines: str) -> Path:
    """A package of one module; its entry points are NAME=CLASS. Returns the folder, which belongs on sys.path."""
    module = package.replace("-", "_")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    points = "".join(f"{name} = {module}:{value}\n" for name, value in engines.items())
    (info / "entry_points.txt").write_text(f"[jobmeter.engines]\n{points}")
    (folder / f"{module}.py").write_text(code)
    return folder


def install_pipe(folder: Path) -> Path:
    """The engine `pipe`, whose tasks run in worker processes."""
    return install(folder, "jobs-over-pipes", PIPE.read_text(), pipe="PipeEngine")
