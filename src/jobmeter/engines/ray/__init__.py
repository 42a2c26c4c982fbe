"""Runs each job as a Ray task on a node of a Ray cluster, with the same launcher and meter as on this machine.

Four parts, from the runner to the job:

- `engine`, in the runner: which jobs wait, which are in the cluster, and the reports about them;
- `driver`, a separate process that is the driver of Ray: it dies if the cluster does, and the runner must not. It also
  keeps what Ray prints out of jobmeter's output;
- `mailbox`, an actor without CPUs on the node of the driver: takes reports while jobs run, and passes cancels on;
- `node_tasks`, in the workers of Ray: runs one job at a time, with a guard that ends it if the worker is killed.

A short job costs one Ray task and nothing else: the task returns all its reports.
"""
