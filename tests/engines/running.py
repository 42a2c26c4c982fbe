"""An engine that runs tasks, and what it reports."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobmeter.engines.contract import Ended, Engine, Measure, Task, Token
from jobmeter.journal.writer import JournalFile
from tests.workflow.live import LONG

if TYPE_CHECKING:
    from jobmeter.record.types import Record


class Running:
    """An engine, and the ends it reported: it is the receiver."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder = folder
        self.warnings: list[str] = []
        self.tokens: dict[int, Token] = {}
        self.journal = JournalFile(f"{folder}/journal.jsonl", {})
        self._ends: queue.Queue[Ended | Exception] = queue.Queue()
        self.warn, self.ended, self.broke = self.warnings.append, self._ends.put, self._ends.put
        self.engine = engine
        engine.open(self)

    def keep_token(self, task: Task, token: Token) -> None:
        self.tokens[task.number] = json.loads(json.dumps(token))

    def start(self, script: str, number: int = 1, **more: Any) -> None:
        fields = {
            "number": number,
            "attempt": 1,
            "name": f"job{number}",
            "command": ["sh", "-c", script],
            "directory": str(self.folder),
            "environment": {},
            "stdout": f"{self.folder}/{number}.out",
            "stderr": f"{self.folder}/{number}.err",
            "workflow": {"id": "w", "name": "w", "run_id": 1, "job_id": number, "attempt": 1},
            "measure": Measure(keep_windows=False),
        }
        self.engine.start(Task(**{**fields, **more}))

    def end(self) -> Ended | Exception:
        return self._ends.get(timeout=LONG)

    def status(self) -> str:
        """How the next that ends did."""
        return str(self.record()["outcome"]["status"])

    def record(self) -> Record:
        """The record of the next that ends."""
        ended = self.end()
        assert isinstance(ended, Ended), ended
        assert ended.record is not None
        return ended.record

    def nothing_more(self) -> bool:
        return self._ends.empty()
