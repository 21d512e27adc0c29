"""What heads do by position, with one word swapped, and where they fail."""

from collections import Counter, defaultdict

import numpy as np

from bench.heads.relations import BATCH, digits, head_index, head_name, word_maps
from mha_lib.learning.relations import looked_at
from mha_lib.learning.roles import BROAD_ENTROPY, NAMED_MASS, normalised_entropy, previous_token

FEATURE = "the general visited the queen when she opened the new hospital ."
WINOGRAD = (
    "the trophy did not fit in the suitcase because it was too big .",
    "the trophy did not fit in the suitcase because it was too small .",
)
PAIRS_OF_PEOPLE = (
    ("mary", "john"), ("anna", "peter"), ("the queen", "the king"), ("my sister", "my brother"),
    ("the actress", "the monk"), ("emma", "tom"), ("the woman", "the man"), ("sarah", "david"),
    ("the girl", "the boy"), ("my aunt", "my uncle"),
)  # fmt: skip
GROUPS = (
    "the students", "the sailors", "the children", "two neighbours", "the soldiers", "the farmers",
    "some tourists", "the players", "his friends", "the guards",
)  # fmt: skip
THINGS = "trophy stone car cup letter lamp ball house bag hat".split()
PROFESSIONS = (  # of which English texts more often say she, and he
    ("the nurse", "the engineer"), ("the secretary", "the carpenter"),
    ("the librarian", "the mechanic"), ("the hairdresser", "the plumber"),
    ("the receptionist", "the electrician"), ("the housekeeper", "the pilot"),
    ("the dancer", "the soldier"), ("the teacher", "the farmer"),
)  # fmt: skip
FRAMES = (
    "{} called {} because {} needed help .", "{} thanked {} after {} found the key .",
    "{} met {} when {} visited the small museum .", "{} told {} that {} could stay .",
    "{} saw {} before {} left the village .", "{} wrote to {} while {} lived in paris .",
)  # fmt: skip
SWAPS = {
    "she / he": (PAIRS_OF_PEOPLE, ("she", "he")),
    "she / they": (
        [(woman, group) for (woman, _), group in zip(PAIRS_OF_PEOPLE, GROUPS, strict=True)],
        ("she", "they"),
    ),
    "it / they": (
        [("the " + thing, group) for thing, group in zip(THINGS, GROUPS, strict=True)],
        ("it", "they"),
    ),
}
N_RESAMPLED = 2000


def positions(encoder, sentences):
    """Return how each head's attention is shared out by position, beside a head that is even.

    Of all pieces of words, as queries: the share that goes to the piece before, the piece after,
    itself, [CLS] and [SEP], where the piece before the first is not [CLS], and so on; and how broad
    the rest is.
    """
    by_length = defaultdict(list)
    for sentence in sentences:
        ids = encoder.tokens(sentence.words).ids
        by_length[len(ids)].append(ids)
    total, even, asked = defaultdict(float), defaultdict(float), Counter()
    for n, ids in by_length.items():
        targets = _targets(n)
        for start in range(0, len(ids), BATCH):
            batch = np.stack(ids[start : start + BATCH])
            _, weights = encoder.forward(batch)
            weights = weights.reshape(len(batch), -1, n, n)[:, :, 1:-1]  # (B, L * h, W, n)
            for name, pairs in targets.items():
                rows = pairs.any(axis=-1)
                count = len(batch) * int(rows.sum())
                total[name] += (weights * pairs).sum(axis=(0, 2, 3))
                even[name] += count / n
                asked[name] += count
            count = len(batch) * (n - 2)
            total["entropy"] += count * normalised_entropy(weights)
            even["entropy"] += count
            asked["entropy"] += count
    scores = {name: total[name] / asked[name] for name in total}
    return {
        "n sentences": len(sentences),
        "n pieces": asked["self"],
        "chance": {name: digits(even[name] / asked[name]) for name in total},
        "heads": {name: digits(values) for name, values in scores.items()},
        "kinds": dict(sorted(Counter(kind for kind in kinds(scores) if kind).items())),
    }


def kinds(scores):
    """Return what each head is called for what it does by position, or "" for no such thing."""
    names = [name for name in scores if name != "entropy"]
    masses = np.stack([scores[name] for name in names])  # (kinds, L * h)
    broad = np.where(np.asarray(scores["entropy"]) > BROAD_ENTROPY, "broad", "")
    return np.where(masses.max(axis=0) > NAMED_MASS, np.array(names)[masses.argmax(axis=0)], broad)


def _targets(n):
    """Return by name which pairs of n pieces count; queries are the n - 2 pieces of words."""
    words = np.zeros(n, bool)
    words[1:-1] = True
    pairs = {"previous": previous_token(n) & words, "next": previous_token(n).T & words,
             "self": np.eye(n, dtype=bool)}  # fmt: skip
    for name, place in (("[CLS]", 0), ("[SEP]", n - 1)):
        pairs[name] = np.tile(np.arange(n) == place, (n, 1))
    return {name: pair[1:-1] for name, pair in pairs.items()}


def swap_sentences(pairs, pronouns):
    """Yield (pair, words, query, right word, other word): each frame, order and pronoun."""
    for number, pair in enumerate(pairs):
        for frame in FRAMES:
            for order in (pair, pair[::-1]):
                for own, pronoun in zip(pair, pronouns, strict=True):
                    words = frame.format(*order, pronoun).split()
                    other = pair[1 - pair.index(own)]
                    yield (number, words, words.index(pronoun), words.index(own.split()[-1]),
                           words.index(other.split()[-1]))  # fmt: skip


def swap(encoder, pairs, pronouns, head, untrained=()):
    """Return how often a head looks at the one that the pronoun fits, for both pronouns."""
    right, more, number = _swapped(encoder, pairs, pronouns)
    both = right.all(axis=1)  # (N, L * h)
    best = int(both.mean(axis=0).argmax())
    per_pair = np.array([both[number == i, head].mean() for i in range(len(pairs))])
    drawn = np.random.default_rng(0).integers(0, len(pairs), (N_RESAMPLED, len(pairs)))
    return {
        "head": head_name(head),
        "n": len(both),
        "both right": digits(both[:, head].mean()),
        "interval": digits(np.percentile(per_pair[drawn].mean(axis=1), [2.5, 97.5])),
        "right": {p: digits(right[:, i, head].mean()) for i, p in enumerate(pronouns)},
        "more on the right one, both": digits(more.all(axis=1)[:, head].mean()),
        "best head": head_name(best),
        "both right, best head": digits(both[:, best].mean()),
        "untrained, best head": digits(
            [_swapped(other, pairs, pronouns)[0].all(axis=1).mean(axis=0).max()
             for other in untrained]
        ),
    }  # fmt: skip


def _swapped(encoder, pairs, pronouns):
    """Return whether heads are right, whether the right one gets more, and the number of the pair.

    Axes: sentence frame, pronoun, head.
    """
    rows = [*swap_sentences(pairs, pronouns)]
    right, more = {}, {}
    for i, attention in word_maps(encoder, [words for _, words, *_ in rows]):
        _, _, query, own, other = rows[i]
        right[i] = looked_at(attention)[:, query] == own
        more[i] = attention[:, query + 1, own + 1] > attention[:, query + 1, other + 1]
    shape = (-1, 2, len(right[0]))
    stacked = (np.array([found[i] for i in range(len(rows))]).reshape(shape)
               for found in (right, more))  # fmt: skip
    return *stacked, np.array([number for number, *_ in rows[::2]])


def stereotype(encoder, head):
    """Return how often she and he go to the profession that is more often said to be theirs.

    Nothing in the sentences says who is meant.
    """
    right, more, number = _swapped(encoder, PROFESSIONS, ("she", "he"))
    per_pair = np.array([more[number == i, :, head].mean() for i in range(len(PROFESSIONS))])
    drawn = np.random.default_rng(0).integers(0, len(per_pair), (N_RESAMPLED, len(per_pair)))
    return {
        "head": head_name(head),
        "n": len(right),
        "more on the stereotype": {
            pronoun: digits(more[:, i, head].mean()) for i, pronoun in enumerate(("she", "he"))
        },
        "of all": digits(per_pair.mean()),
        "interval": digits(np.percentile(per_pair[drawn].mean(axis=1), [2.5, 97.5])),
        "by pair": {
            " / ".join(word.split()[-1] for word in pair): digits(share)
            for pair, share in zip(PROFESSIONS, per_pair, strict=True)
        },
    }


def winograd(encoder, heads):
    """Return what "it" looks at in two sentences that differ in one word and in who is meant."""
    return [
        {
            "sentence": sentence,
            "right": right,
            "weights of it": {
                name: {
                    word: digits(attention[head_index(name), words.index("it") + 1,
                                           words.index(word) + 1])
                    for word in ("trophy", "suitcase")
                }
                for name in heads
            },
        }
        for sentence, right, words, attention in _with_attention(
            encoder, zip(WINOGRAD, ("trophy", "suitcase"), strict=True)
        )
    ]  # fmt: skip


def _with_attention(encoder, sentences):
    for sentence, right in sentences:
        words = sentence.split()
        ((_, attention),) = word_maps(encoder, [words])
        yield sentence, right, words, attention


def feature(encoder, heads):
    """Return, for the book's sentence and some heads, where each word looks and with what weight.

    "word" is what ``looked_at`` gives; the weights on [CLS], [SEP] and the word itself are said,
    too.
    """
    words = FEATURE.split()
    ((_, attention),) = word_maps(encoder, [words])
    seen = looked_at(attention)
    found = {}
    for name in heads:
        head = head_index(name)
        found[name] = [
            {
                "from": word,
                "to": words[seen[head, i]],
                "place": int(seen[head, i]),
                "weight": digits(attention[head, i + 1, seen[head, i] + 1]),
                "[CLS]": digits(attention[head, i + 1, 0]),
                "[SEP]": digits(attention[head, i + 1, -1]),
                "self": digits(attention[head, i + 1, i + 1]),
            }
            for i, word in enumerate(words)
        ]
    return {"words": words, "heads": found}
