"""When pytest runs the notebooks, progress bars stay silent: their timings differ each time."""

import os

os.environ["TQDM_DISABLE"] = "1"
