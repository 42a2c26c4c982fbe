"""Pages: HTML files that need nothing else, and what they share: style, charts, the frame around both."""
