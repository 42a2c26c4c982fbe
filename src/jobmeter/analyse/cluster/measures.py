"""The quantities that are monitored on a cluster, each described once: reports and pages are made from this."""

from __future__ import annotations

from typing import NamedTuple

CUSTOM = "custom."
"""The prefix, within a key, of the name of a custom resource: `reserved_custom.licence`."""


class ClusterMeasure(NamedTuple):
    """One quantity of a node."""

    key: str
    unit: str
    help: str
    across: str = "sum"  # how values of nodes are combined: sum, max, or host: the sum of one value per machine


MEASURES = (
    ClusterMeasure("reserved_cpus", "count", "CPUs that tasks and actors have reserved."),
    ClusterMeasure("total_cpus", "count", "CPUs that can be reserved."),
    ClusterMeasure("used_cpus", "count", "CPUs that were really busy."),
    ClusterMeasure("waited_cpus", "count", "CPUs more that processes were ready to use and did not get."),
    ClusterMeasure("capacity_cpus", "count", "CPUs that there really are for the node."),
    ClusterMeasure("reserved_memory_bytes", "bytes", "Memory that is reserved."),
    ClusterMeasure("total_memory_bytes", "bytes", "Memory that can be reserved."),
    ClusterMeasure("used_memory_bytes", "bytes", "Memory in use."),
    ClusterMeasure("capacity_memory_bytes", "bytes", "Memory that there really is for the node."),
    ClusterMeasure("reserved_gpus", "count", "GPUs that are reserved."),
    ClusterMeasure("total_gpus", "count", "GPUs that can be reserved."),
    ClusterMeasure("used_gpus", "count", "GPUs of the machine that were really busy.", "host"),
    ClusterMeasure("capacity_gpus", "count", "GPUs that the machine really has.", "host"),
    ClusterMeasure("used_gpu_memory_bytes", "bytes", "Memory of its GPUs in use.", "host"),
    ClusterMeasure("capacity_gpu_memory_bytes", "bytes", "Memory of its GPUs.", "host"),
    ClusterMeasure("reserved_object_store_bytes", "bytes", "Room of the object store that objects take."),
    ClusterMeasure("total_object_store_bytes", "bytes", "Room of the object store."),
    ClusterMeasure("spilled_bytes", "bytes", "Objects that were moved from the object store to the disk."),
    ClusterMeasure("disk_read_bytes_per_second", "bytes", "Read from disks, each second."),
    ClusterMeasure("disk_write_bytes_per_second", "bytes", "Written to disks, each second."),
    ClusterMeasure("net_received_bytes_per_second", "bytes", "Received from the network, each second.", "host"),
    ClusterMeasure("net_sent_bytes_per_second", "bytes", "Sent to the network, each second.", "host"),
    ClusterMeasure("load1", "count", "Load average of one minute, of the machine.", "host"),
    ClusterMeasure(
        "cpu_pressure_percent", "percent", "Time in which something on the machine waited for a CPU.", "max"
    ),
    ClusterMeasure("memory_pressure_percent", "percent", "Time in which something there waited for memory.", "max"),
    ClusterMeasure("io_pressure_percent", "percent", "Time in which something there waited for a disk.", "max"),
    ClusterMeasure("processes", "count", "Processes of the node."),
)
BY_KEY = {measure.key: measure for measure in MEASURES}

CLUSTER_MEASURES = (
    ClusterMeasure("nodes", "count", "Nodes that were there."),
    ClusterMeasure("tasks_running", "count", "Tasks and calls of actors that ran."),
    ClusterMeasure("tasks_pending", "count", "Tasks and actors that waited for what they request."),
    ClusterMeasure("actors", "count", "Actors that were there."),
)
"""Quantities that only the whole cluster has."""
TASK_MEASURES = (
    ClusterMeasure("running", "count", "How many ran at a time."),
    ClusterMeasure("pending", "count", "How many waited for what they request."),
    ClusterMeasure("used_cpus", "count", "CPUs that all of them kept busy, with the processes they started."),
    ClusterMeasure("waited_cpus", "count", "CPUs more that they were ready to use and did not get."),
    ClusterMeasure("used_memory_bytes", "bytes", "Memory of all of them that nobody shares."),
)
"""Quantities of all tasks of one name together."""


def unit_of(key: str) -> str:
    """The unit of any key of a node, a cluster or a task."""
    for measure in (*MEASURES, *CLUSTER_MEASURES, *TASK_MEASURES):
        if measure.key == key:
            return measure.unit
    return "count"  # a custom resource
