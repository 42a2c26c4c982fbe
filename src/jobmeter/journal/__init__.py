"""The journal: one append-only file per run, which survives whatever happens to its writer."""
