"""The commands, one file each. `main` is the entry point."""
