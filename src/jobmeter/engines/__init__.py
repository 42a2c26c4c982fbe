"""Where the jobs of a workflow run: on this machine, or through a scheduler that is already there."""
