"""Workflows: jobs written down with what each needs, and run in their order.

`spec` reads what a person wrote; `plan` is what comes of it, everything resolved. `graph` tells how its jobs hang
together, `scheduling` which starts next, `run` does it, and `resuming` finds what is left to do.
"""
