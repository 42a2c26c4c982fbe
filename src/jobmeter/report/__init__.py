"""What people and programs get to see of a run."""
