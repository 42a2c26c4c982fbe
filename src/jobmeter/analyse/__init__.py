"""Analysis of the figures of runs. Pure functions: nothing here reads, writes or measures."""
