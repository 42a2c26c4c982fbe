"""The store: runs as journals in a directory, and an SQL index of them that answers queries.

    from jobmeter.store import Selection, open_store

    store = open_store(location, warn)        # brings the index up to date; warns of lines that cannot be read
    store.runs(Selection(names=("train*",)))  # `StoredRun`s, newest first: what was not measured is absent
    store.resolve("last")                     # id, unique prefix, name (its newest run) or "last" → id, or UsageError
    store.record(run_id)                      # the run record; of a run without an end, made from its windows so far
    store.journal(run_id)                     # header, windows, processes, record, problems
    store.has(run_id)
    store.add(record, windows, described)     # store a run that was measured elsewhere
    store.add_all([(record, windows, described), …])  # many of them, in one file
    store.relabel(run_id, {"team": "a", "gone": None})
    store.remove(run_id)

Rows have `id name status exit_code signal started ended wall_seconds`, the headline figures
(`jobmeter.analyse.headline_table`), `requirement_cpus requirement_memory_bytes requirement_runtime_seconds
requirement_gpus`, `labels` and `metrics` (dicts), `user host cwd command` (list), `cpu_quality memory_quality`,
`at_least` and `enforced` (lists); those of a workflow's jobs also `workflow workflow_run` and `workflow_job` (dict).
`jobmeter.store.query.fields.FIELDS` has their units.

For questions about very many runs, use SQL instead of a loop over rows:

    from sqlalchemy import func, select
    from jobmeter.store.index.tables import job_metadata as job
    store.query(select(job.c.job_name, func.count(), func.sum(job.c.cpu_seconds))
                .where(store.condition(selection)).group_by(job.c.job_name))   # → list of tuples

`(job_name, figure)` is indexed for wall_seconds and the figures that `stats` shows, so exact percentiles by name
are quick: `order by figure limit 1 offset n`. For CPU, memory and processes of a window, see
`jobmeter.analyse.timeline`.
"""

from jobmeter.store.query.selection import Selection
from jobmeter.store.store import Store, open_store

__all__ = ["Selection", "Store", "open_store"]
