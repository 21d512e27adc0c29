"""What heads look at, measured again: all of it, but for four of five untrained encoders."""

import base64

import numpy as np
import pytest

pytest.importorskip("conllu")  # of mha_lib[model]

import bench.heads.__main__ as measuring
from bench.heads import gallery
from mha_lib.learning.encoder import Encoder
from tests.measured.compare import changed, differences

HEADS = measuring.read(measuring.HEADS)


@pytest.fixture(scope="module")
def again(encoder):
    untrained = [Encoder.untrained(encoder.vocabulary, seed=0, dtype=np.float64)]
    return measuring.measured(encoder, untrained)


def test_measured_again_all_is_as_it_was(again):
    assert differences(HEADS, again) == []


@pytest.mark.parametrize(
    "path",
    [
        ("relations", "made up", "n sentences"),
        ("relations", "made up", "rows", 0, "accuracy"),
        ("relations", "made up", "rows", 2, "untrained", 0),
        ("relations", "made up", "rows", 4, "far", "offset accuracy"),
        ("relations", "made up", "rows", 5, "by head", 37),
        ("relations", "made up", "all", 3, "above offset", 1),
        ("relations", "made up", "pronouns", "it", "n"),
        ("positions", "made up", "heads", "[CLS]", 71),
        ("positions", "made up", "chance", "next"),
        ("positions", "made up", "kinds", "broad"),
        ("pronoun swap", "it / they", "both right"),
        ("pronoun swap", "she / he", "interval", 1),
        ("feature", "heads", "2-4", 6, "weight"),
        ("failures", "winograd", 1, "weights of it", "2-4", "trophy"),
        ("failures", "stereotype", "by pair", "nurse / engineer"),
    ],
    ids=lambda path: " ".join(map(str, path)),
)
def test_a_number_that_is_changed_is_noticed(again, path):
    assert len(differences(changed(HEADS, path), again)) == 1


def test_the_gallery_measured_again_is_as_it_was(encoder):
    stored = measuring.read(measuring.GALLERY)["sentences"]
    for one, other in zip(stored, gallery.attention_of(encoder, gallery.SENTENCES), strict=True):
        assert one["words"] == other["words"]
        n = len(one["words"]) + 2
        old, new = (
            np.frombuffer(base64.b64decode(s["attention"]), np.uint8).reshape(72, n, n)
            for s in (one, other)
        )
        assert (old == new).all()
        # A row sums to 1 up to what rounding n weights can do.
        assert np.abs(old.sum(axis=-1, dtype=int) - gallery.FULL).max() <= n // 2
