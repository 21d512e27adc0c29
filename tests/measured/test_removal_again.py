"""What is left without heads, measured again at some points of each curve."""

import numpy as np
import pytest

pytest.importorskip("conllu")  # of mha_lib[model]

import bench.heads.__main__ as measuring
from bench.heads import removal
from bench.heads.relations import digits, head_index
from tests.measured.compare import changed, differences

HEADS = measuring.read(measuring.HEADS)
# Heads removed in greedy order, or alone; and which points of the other curves, and which curves.
GREEDY, ALONE, POINTS, ORDERS = (0, 1, 24, 48, 72), (15, 71), (3, 8), (0, 13)


@pytest.fixture(scope="module")
def again(encoder):
    """Return what is measured again; of a list a dict of places."""
    shape = encoder.n_layers, encoder.n_heads
    corpora = measuring.parts_of_removal(encoder)
    reporting, tuning, few = (corpora[name] for name in ("reporting", "tuning", "few"))
    stored = HEADS["removal"]

    def along(corpus, order, counts):
        order = [divmod(head_index(head), 12) for head in order]
        return removal.ranks_along(corpus, order, counts)

    def places(ranks, at):
        return dict(zip(at, removal.curve(ranks), strict=True))

    greedy = along(reporting, stored["greedy"]["order"], GREEDY)
    whole = greedy[0]
    kept = measuring.one_a_layer(
        [divmod(head_index(head), 12) for head in stored["greedy"]["order"]], shape
    )
    left = removal.reciprocal_ranks(reporting.embeddings(1 - measuring._gates(kept, shape)))
    near = removal.closeness(tuning)
    without = {i: measuring._gates([divmod(i, 12)], shape) for i in ALONE}
    counts = [stored["random"]["removed"][i] for i in POINTS]
    badly = stored["overtuned"]["order"]
    orders = removal.random_orders(shape, measuring.N_ORDERS)
    return {
        "all heads": digits(whole.mean()),
        "no heads": digits(greedy[-1].mean()),
        "loss without any": {
            "loss": digits(1 - greedy[-1].mean() / whole.mean()),
            "interval": digits(removal.loss_interval(greedy[-1], whole)),
        },
        "found": {
            name: removal.what_is_found(reporting.embeddings(gates))
            for name, gates in (("all heads", np.ones(shape)), ("no heads", np.zeros(shape)))
        },
        "greedy": {
            "curve": places(greedy, GREEDY),
            "intervals of the loss": {
                str(n): digits(removal.loss_interval(ranks, whole))
                for n, ranks in zip(GREEDY, greedy, strict=True)
                if n and n % measuring.STEP == 0
            },
        },
        "overtuned": {
            "curve": places(along(reporting, badly, counts), POINTS),
            "curve on what it was tuned on": places(along(few, badly, counts), POINTS),
        },
        "random": {
            "curves": {
                seed: places(removal.ranks_along(reporting, orders[seed], [counts[i]]), [POINTS[i]])
                for i, seed in enumerate(ORDERS)
            }
        },
        "one head a layer": {
            "kept": removal.names(kept),
            "loss": digits(1 - left.mean() / whole.mean()),
            "interval": digits(removal.loss_interval(left, whole)),
        },
        "single": {
            "loss": {
                i: digits(
                    1 - removal.reciprocal_ranks(reporting.embeddings(gates)).mean() / whole.mean()
                )
                for i, gates in without.items()
            },
            "cosine": {
                i: digits(near(tuning.embeddings(gates)), 4) for i, gates in without.items()
            },
        },
        "share of parameters": measuring.share_of_parameters(encoder),
    }


def test_measured_again_all_is_as_it_was(again):
    assert differences(HEADS["removal"], again) == []


@pytest.mark.parametrize(
    "path",
    [
        ("all heads",), ("no heads",), ("share of parameters",), ("loss without any", "loss"),
        ("greedy", "curve", 24), ("greedy", "intervals of the loss", "48", 0),
        ("overtuned", "curve", 8), ("overtuned", "curve on what it was tuned on", 3),
        ("random", "curves", 13, 8), ("single", "loss", 71), ("single", "cosine", 15),
        ("found", "no heads", "reciprocal rank without decoys"),
        ("one head a layer", "loss"), ("one head a layer", "interval", 0),
    ],
    ids=lambda path: " ".join(map(str, path)),
)  # fmt: skip
def test_a_number_that_is_changed_is_noticed(again, path):
    assert len(differences(changed(HEADS["removal"], path), again)) == 1


def test_the_share_of_parameters_by_hand(again):
    """Six layers with four matrices of 384 columns, of all that the file has but its pooler."""
    heads = 6 * 4 * (384 * 384 + 384)
    rest = (30_522 + 512 + 2 + 2) * 384 + 6 * (384 * 1536 * 2 + 1536 + 384 + 4 * 384)
    assert again["share of parameters"] == pytest.approx(heads / (heads + rest), abs=5e-4)


def test_random_orders_are_what_they_were():
    assert HEADS["removal"]["random"]["removed"] == [*range(0, 73, measuring.STEP)]
    assert np.shape(HEADS["removal"]["random"]["curves"]) == (measuring.N_ORDERS, 13)
