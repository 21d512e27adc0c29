"""Keep progress bars silent when pytest runs the notebooks."""

import os

os.environ["TQDM_DISABLE"] = "1"
