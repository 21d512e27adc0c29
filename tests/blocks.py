"""Have small arrays go through blocks too."""

from contextlib import contextmanager
from unittest import mock

from mha_lib import _blocked as blocked
from mha_lib import multihead


@contextmanager
def in_small_blocks():
    """Let `multi_head_attention` without weights go in blocks of 3 queries and 2 keys."""
    with (
        mock.patch.object(multihead, "MANY_SCORES", 0),
        mock.patch.multiple(blocked, BLOCK=3, KEYS=2),
    ):
        yield
