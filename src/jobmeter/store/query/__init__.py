"""Questions to the index: which runs are meant, and what they have in common."""
