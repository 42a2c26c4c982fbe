"""Pages: HTML files that need no other file, and what they share: style, charts, the frame around both."""
