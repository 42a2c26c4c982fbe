"""The index: a SQL database made from the journals, and brought up to date by the commands that read."""
