"""Where jobmeter takes part in other programs: pytest, notebooks, Celery workers, Ray."""
