"""What the gallery of heads shows: attention between words; what a head is called, and why."""

import base64

import numpy as np

from bench.heads.probes import FEATURE, WINOGRAD, kinds
from bench.heads.relations import head_index, head_name, word_maps
from bench.heads.sentences import ANTECEDENT

FULL = 255  # the number that stands for a weight of 1
SENTENCES = (
    FEATURE,
    "the general visited the queen when he opened the new hospital .",
    "the general visited the queen when they opened the new hospital .",
    *WINOGRAD,
    "the nurse told the engineer that she could stay .",
    "the nurse told the engineer that he could stay .",
    "the athlete hurt her knee , so the coach replaced her .",
    "when she finished the long letter , sarah closed the window .",
    "the goats eat the dry grass because they are hungry .",
    "a long , dull and expensive meeting delayed the new project .",
    "the accordionist played a strange slow waltz .",
    "the price of fresh vegetables rose sharply last summer .",
    "the keys to the wooden cabinet lie on the kitchen table .",
    "the actor whom the critics admired most refused the famous prize .",
    "which book did the professor recommend ?",
    "the police have not yet found the stolen paintings .",
    "the thief , who wore a long grey coat , escaped through a tiny window .",
)
BY_POSITION = {
    "previous": "the word before",
    "next": "the word after",
    "self": "the word itself",
    "[CLS]": "[CLS], the mark at the beginning",
    "[SEP]": "[SEP], the mark at the end",
    "broad": "many words alike",
}


def attention_of(encoder, sentences):
    """Return words and attention, as text, of each sentence: 72 maps of W + 2 rows and columns."""
    words = [sentence.split() for sentence in sentences]
    maps = dict(word_maps(encoder, words))
    return [
        {
            "words": one,
            "attention": base64.b64encode(
                np.rint(maps[i] * FULL).astype(np.uint8).tobytes()
            ).decode("ascii"),
        }
        for i, one in enumerate(words)
    ]


def named_heads(heads):
    """Return for each of the 72 heads what it is called, and the measurements that say so.

    A head that puts more than half of its attention on one place is called after that; one that
    was chosen for a relation, on natural text or on ours, after the relation; one that looks at
    many words alike is broad.  The others have no name.
    """
    places = heads["positions"]["made up"]
    scores = {name: np.array(values) for name, values in places["heads"].items()}
    measures = [[] for _ in range(72)]
    for head, kind in enumerate(kinds(scores)):
        if kind:
            entropy = kind == "broad"
            measures[head].append(
                {
                    "name": BY_POSITION[str(kind)],
                    "measure": "entropy, of the largest that there is"
                    if entropy
                    else "share of attention",
                    "text": "our sentences",
                    "value": float(scores["entropy" if entropy else str(kind)][head]),
                    "n": places["n pieces"],
                    "even": places["chance"]["entropy" if entropy else str(kind)],
                }
            )
    natural = heads["relations"]["natural"]
    for one in natural:
        for row in one["rows"]:
            if one is _largest(natural, row["relation"]):
                kinds_of = one.get("pronouns", {}).get("reporting", {})
                measures[head_index(row["head"])].append(_measure(row, one["name"], kinds_of))
    made_up = heads["relations"]["made up"]
    for row in made_up["rows"]:
        own = measures[head_index(row["head"])]
        own.append(_measure(row, "our sentences", made_up["pronouns"]))
        # A head that our sentences have named also says what it does on natural text.
        if largest := _largest(natural, row["relation"]):
            rows = {other["relation"]: other for other in largest["rows"]}
            other = rows[row["relation"]]
            if other["head"] != row["head"]:
                carried = largest["heads of made-up text"][row["relation"]]
                kinds_of = largest.get("pronouns", {}).get("reporting", {})
                own.append(_measure({**other, **carried}, largest["name"], kinds_of))
    return [{"head": head_name(i), "measures": measures[i]} for i in range(72)]


def _largest(natural, relation):
    """Return the treebank that has most pairs of a relation, or None."""
    pairs = {row["n"]: one for one in natural for row in one["rows"] if row["relation"] == relation}
    return pairs[max(pairs)] if pairs else None


def _measure(row, text, by_pronoun):
    """Return a row of a table as a measure; that of pronouns also by their kind."""
    measure = {
        "name": row["relation"],
        "measure": "share that is right",
        "text": text,
        "value": row["accuracy"],
        "interval": row["interval"],
        "n": row["n"],
        "offset": row["offset accuracy"],
        "rule": row["rule accuracy"],
        "untrained": round(float(np.mean(row["untrained"])), 3),
    }
    if row["relation"] == ANTECEDENT:
        measure["kinds"] = {
            kind: {"n": found["n"], **found["heads"][row["head"]]}
            for kind, found in by_pronoun.items()
            if row["head"] in found["heads"]
        }
    return measure


def gallery(encoder, heads, sentences=SENTENCES):
    """Return what the widget needs, for these sentences."""
    return {
        "provenance": heads["provenance"],
        "full": FULL,
        "heads": named_heads(heads),
        "sentences": attention_of(encoder, sentences),
    }
