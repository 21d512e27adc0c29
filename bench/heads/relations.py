"""How often a head looks at the word that grammar names, beside what needs no model."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from bench.heads.sentences import ANTECEDENT, ANTECEDENT_RULE, NOUNS, RELATIONS
from mha_lib.learning.relations import looked_at, wilson_interval, word_attention

OFFSETS = [k for k in range(-12, 13) if k]
BATCH = 32  # sentences of one length at a time
N_RESAMPLED = 2000


@dataclass(frozen=True)
class Hits:
    """Right or wrong for each pair of a relation: by head, offset and rule; its sentence; if far.

    Far are pairs whose words are not neighbours.
    """

    heads: np.ndarray  # (N, L * h)
    offsets: np.ndarray  # (N, number of OFFSETS)
    rule: np.ndarray  # (N,)
    sentence: np.ndarray  # (N,)
    far: np.ndarray  # (N,)
    query: list  # the words that ask, in small letters

    def of(self, chosen):
        """Return the pairs that are chosen."""
        query = [word for word, yes in zip(self.query, chosen, strict=True) if yes]
        return Hits(
            self.heads[chosen], self.offsets[chosen], self.rule[chosen], self.sentence[chosen],
            self.far[chosen], query,
        )  # fmt: skip

    def __len__(self):
        return len(self.rule)


def head_name(index, n_heads=12):
    """Return what a head is called in the book: layer and head, counted from 1."""
    return f"{index // n_heads + 1}-{index % n_heads + 1}"


def head_index(name, n_heads=12):
    """Return the index of a head by its name."""
    layer, head = map(int, name.split("-"))
    return (layer - 1) * n_heads + head - 1


def word_maps(encoder, sentences):
    """Yield (index, attention between words, (L * h, W + 2, W + 2)) for lists of words."""
    pieces = [encoder.tokens(words) for words in sentences]
    by_length = defaultdict(list)
    for i, one in enumerate(pieces):
        by_length[len(one.ids)].append(i)
    for same in by_length.values():
        for start in range(0, len(same), BATCH):
            batch = same[start : start + BATCH]
            _, weights = encoder.forward(np.stack([pieces[i].ids for i in batch]))
            for i, one in zip(batch, weights, strict=True):
                attention = word_attention(one, pieces[i].word_of)  # (L, h, W + 2, W + 2)
                yield i, attention.reshape(-1, *attention.shape[-2:])


def hits(encoder, sentences, wanted=(ANTECEDENT, *RELATIONS)):
    """Return `Hits` by relation."""
    sentences = [s for s in sentences if any(s.pairs[name] for name in wanted)]
    rows = defaultdict(list)
    for i, attention in word_maps(encoder, [sentence.words for sentence in sentences]):
        seen, sentence = looked_at(attention), sentences[i]  # (L * h, W)
        for name in wanted:
            for query, right in sentence.pairs[name]:
                rows[name].append(
                    (
                        np.isin(seen[:, query], [*right]),
                        [query + k in right for k in OFFSETS],
                        _by_rule(name, sentence.tags, query) in right,
                        i,
                        all(abs(query - word) > 1 for word in right),
                        sentence.words[query].lower(),
                    )
                )
    return {
        name: Hits(*(np.array(column) for column in columns), query)
        for name, (*columns, query) in ((name, zip(*rows[name], strict=True)) for name in rows)
    }


def _by_rule(name, tags, query):
    """Return the nearest word of the right class, or None."""
    step, classes = -1, NOUNS
    if name != ANTECEDENT:
        step, classes = RELATIONS[name].step, RELATIONS[name].classes
    places = range(query + 1, len(tags)) if step > 0 else range(query - 1, -1, -1)
    return next((i for i in places if tags[i] in classes), None)


def row(name, choosing, reporting, untrained):
    """Return a line of the table: head and offset chosen on some pairs, reported on others.

    ``untrained`` has such a pair of `Hits` for each seed, whose head is chosen in the same way.
    """
    head = int(choosing.heads.mean(axis=0).argmax())
    offset = int(choosing.offsets.mean(axis=0).argmax())
    by_chance = [
        theirs.heads[:, ours.heads.mean(axis=0).argmax()].mean() for ours, theirs in untrained
    ]
    right = reporting.heads[:, head]
    order = np.argsort(-choosing.heads.mean(axis=0), kind="stable")[:3]
    line = {
        "relation": name,
        "head": head_name(head),
        "n": len(reporting),
        **share(right),
        "offset": OFFSETS[offset],
        "offset accuracy": digits(reporting.offsets[:, offset].mean()),
        "above offset": digits(_margin(right, reporting.offsets[:, offset], reporting.sentence)),
        "rule": ANTECEDENT_RULE if name == ANTECEDENT else RELATIONS[name].rule,
        "rule accuracy": digits(reporting.rule.mean()),
        "untrained": digits(by_chance),
        "n choosing": len(choosing),
        "accuracy choosing": digits(choosing.heads[:, head].mean()),
        "first three": {head_name(i): digits(choosing.heads[:, i].mean()) for i in order.tolist()},
        "far": _far(choosing, reporting, head),
        "by head": digits(reporting.heads.mean(axis=0), 2),
    }
    return {**line, "holds": holds(line, line)}


def holds(line, baseline):
    """Return whether a head is above the best offset beyond doubt, for distant pairs too."""
    far, its_baseline = line["far"], baseline["far"]
    return bool(
        line["interval"][0] > baseline["offset accuracy"]
        and far
        and far["interval"][0] > its_baseline["offset accuracy"]
    )


def _far(choosing, reporting, head):
    """Return the same for pairs that are not neighbours, with an offset chosen for these."""
    ours, theirs = choosing.of(choosing.far), reporting.of(reporting.far)
    if not len(ours) or not len(theirs):
        return None
    offset = int(ours.offsets.mean(axis=0).argmax())
    right = theirs.heads[:, head]
    return {
        "n": len(theirs),
        **share(right),
        "offset": OFFSETS[offset],
        "offset accuracy": digits(theirs.offsets[:, offset].mean()),
        "rule accuracy": digits(theirs.rule.mean()),
    }


def share(right):
    """Return the share of what is right, with its interval."""
    interval = wilson_interval(int(right.sum()), len(right))
    return {"accuracy": digits(right.mean()), "interval": digits(interval)}


def _margin(right, baseline, sentence, seed=0):
    """Return between which values head minus baseline lies, sentences drawn anew: 95 %."""
    _, sentence = np.unique(sentence, return_inverse=True)
    difference = np.bincount(sentence, right.astype(float) - baseline)
    count = np.bincount(sentence)
    drawn = np.random.default_rng(seed).integers(0, len(count), (N_RESAMPLED, len(count)))
    return np.percentile(difference[drawn].sum(axis=1) / count[drawn].sum(axis=1), [2.5, 97.5])


def digits(value, n=3):
    """Return a number, or all numbers of a list, with so many digits behind the point."""
    if np.ndim(value):
        return [digits(one, n) for one in value]
    return round(float(value), n) + 0.0  # no -0.0
