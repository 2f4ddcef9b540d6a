"""The tests, and what they share."""

import os

# As many processes as there are cores run tests: threads of numpy's would spin while they wait for one of them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
