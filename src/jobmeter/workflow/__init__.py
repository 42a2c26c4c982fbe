"""Workflows: jobs and their requirements, described in a spec and run in the order of their dependencies.

`spec` reads the spec; `plan` is the result, with everything resolved. `graph` has how the jobs depend on each other,
`scheduling` selects the job that starts next, `run` runs the jobs on an engine, and `resume` determines which jobs need
not run again. All commands and the Python API run workflows through `service`.
"""
