"""Widgets for Jupyter that stay alive on a page without a kernel.

Each is an `anywidget`, hence an ipywidget: its traits can be read, set, observed and linked,
and it can stand in a ``VBox``.  Python computes every number that a widget shows.  Those for
all settings of its sliders travel with it, so that a published page needs no kernel; where
there is one, it also computes settings in between and the reader's own data.
"""

from mha_lib import _check

with _check.needing("mha_lib.widgets"):
    from mha_lib.widgets.budget import Budget
    from mha_lib.widgets.head_gallery import HeadGallery
    from mha_lib.widgets.head_splitter import HeadSplitter
    from mha_lib.widgets.one_distribution import OneDistribution
    from mha_lib.widgets.pruning import Pruning
    from mha_lib.widgets.training_playback import TrainingPlayback

__all__ = [
    "Budget",
    "HeadGallery",
    "HeadSplitter",
    "OneDistribution",
    "Pruning",
    "TrainingPlayback",
]
