"""What `jobmeter study` prints and draws."""
