"""Runs jobs on any number of machines, through a Celery broker: each has a `jobmeter worker`.

`engine` is the side of the runner, `worker` that of the machine where jobs run. Between them are three ways:

- a Celery task per job, in a queue that one worker alone reads. The runner chooses the worker;
- replies, in a queue of the runner: the lines of the jobs' journals, their output, their ends. They are numbered, so
  that one that the broker lost is noticed, and sent once more;
- beacons, from every worker to every runner, once a second: what it has, what is free, which jobs it knows.
"""
