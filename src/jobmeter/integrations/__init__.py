"""The parts of jobmeter that run inside other programs: pytest, notebooks, Celery workers, Ray."""
