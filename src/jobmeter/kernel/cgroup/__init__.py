"""Control groups: a group of the job's own, its files, and the groups around it."""
