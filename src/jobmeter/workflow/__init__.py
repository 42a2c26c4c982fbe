"""Workflows: jobs written down with what each needs, and run in their order.

A spec is read (`loading`), checked against its schema (`spec`) and made into a plan
(`plan`), in which everything is resolved; `graph` tells how its jobs hang together and
`rewrite` corrects what the spec asks for.
"""
