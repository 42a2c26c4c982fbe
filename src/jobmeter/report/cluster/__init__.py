"""The report of a cluster: text and page."""
