"""Reading a spec: its file, every value with its position, and the check against the schema."""
