"""What the gallery of heads shows: attention between words; what a head is called, and why."""

import base64

import numpy as np

from bench.heads.probes import FEATURE, WINOGRAD, kinds
from bench.heads.relations import head_name, word_maps

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
    own = heads["positions"]["made up"]
    scores = {name: np.array(values) for name, values in own["heads"].items()}
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
                    "n": own["n pieces"],
                    "even": own["chance"]["entropy" if entropy else str(kind)],
                }
            )
    tables = [(one["name"], one["rows"]) for one in heads["relations"]["natural"]]
    for text, rows in (*tables, ("our sentences", heads["relations"]["made up"]["rows"])):
        for row in rows:
            if row["relation"] in left_out(text, tables):
                continue
            layer, head = map(int, row["head"].split("-"))
            measures[12 * (layer - 1) + head - 1].append(
                {
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
            )
    return [{"head": head_name(i), "measures": measures[i]} for i in range(72)]


def left_out(text, tables):
    """Return the relations for which another treebank has more pairs."""
    largest = {}
    for name, rows in tables:
        for row in rows:
            if row["n"] > largest.get(row["relation"], ("", 0))[1]:
                largest[row["relation"]] = name, row["n"]
    treebanks = {name for name, _ in tables}
    return {relation for relation, (name, _) in largest.items() if text in treebanks - {name}}


def gallery(encoder, heads, sentences=SENTENCES):
    """Return what the widget needs, for these sentences."""
    return {
        "provenance": heads["provenance"],
        "full": FULL,
        "heads": named_heads(heads),
        "sentences": attention_of(encoder, sentences),
    }
