"""Starts jobs, tells them signals, and ends them with everything they started."""
