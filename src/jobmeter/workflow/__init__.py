"""Workflows: jobs written down with what each needs, and run in their order.

`spec` reads what a person wrote; `plan` is what comes of it, everything resolved. `graph` has how its jobs depend on
each other, `scheduling` which starts next, `run` runs them on an engine, and `resume` has which need not run again.
`service` is the one way to run a workflow, for commands and the Python API.
"""
