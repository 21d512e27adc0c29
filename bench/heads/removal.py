"""What is left of finding paraphrases when heads are removed.

There are 100 triplets, each a sentence, a paraphrase in other words, and a decoy that shares words
and means something else.  All but the first ten are for reporting.
"""

from collections import defaultdict
from pathlib import Path

import numpy as np

from bench.heads.relations import digits, head_name
from mha_lib.learning.encoder import _pooled

N_OVERTUNED = 10  # triplets that an order is tuned on, far too few; the others are reported on
CANDIDATES = 8  # heads tried at each step of a greedy order, after the first
N_RESAMPLED = 2000


def read_triplets(path):
    """Return lists of sentence, paraphrase and decoy."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


class Corpus:
    """Sentences in groups of equal length, that go through an encoder layer by layer."""

    def __init__(self, encoder, sentences):
        self.encoder = encoder
        ids = [encoder.tokens(sentence).ids for sentence in sentences]
        groups = defaultdict(list)
        for i, one in enumerate(ids):
            groups[len(one)].append(i)
        self._places = [*groups.values()]
        self.n = len(ids)
        self.start = [encoder._embedded(np.stack([ids[i] for i in same])) for same in self._places]

    def through(self, states, layer, gates):
        """Return hidden states after one more layer."""
        parameters = self.encoder._layers[layer]
        return [self.encoder._through(parameters, x, gates[layer])[0] for x in states]

    def embeddings(self, gates, states=None, first=0):
        """Return the embeddings of all sentences, (sentences, d), from the first layer to do on."""
        states = self.start if states is None else states
        for layer in range(first, self.encoder.n_layers):
            states = self.through(states, layer, gates)
        found = np.empty((self.n, self.encoder.d))
        for places, hidden in zip(self._places, states, strict=True):
            found[places] = _pooled(hidden)
        return found


def reciprocal_ranks(embeddings):
    """Return 1 / rank of the paraphrase for each sentence, and of the sentence for each paraphrase.

    Embeddings of triplets, one after another.  The others in the ranking are all paraphrases (or
    sentences) and all decoys.
    """
    sentence, paraphrase, decoy = embeddings[0::3], embeddings[1::3], embeddings[2::3]
    return np.concatenate(
        [
            1 / (1 + (scores > np.diagonal(scores)[:, None]).sum(axis=1))
            for ours, theirs in ((sentence, paraphrase), (paraphrase, sentence))
            for scores in (ours @ np.concatenate([theirs, decoy]).T,)
        ]
    )


def what_is_found(embeddings):
    """Return what the metric is made of: without decoys, and paraphrase against decoy alone."""
    sentence, paraphrase, decoy = embeddings[0::3], embeddings[1::3], embeddings[2::3]
    scores = sentence @ paraphrase.T
    right = np.diagonal(scores)
    return {
        "reciprocal rank without decoys": digits(
            np.mean([1 / (1 + (s > right[:, None]).sum(axis=1)) for s in (scores, scores.T)])
        ),
        "paraphrase nearer than its decoy": digits((right > (sentence * decoy).sum(axis=1)).mean()),
    }


def greedy_order(corpus, score, log=lambda *_: None):
    """Return heads in the order in which ``score`` misses them least, the last one left out.

    As `mha_lib.learning.greedy_order`, with two savings: layers below the head that is tried are
    not computed again, and after the first step only the heads are tried that were missed least
    when they were tried last.
    """
    encoder = corpus.encoder
    gates = np.ones((encoder.n_layers, encoder.n_heads))
    order, last = [], {}
    while gates.sum() > 1:
        states, best = corpus.start, (-np.inf, None)
        tried = set(sorted(last, key=lambda head: -last[head])[:CANDIDATES]) if last else None
        for layer in range(encoder.n_layers):
            for head in range(encoder.n_heads):
                if gates[layer, head] and (tried is None or (layer, head) in tried):
                    without = gates.copy()
                    without[layer, head] = 0
                    last[layer, head] = score(corpus.embeddings(without, states, layer))
                    best = max(best, (last[layer, head], (layer, head)), key=lambda pair: pair[0])
            states = corpus.through(states, layer, gates)
        gates[best[1]] = 0
        del last[best[1]]
        order.append(best[1])
        log(len(order), best)
    return [*order, *zip(*(axis.tolist() for axis in np.nonzero(gates)), strict=True)]


def closeness(corpus):
    """Return a score that needs no labels: the mean cosine with the embeddings of all heads."""
    whole = corpus.embeddings(np.ones((corpus.encoder.n_layers, corpus.encoder.n_heads)))
    return lambda embeddings: float((embeddings * whole).sum(axis=1).mean())


def quality(corpus):
    """Return a score that is the metric itself, with a little closeness to decide ties."""
    near = closeness(corpus)
    return lambda found: float(reciprocal_ranks(found).mean() + 0.02 * near(found))


def ranks_along(corpus, order, counts):
    """Return the reciprocal ranks, (counts, queries), with so many heads of an order removed."""
    shape = corpus.encoder.n_layers, corpus.encoder.n_heads
    found = []
    for count in counts:
        gates = np.ones(shape)
        for head in order[:count]:
            gates[head] = 0
        found.append(reciprocal_ranks(corpus.embeddings(gates)))
    return np.array(found)


def loss_interval(ranks, whole, seed=0):
    """Return between which values the relative loss lies, triplets drawn anew: 95 %."""
    n = len(whole) // 2
    drawn = np.random.default_rng(seed).integers(0, n, (N_RESAMPLED, n))
    drawn = np.concatenate([drawn, drawn + n], axis=1)  # both questions about a triplet
    losses = 1 - ranks[drawn].mean(axis=1) / whole[drawn].mean(axis=1)
    return np.percentile(losses, [2.5, 97.5])


def random_orders(shape, n_orders):
    """Return all heads in so many random orders."""
    heads = [*np.ndindex(*shape)]
    return [
        [heads[i] for i in np.random.default_rng(seed).permutation(len(heads))]
        for seed in range(n_orders)
    ]


def names(order):
    """Return what the heads of an order are called."""
    return [head_name(12 * layer + head) for layer, head in order]


def curve(ranks):
    """Return the mean reciprocal rank for each count."""
    return digits(ranks.mean(axis=1))
