"""`python -m jobmeter`."""

import sys

from jobmeter.cli.main import main

sys.exit(main())
