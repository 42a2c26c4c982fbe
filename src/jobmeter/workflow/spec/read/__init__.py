"""Reading a spec: its file, every value with its line, and what the schema says of it."""
