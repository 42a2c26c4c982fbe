"""Control groups: the group made for a job, its files, and the groups that enclose it."""
