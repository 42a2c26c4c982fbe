"""Runs each job as a Ray task on a node of a Ray cluster, where the same launcher and meter run it as here.

Four places, from the runner to the job:

- `engine`, in the runner: which jobs wait, which are in the cluster, and what is reported of them;
- `driver`, a process of its own that is the driver of Ray: it dies if the cluster does, and the runner must not. What
  Ray prints is no output of jobmeter's;
- `mailbox`, an actor without CPUs on the node of the driver: takes reports while jobs run, and says what to cancel;
- `node_tasks`, in the workers of Ray: runs one job at a time, with a guard that ends it if the worker is killed.

A short job costs one Ray task and nothing else: all its reports are what the task returns.
"""
