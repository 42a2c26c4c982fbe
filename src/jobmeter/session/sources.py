"""Opens the sources of one run, and refuses the run if they cannot measure a key that was requested by name."""

from __future__ import annotations

import os
from collections.abc import Mapping

from jobmeter.collectors import Selected, availability, unavailable
from jobmeter.collectors.contract import Source, Target, abilities, collector_abilities
from jobmeter.errors import UsageError
from jobmeter.kernel.machine import Machine
from jobmeter.light_typing import TYPE_CHECKING
from jobmeter.model import Measurement

if TYPE_CHECKING:
    from jobmeter.record.types import CollectorState


class Sources:
    """The selected collectors: which sources could be opened, and why the others could not."""

    def __init__(self, selected: list[Selected], machine: Machine) -> None:
        self.opened: dict[str, Source] = {}
        self.why_not: dict[str, str] = {}
        self._selected = selected
        self._machine = machine

    def wants(self, collector: str) -> bool:
        return any(choice.collector.name == collector for choice in self._selected)

    def wants_any(self, keys: tuple[str, ...]) -> bool:
        return any(choice.wanted & set(keys) for choice in self._selected)

    def open(self, target: Target) -> dict[str, Measurement]:
        """Open the sources, and return what they measure, by key.

        Raises UsageError, with nothing left open, if a key requested by name cannot be measured for this job.
        """
        try:
            self._selected = [self._open(choice, target) for choice in self._selected]
            for choice in self._selected:
                self._refuse_missing(choice)
        except BaseException:
            self.close()
            raise
        opened = [choice for choice in self._selected if choice.collector.name in self.opened]
        return {m.key: m for choice in opened for m in choice.measurements()}

    def _open(self, choice: Selected, target: Target) -> Selected:
        """Open one source, and return the selection without keys that another source measures already."""
        collector, name, wanted = choice.collector, choice.collector.name, choice.wanted
        redundant = collector_abilities(collector).redundant if choice.usual else None
        if redundant is not None:
            wanted -= choice.usual & redundant(target)
            choice = choice._replace(wanted=wanted)
            if not wanted:
                self.why_not.setdefault(name, "not needed: the job's cgroup counts the same")
                return choice
        try:
            source = self.opened[name] = collector.open(target, wanted)
        except Exception as reason:  # noqa: BLE001 - a failing collector, also a plug-in, loses only its own readings
            self.why_not.setdefault(name, str(reason) or type(reason).__name__)
            return choice
        may_stop = abilities(source).may_stop
        if may_stop is not None and wanted <= choice.usual:
            may_stop()
        return choice

    def _refuse_missing(self, choice: Selected) -> None:
        name = choice.collector.name
        if not choice.named:
            return
        if name in self.opened:
            missing = unavailable(choice.collector, self._machine, self.opened[name])
            # The reason why the job has no cgroup is known here, not in the source.
            _refuse(choice, {key: self.why_not.get(name, why) for key, why in missing.items()})
        else:
            _refuse(choice, dict.fromkeys(choice.named, self.why_not[name]))

    def check_ahead(self) -> None:
        """Raise UsageError if a key requested by name certainly cannot be measured for a process that is not our child.

        For a container, which runs as soon as it is started: the sources are tried on this process instead. The cgroup
        of a container is not known before it runs, and its container runtime has figures only then.
        """
        myself = Target(root=os.getpid(), main=os.getpid(), root_is_job=True, machine=self._machine)
        for choice in self._selected:
            collector = choice.collector
            if not choice.named or collector.name == "cgroup":
                continue
            if collector.name == "container":
                why = availability(collector, self._machine)
                _refuse(choice, dict.fromkeys(choice.named, why) if why is not None else {})
                continue
            try:
                source = collector.open(myself, choice.wanted)
            except Exception as reason:  # noqa: BLE001 - as in `_open`
                _refuse(choice, dict.fromkeys(choice.named, str(reason) or type(reason).__name__))
                continue
            missing = unavailable(collector, self._machine, source)
            source.close()
            _refuse(choice, missing)

    def availability(self, failures: Mapping[str, str]) -> dict[str, CollectorState]:
        """By collector: whether it was available, and what failed, if anything did."""
        entries: dict[str, CollectorState] = {}
        for choice in self._selected:
            name = choice.collector.name
            if name in self.why_not:
                entries[name] = {"available": False, "why": self.why_not[name]}
            elif (state := self._state(name)) is not None:
                entries[name] = state
            elif faults := self.faults(name):
                entries[name] = {"available": True, "failed": "; ".join(faults)}
            elif name in failures:
                entries[name] = {"available": True, "failed": failures[name]}
            else:
                entries[name] = {"available": True}
        return entries

    def _state(self, name: str) -> CollectorState | None:
        source = self.opened.get(name)
        state = abilities(source).state if source is not None else None
        return state() if state is not None else None

    def faults(self, name: str) -> list[str]:
        """What was wrong with the readings of a plug-in."""
        source = self.opened.get(name)
        faults = abilities(source).faults if source is not None else None
        return faults() if faults is not None else []

    def close(self) -> None:
        for source in self.opened.values():
            source.close()
        self.opened = {}


def _refuse(choice: Selected, missing: dict[str, str]) -> None:
    """Raise UsageError for the first key that was requested by name and is missing."""
    for key in sorted(choice.named & missing.keys()):
        raise UsageError(f"--measurements: {key} cannot be measured here: {missing[key]}")
