"""Writing a spec in another format, or from the graph that another tool printed."""
