"""What a cluster reserved and used over time, and what to change. Pure functions: nothing is read or written here."""
