"""What follows from the figures. Pure functions: nothing here reads, writes or measures."""
