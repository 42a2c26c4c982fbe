"""Editing a spec in place: comments, layout and order stay."""
