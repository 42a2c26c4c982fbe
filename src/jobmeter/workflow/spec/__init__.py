"""The spec of a workflow: read, checked, made into a plan, and corrected in place."""
