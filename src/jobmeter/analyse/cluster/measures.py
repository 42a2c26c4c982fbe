"""The quantities that are monitored on a cluster, each described once: reports and pages are made from this."""

from __future__ import annotations

from typing import NamedTuple

CUSTOM = "custom."
"""The prefix, within a key, of the name of a custom resource: `reserved_custom.licence`."""


class Measure(NamedTuple):
    """One quantity of a node."""

    key: str
    unit: str
    help: str
    across: str = "sum"  # how values of nodes are combined: sum, max, or host: the sum of one value per machine


MEASURES = (
    Measure("reserved_cpus", "count", "CPUs that tasks and actors have reserved."),
    Measure("total_cpus", "count", "CPUs that can be reserved."),
    Measure("used_cpus", "count", "CPUs that were really busy."),
    Measure("waited_cpus", "count", "CPUs more that processes were ready to use and did not get."),
    Measure("capacity_cpus", "count", "CPUs that there really are for the node."),
    Measure("reserved_memory_bytes", "bytes", "Memory that is reserved."),
    Measure("total_memory_bytes", "bytes", "Memory that can be reserved."),
    Measure("used_memory_bytes", "bytes", "Memory in use."),
    Measure("capacity_memory_bytes", "bytes", "Memory that there really is for the node."),
    Measure("reserved_gpus", "count", "GPUs that are reserved."),
    Measure("total_gpus", "count", "GPUs that can be reserved."),
    Measure("used_gpus", "count", "GPUs of the machine that were really busy.", "host"),
    Measure("capacity_gpus", "count", "GPUs that the machine really has.", "host"),
    Measure("used_gpu_memory_bytes", "bytes", "Memory of its GPUs in use.", "host"),
    Measure("capacity_gpu_memory_bytes", "bytes", "Memory of its GPUs.", "host"),
    Measure("reserved_object_store_bytes", "bytes", "Room of the object store that objects take."),
    Measure("total_object_store_bytes", "bytes", "Room of the object store."),
    Measure("spilled_bytes", "bytes", "Objects that were moved from the object store to the disk."),
    Measure("disk_read_bytes_per_second", "bytes", "Read from disks, each second."),
    Measure("disk_write_bytes_per_second", "bytes", "Written to disks, each second."),
    Measure("net_received_bytes_per_second", "bytes", "Received from the network, each second.", "host"),
    Measure("net_sent_bytes_per_second", "bytes", "Sent to the network, each second.", "host"),
    Measure("load1", "count", "Load average of one minute, of the machine.", "host"),
    Measure("cpu_pressure_percent", "percent", "Time in which something on the machine waited for a CPU.", "max"),
    Measure("memory_pressure_percent", "percent", "Time in which something there waited for memory.", "max"),
    Measure("io_pressure_percent", "percent", "Time in which something there waited for a disk.", "max"),
    Measure("processes", "count", "Processes of the node."),
)
BY_KEY = {measure.key: measure for measure in MEASURES}

CLUSTER_MEASURES = (
    Measure("nodes", "count", "Nodes that were there."),
    Measure("tasks_running", "count", "Tasks and calls of actors that ran."),
    Measure("tasks_pending", "count", "Tasks and actors that waited for what they request."),
    Measure("actors", "count", "Actors that were there."),
)
"""Quantities that only the whole cluster has."""
TASK_MEASURES = (
    Measure("running", "count", "How many ran at a time."),
    Measure("pending", "count", "How many waited for what they request."),
    Measure("used_cpus", "count", "CPUs that all of them kept busy, with the processes they started."),
    Measure("waited_cpus", "count", "CPUs more that they were ready to use and did not get."),
    Measure("used_memory_bytes", "bytes", "Memory of all of them that nobody shares."),
)
"""Quantities of all tasks of one name together."""


def unit_of(key: str) -> str:
    """The unit of any key of a node, a cluster or a task."""
    for measure in (*MEASURES, *CLUSTER_MEASURES, *TASK_MEASURES):
        if measure.key == key:
            return measure.unit
    return "count"  # a custom resource
