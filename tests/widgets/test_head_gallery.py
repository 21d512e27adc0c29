"""The head gallery shows the attention that was measured, and refuses what it cannot show."""

import base64
import copy
import json

import numpy as np
import pytest

from mha_lib.learning import Encoder, word_attention
from mha_lib.widgets import HeadGallery
from tests.browser.conftest import ROOT

DATA = ROOT / "chapters" / "data"
GALLERY = json.loads((DATA / "gallery.json").read_text("utf-8"))


@pytest.fixture
def stored():
    return copy.deepcopy(GALLERY)


def test_weights_are_those_that_are_stored():
    gallery = HeadGallery(DATA / "gallery.json", sentence=3, head="4-2")
    one = GALLERY["sentences"][3]
    n = len(one["words"]) + 2
    maps = np.frombuffer(base64.b64decode(one["attention"]), np.uint8).reshape(6, 12, n, n)
    np.testing.assert_array_equal(gallery.weights(), maps[3, 1] / 255)
    np.testing.assert_allclose(gallery.weights().sum(axis=1), 1, atol=0.5 * n / 255)


def test_the_first_page_begins_with_she_and_queen():
    gallery = HeadGallery(DATA / "feature.json", head="2-4", word="she")
    words = gallery._words[0]
    row = gallery.weights()[gallery.word + 1]
    assert words[gallery.word] == "she"
    assert words[row[1:-1].argmax()] == "queen"
    assert "“she” takes 0.61 from “queen”" in gallery.picture().replace("&quot;", '"')


def test_the_feature_is_the_first_sentence_of_the_gallery():
    feature = json.loads((DATA / "feature.json").read_text("utf-8"))
    assert feature["sentences"] == GALLERY["sentences"][:1]
    assert feature["heads"] == GALLERY["heads"]


def test_a_setting_draws_another_frame():
    gallery = HeadGallery(GALLERY)
    before = gallery.weights()
    gallery.sentence = 1
    assert not np.array_equal(gallery.weights(), before)
    gallery.head = 13
    assert gallery._heads[gallery.head]["head"] == "2-2"


def test_sentences_of_the_reader_go_through_the_encoder():
    words = ["she", "met", "him", "there", "again"]
    encoder = Encoder.untrained(vocabulary(words), seed=0)
    gallery = HeadGallery(GALLERY, [" ".join(words)], encoder, head="3-5", word="him")
    pieces = encoder.tokens(words)
    _, weights = encoder.forward(pieces.ids)
    expected = word_attention(weights, pieces.word_of)[2, 4]  # layer 3, head 5
    np.testing.assert_allclose(gallery.weights(), expected, atol=0.5 / 255)


def vocabulary(words):
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"head": "7-1"}, r"head='7-1' is not there: use one of '1-1', '1-2', '1-3'"),
        ({"other": "she"}, r"other='she' is not there"),
        ({"word": "king"}, r"word='king' is not there: use one of 'the', 'general'"),
        ({"word": 12}, r"word=12, but there are 12 words: use word <= 11"),
        ({"sentence": 18}, r"sentence=18, but there are 18 sentences: use sentence <= 17"),
        ({"sentences": "a b"}, r"must be a list of texts, not one: use sentences=\['a b'\]"),
        ({"sentences": ["a b"]}, r"sentences of your own need encoder: pass Encoder.load\(\)"),
    ],
)
def test_bad_settings_are_refused(options, said):
    with pytest.raises((TypeError, ValueError), match=said):
        HeadGallery(GALLERY, **options)


def test_files_that_are_no_measurement_are_refused(stored):
    with pytest.raises(ValueError, match="lacks 'heads', 'sentences' or 'full'"):
        HeadGallery({"sentences": []})
    stored["sentences"][0]["attention"] = stored["sentences"][0]["attention"][:400]
    with pytest.raises(ValueError, match="has 300 weights, but 72 heads and 14 places need 14112"):
        HeadGallery(stored)


def test_an_encoder_with_other_heads_is_refused(stored):
    del stored["heads"][-1]
    encoder = Encoder.untrained(vocabulary(["she"]), seed=0)
    with pytest.raises(ValueError, match="encoder has 72 heads, but measured names 71"):
        HeadGallery(stored, ["she"], encoder)
