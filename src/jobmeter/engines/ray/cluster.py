"""The cluster as the driver sees it: how to reach it, which nodes it has, and whether they can run jobs."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import Any

from jobmeter import __version__
from jobmeter.engines.ray import connection, probe
from jobmeter.engines.ray.connection import import_ray
from jobmeter.engines.ray.protocol import NAMESPACE, PROTOCOL, NodeInfo
from jobmeter.errors import LaunchError

_ANSWER = 60.0
"""Seconds that a node may take to start a worker and answer."""


def connect(address: str, runtime_env: dict[str, Any]) -> str:
    """Become a driver of the cluster, with this runtime environment for its workers. Returns the cluster's address.

    Raises LaunchError, with a message of one line, if that is not possible.
    """
    ray = import_ray()
    connection.connect(ray, address, namespace=NAMESPACE, runtime_env=runtime_env or None)
    return str(ray.get_runtime_context().gcs_address)


def nodes() -> list[NodeInfo]:
    """The nodes that are alive."""
    import ray

    return [_node_info(node) for node in ray.nodes() if node["Alive"]]


def _node_info(node: dict[str, Any]) -> NodeInfo:
    resources = node["Resources"]
    return NodeInfo(
        node["NodeID"],
        node["NodeManagerHostname"],
        resources.get("CPU", 0.0),
        int(resources.get("memory", 0)),
        resources.get("GPU", 0.0),
        tuple((name, amount) for name, amount in sorted(resources.items()) if not _is_rays_own(name)),
    )


def _is_rays_own(name: str) -> bool:
    return name in ("CPU", "GPU", "memory", "object_store_memory") or name.startswith("node:")


def on_every_node(function: Any, *arguments: Any) -> tuple[dict[NodeInfo, Any], dict[NodeInfo, str]]:
    """Call a remote function on all nodes in parallel. Returns the results, and the reasons of failures, by node."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    refs = {}
    for node in nodes():
        strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
        refs[function.options(scheduling_strategy=strategy).remote(*arguments)] = node
    done, late = ray.wait(list(refs), num_returns=len(refs), timeout=_ANSWER, fetch_local=False)
    answers, failures = {}, {refs[ref]: f"no answer in {_ANSWER:g} s" for ref in late}
    for ref in done:
        try:
            answers[refs[ref]] = ray.get(ref)
        except Exception as error:  # noqa: BLE001 - the function may raise anything
            failures[refs[ref]] = in_short(error)
    return answers, failures


def in_short(error: BaseException) -> str:
    """The sentence of an error of Ray that says most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = getattr(error, "cause", None)
    if cause is not None:
        return f"{type(cause).__name__}: {cause}".splitlines()[0]
    return lines[0].partition(". ")[0].rstrip(".") if lines else type(error).__name__


def check_nodes(runtimes: Iterable[str]) -> list[str]:
    """Check that the nodes can run jobs of this jobmeter, in these container runtimes. Returns warnings.

    Raises LaunchError if a node that answers cannot, or if no node answers.
    """
    import ray
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(probe)
    wanted = sorted(runtimes)
    remote_probe = ray.remote(num_cpus=0, max_retries=0)(probe.probe_node)
    answers, failures = on_every_node(remote_probe, wanted)
    for node, node_facts in answers.items():
        _check_versions(node, node_facts, ray.__version__)
        for runtime in wanted:
            if runtime not in node_facts["runtimes"] and node.cpus > 0:
                name = "container runtime" if runtime == "auto" else runtime
                raise LaunchError(f"node {node.short()} of the Ray cluster has no {name} that answers")
    if not answers:
        node, why = next(iter(failures.items()))
        raise LaunchError(f"node {node.short()} of the Ray cluster cannot run jobs: {why}")
    return [f"node {node.short()} of the Ray cluster could not be checked: {why}" for node, why in failures.items()]


def _check_versions(node: NodeInfo, node_facts: dict[str, Any], ray_version: str) -> None:
    if "missing" in node_facts:
        raise LaunchError(
            f"node {node.short()} of the Ray cluster has no jobmeter that can be used ({node_facts['missing']}). "
            f"Install {__version__} there: pip install 'jobmeter[ray]'"
        )
    if node_facts["protocol"] != PROTOCOL or node_facts["jobmeter"] != __version__:
        raise LaunchError(
            f"node {node.short()} of the Ray cluster has jobmeter {node_facts['jobmeter']}, here is {__version__}. "
            "Install the same version on all nodes."
        )
    for name, there, here in (
        ("Ray", node_facts["ray"], ray_version),
        ("Python", node_facts["python"].rpartition(".")[0], platform.python_version().rpartition(".")[0]),
    ):
        if there != here:
            raise LaunchError(
                f"node {node.short()} of the Ray cluster has {name} {there}, here is {here}. "
                "Install the same version on all nodes."
            )
