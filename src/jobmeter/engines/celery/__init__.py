"""Runs jobs on any number of machines, through a Celery broker. Each machine has a `jobmeter worker`.

`engine` is the runner's side, `worker` the side of the machine where jobs run. They communicate by three means:

- a Celery task per job, in a queue that only one worker reads. The runner chooses the worker;
- replies, in a queue of the runner: the lines of the jobs' journals, their output, their ends. They are numbered, so
  that a reply that the broker lost is noticed, and sent again;
- beacons, from every worker to every runner, once a second: its capacity, what is free, which jobs it knows.
"""
