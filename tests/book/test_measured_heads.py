"""What the book shows of the trained encoder; `tests/measured` computes it again."""

import copy
import gzip

import numpy as np
import pytest

pytest.importorskip("conllu")  # of mha_lib[model]

import bench.heads.__main__ as measuring
from bench.heads import gallery, probes, removal
from bench.heads.relations import OFFSETS, head_index, head_name, hits, row
from bench.heads.sentences import ANTECEDENT, RELATIONS, read_sentences, sha256
from mha_lib.learning.encoder import Encoder
from mha_lib.learning.pruning import greedy_order
from mha_lib.learning.relations import wilson_interval
from mha_lib.widgets import HeadGallery

FILES = (measuring.HEADS, measuring.GALLERY, measuring.FEATURE)

# Sentences in CoNLL-U -----------------------------------------------------------------------------

CONTRACTION = """\
# sent_id = 1
# text = Ann didn't see the tall man.
1\tAnn\tAnn\tPROPN\t_\t_\t4\tnsubj\t_\t_
2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdid\tdo\tAUX\t_\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\t_\t_\t4\tadvmod\t_\t_
4\tsee\tsee\tVERB\t_\t_\t0\troot\t_\t_
4.1\tsaw\tsee\tVERB\t_\t_\t_\t_\t0:root\t_
5\tthe\tthe\tDET\t_\t_\t7\tdet\t_\t_
6\ttall\ttall\tADJ\t_\t_\t7\tamod\t_\t_
7\tman\tman\tNOUN\t_\t_\t4\tobj\t_\tSpaceAfter=No
8\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_

"""
# The old man and Ann said he and she saw them.
MENTIONS = """\
1\tThe\tthe\tDET\t_\t_\t3\tdet\t_\tEntity=(7-group-new(1-person-new
2\told\told\tADJ\t_\t_\t3\tamod\t_\t_
3\tman\tman\tNOUN\t_\t_\t6\tnsubj\t_\tEntity=1)
4\tand\tand\tCCONJ\t_\t_\t5\tcc\t_\t_
5\tAnn\tAnn\tPROPN\t_\t_\t3\tconj\t_\tEntity=(2-person-new)7)
6\tsaid\tsay\tVERB\t_\t_\t0\troot\t_\t_
7\the\the\tPRON\t_\t_\t10\tnsubj\t_\tEntity=(1-person-giv)
8\tand\tand\tCCONJ\t_\t_\t9\tcc\t_\t_
9\tshe\tshe\tPRON\t_\t_\t7\tconj\t_\tEntity=(2-person-giv)
10\tsaw\tsee\tVERB\t_\t_\t6\tccomp\t_\t_
11\tthem\tthey\tPRON\t_\t_\t10\tobj\t_\tEntity=(9-person-new)

"""


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a text in CoNLL-U."""

    def do(text, name="some.conllu"):
        path = tmp_path / name
        content = text.encode("utf-8")
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return read_sentences(path)

    return do


@pytest.mark.parametrize("name", ["some.conllu", "some.conllu.gz"])
def test_contractions_give_their_parts_and_empty_nodes_nothing(read, name):
    (sentence,) = read(CONTRACTION, name)
    assert sentence.words == "Ann did n't see the tall man .".split()
    assert {relation: pairs for relation, pairs in sentence.pairs.items() if pairs} == {
        "subject → verb": [(0, {3})],
        "verb → subject": [(3, {0})],
        "auxiliary → verb": [(1, {3})],
        "determiner → noun": [(4, {6})],
        "adjective → noun": [(5, {6})],
        "object → verb": [(6, {3})],
    }


def test_antecedents_are_the_heads_of_earlier_mentions(read):
    (sentence,) = read(MENTIONS)
    # "them" was not named before; the group of both is not "he".
    assert sentence.pairs[ANTECEDENT] == [(6, {2}), (8, {4})]


def test_an_antecedent_may_be_said_in_misc_and_stand_later(read):
    text = MENTIONS.replace("Entity=(9-person-new)", "Antecedent=1|Entity=(9-person-new)")
    assert read(text)[0].pairs[ANTECEDENT][-1] == (10, {0})


def test_short_and_long_sentences_are_left_out(read):
    short = "".join(f"{i}\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_\n" for i in range(1, 5)) + "\n"
    long = "".join(f"{i}\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_\n" for i in range(1, 42)) + "\n"
    assert len(read(short + CONTRACTION + long)) == 1
    with pytest.raises(ValueError, match=r"has no sentence of 5 to 40 words"):
        read(short)


@pytest.mark.parametrize(
    ("text", "name"),
    [("just some words\nand more of them\n\n", "a.conllu"), ("1\tAnn\n\n", "a.conllu"),
     ("a,b,c,d,e,f,g,h,i,j\n1,2,3,4,5,6,7,8,9,0\n\n", "a.csv")],
)  # fmt: skip
def test_a_file_of_another_kind_is_refused_by_name(read, text, name):
    with pytest.raises(ValueError, match=r"a\.(conllu|csv) (is not in CoNLL-U|has no sentence)"):
        read(text, name)


def test_a_compressed_file_that_is_cut_short_is_refused(tmp_path):
    path = tmp_path / "some.conllu.gz"
    path.write_bytes(gzip.compress(CONTRACTION.encode("utf-8"))[:-9])
    with pytest.raises(ValueError, match="cut short"):
        read_sentences(path)


def test_our_own_sentences_say_what_they_are_meant_to():
    sentences = read_sentences(measuring.SENTENCES)
    counts = {
        name: sum(len(sentence.pairs[name]) for sentence in sentences)
        for name in (ANTECEDENT, *RELATIONS)
    }
    assert len(sentences) == 90
    assert counts == {
        "pronoun → antecedent": 61, "object → verb": 103, "subject → verb": 125,
        "verb → subject": 125, "determiner → noun": 178, "adjective → noun": 120,
        "preposition → noun": 36, "auxiliary → verb": 14,
    }  # fmt: skip
    texts = [
        line.removeprefix("# text = ")
        for line in measuring.SENTENCES.read_text(encoding="utf-8").splitlines()
        if line.startswith("# text = ")
    ]
    assert texts == [" ".join(sentence.words) for sentence in sentences]
    assert set(gallery.SENTENCES) & set(texts)
    for sentence in sentences:
        for _, right in sentence.pairs[ANTECEDENT]:
            assert {sentence.tags[word] for word in right} <= {"NOUN", "PROPN", "PRON"}


# Measuring ----------------------------------------------------------------------------------------


class Even:
    """An encoder of two heads that look at everything alike, or at the piece before."""

    n_layers, n_heads = 1, 2

    def tokens(self, sentence):
        words = sentence if isinstance(sentence, list) else sentence.split()
        n = len(words)
        pieces = type("Pieces", (), {})()
        pieces.ids = np.arange(n + 2)
        pieces.word_of = np.array([-1, *range(n), -1])
        return pieces

    def forward(self, ids):
        n = ids.shape[-1]
        before = np.eye(n, k=-1)
        before[0, 0] = 1
        return None, np.broadcast_to(
            np.stack([np.full((n, n), 1 / n), before]), (len(ids), 1, 2, n, n)
        )


def test_a_head_that_looks_one_back_is_right_where_the_offset_is(read):
    found = hits(Even(), read(CONTRACTION + MENTIONS))
    back = OFFSETS.index(-1)
    for name, of in found.items():
        # The first word looks at [CLS], and then, all else alike, at the first of the others.
        first = np.array([word in ("the", "ann") for word in of.query])
        assert (of.heads[~first, 1] == of.offsets[~first, back]).all(), name
    assert found["adjective → noun"].offsets[:, OFFSETS.index(1)].all()
    assert not found["adjective → noun"].far.any()
    assert found["determiner → noun"].far.tolist() == [True, True]
    assert found["object → verb"].rule.tolist() == [True, True]
    # The noun before "he" is "Ann".
    assert dict(zip(found[ANTECEDENT].query, found[ANTECEDENT].rule, strict=True)) == {
        "he": False, "she": True,
    }  # fmt: skip


def test_heads_are_chosen_on_one_part_and_reported_on_the_other(read):
    found = hits(Even(), read(CONTRACTION + MENTIONS))["auxiliary → verb"]
    chosen, reported = copy.deepcopy(found), copy.deepcopy(found)
    chosen.heads[:], reported.heads[:] = [[False, True]], [[True, False]]
    line = row("auxiliary → verb", chosen, reported, [(reported, chosen)])
    assert line["head"] == "1-2"
    assert (line["accuracy choosing"], line["accuracy"], line["untrained"]) == (1.0, 0.0, [0.0])
    assert line["by head"] == [1.0, 0.0]


def test_by_position_an_even_head_has_what_chance_says(read):
    found = probes.positions(Even(), read(CONTRACTION + MENTIONS))
    assert found["n pieces"] == 8 + 11
    for name, values in found["heads"].items():
        assert values[0] == pytest.approx(found["chance"][name], abs=2e-3), name
    assert found["heads"]["previous"][1] == 1  # without the first words, which look at [CLS]
    assert found["heads"]["[CLS]"][1] == pytest.approx(2 / 19, abs=1e-3)
    assert found["kinds"] == {"broad": 1, "previous": 1}


@pytest.mark.parametrize("name", probes.SWAPS)
def test_swapped_sentences_differ_in_the_pronoun_alone(name):
    pairs, pronouns = probes.SWAPS[name]
    rows = [*probes.swap_sentences(pairs, pronouns)]
    assert len(rows) == 10 * 6 * 2 * 2
    for one, other in zip(rows[0::2], rows[1::2], strict=True):
        differ = [
            i for i, pair in enumerate(zip(one[1], other[1], strict=True)) if len({*pair}) > 1
        ]
        assert differ == [one[2]] == [other[2]]
        assert (one[1][one[2]], other[1][other[2]]) == pronouns
        assert (one[3], one[4]) == (other[4], other[3])


def test_reciprocal_ranks_by_hand():
    """Two triplets; the second paraphrase is nearer to the first sentence than its own."""
    embeddings = np.array([[1, 0], [0.6, 0.8], [0, 1], [0, -1], [0.8, -0.6], [0.7, 0.1]], float)
    # Of sentence 1: paraphrases .6, .8, decoys 0, .7; of 2: -.8, .6, -1, -.1.
    # Of paraphrase 1: sentences .6, -.8, decoys .8, .5; of 2: .8, .6, -.6, .5.
    assert removal.reciprocal_ranks(embeddings).tolist() == [1 / 3, 1, 1 / 2, 1 / 2]


def test_what_is_found_by_hand():
    """The same two, but for a decoy that is nearer to sentence 2 than its paraphrase is."""
    embeddings = np.array([[1, 0], [0.6, 0.8], [0, 1], [0, -1], [0.8, -0.6], [0.7, -0.7]], float)
    assert removal.what_is_found(embeddings) == {
        "reciprocal rank without decoys": 0.75,  # 1/2, 1, 1, 1/2
        "paraphrase nearer than its decoy": 0.5,
    }


def test_the_quick_greedy_order_is_the_plain_one_if_it_tries_all_heads(monkeypatch):
    pytest.importorskip("tokenizers")
    words = "[UNK] [CLS] [SEP] the cat dog sat ran on".split()
    encoder = Encoder.untrained(
        words, n_layers=3, n_heads=2, d=14, d_hidden=11, n_max=9, seed=1, dtype=np.float64
    )
    corpus = removal.Corpus(encoder, ["the cat sat", "the dog ran on", "on the cat", "dog"])
    score = removal.closeness(corpus)
    monkeypatch.setattr(removal, "CANDIDATES", 99)
    expected = greedy_order(lambda gates: (-score(corpus.embeddings(gates)), None), (3, 2))
    assert removal.greedy_order(corpus, score) == [tuple(head) for head in expected.tolist()]


def test_names_and_places_of_heads_are_each_others_inverse():
    assert [head_index(head_name(i)) for i in range(72)] == [*range(72)]
    assert head_name(15) == "2-4"


@pytest.mark.parametrize("arguments", [["nowhere.conllu"], ["pyproject.toml"]])
def test_a_treebank_that_cannot_be_read_is_said(arguments, capsys, monkeypatch):
    monkeypatch.setattr(measuring, "encoders", lambda: (None, []))
    assert measuring.main(arguments) == 1
    assert arguments[0] in capsys.readouterr().err


# What the files hold ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def heads():
    return measuring.read(measuring.HEADS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_number_was_changed_by_hand(path):
    """Where there are no weights this is all that can be seen; treebanks are never at hand."""
    content = measuring.read(path)
    assert content["digest"] == measuring.digest(content)


def test_the_sentences_are_those_that_were_measured(heads):
    assert heads["provenance"]["sentences"] == {
        path.name: sha256(path) for path in (measuring.SENTENCES, measuring.TRIPLETS)
    }


def test_of_treebanks_there_are_only_figures(heads):
    words = {
        *RELATIONS, ANTECEDENT, *(relation.rule for relation in RELATIONS.values()),
        "nearest noun before", *map(head_name, range(72)),
    }  # fmt: skip

    def strings(part, path=()):
        if isinstance(part, str):
            yield path, part
        elif isinstance(part, dict | list):
            for name in part if isinstance(part, dict) else range(len(part)):
                yield from strings(part[name], (*path, name))

    natural = heads["relations"]["natural"]
    assert {one["name"] for one in natural} == {"UD English-EWT", "UD English-GUM"}
    for path, text in strings(natural):
        assert text in words or path[-1] in ("name", "sentences of") or path[1] == "sha256", path


def test_the_gallery_is_small_and_its_names_are_measured(heads):
    whole, first = measuring.read(measuring.GALLERY), measuring.read(measuring.FEATURE)
    assert len(whole["sentences"]) <= 20
    assert len(gzip.compress(measuring.GALLERY.read_bytes())) <= 250_000
    assert len(measuring.FEATURE.read_bytes()) <= 60_000
    assert first["sentences"] == whole["sentences"][:1]
    assert first["heads"] == whole["heads"] == gallery.named_heads(heads)
    assert " ".join(first["sentences"][0]["words"]) == probes.FEATURE
    for head in whole["heads"]:
        for measure in head["measures"]:
            assert {"even"} <= {*measure} or {"offset", "rule", "untrained"} <= {*measure}


def test_what_follows_from_other_numbers_does(heads):
    """That is all of the table but the shares themselves, and the ends of the random curves."""
    random = heads["removal"]["random"]
    for name, of in (("mean", np.mean), ("least", np.min), ("greatest", np.max)):
        np.testing.assert_allclose(random[name], of(random["curves"], axis=0), atol=5.1e-4)
    curve = np.array(heads["removal"]["greedy"]["curve"])
    losses = 1 - curve / curve[0]
    for limit, n in heads["removal"]["greedy"]["removed below a loss of"].items():
        limit = float(limit.rstrip("%")) / 100
        assert (losses[: n + 1] < limit + 1e-3).all()
        assert losses[n + 1] > limit - 1e-3
    for name in ("greedy", "overtuned"):
        assert sorted(map(head_index, heads["removal"][name]["order"])) == [*range(72)]
    for table in (heads["relations"]["made up"], *heads["relations"]["natural"]):
        for line in table["rows"]:
            n, k = line["n"], round(line["accuracy"] * line["n"])
            right = [
                k + i for i in range(-2, 3) if measuring.digits((k + i) / n) == line["accuracy"]
            ]
            assert line["interval"] in [measuring.digits(wilson_interval(k, n)) for k in right]
            best = max(line["first three"].values())
            assert line["accuracy choosing"] == best == line["first three"][line["head"]]


def by_relation(table):
    return {line["relation"]: line for line in table}


def test_what_chapter_5_says_of_relations_in_words(heads):
    """The figures are compared where the page prints them."""
    own = by_relation(heads["relations"]["made up"]["rows"])
    ewt, gum = (by_relation(one["rows"]) for one in heads["relations"]["natural"])
    carried = heads["relations"]["natural"][0]["heads of made-up text"]
    for line in (*own.values(), *ewt.values(), *gum.values()):
        assert line["interval"][0] > np.mean(line["untrained"]), "far above untrained heads"
    assert [own[name]["n"] for name in ("preposition → noun", "auxiliary → verb")] == [15, 7]
    assert own["adjective → noun"]["head"] == carried["adjective → noun"]["head"] == "4-2"
    lost = 1 - carried["adjective → noun"]["accuracy"] / own["adjective → noun"]["accuracy"]
    assert 0.28 < lost < 0.38, "about a third of its hits"
    for name in ("adjective → noun", "subject → verb"):
        assert carried[name]["interval"][1] < ewt[name]["offset accuracy"]
    for table in (ewt, gum):
        won = [line for line in table.values() if line["head"] == "3-9"]
        assert len(won) == 4
        assert all(line["far"]["offset"] == 2 for line in won), "two words on"
        assert all(line["far"]["accuracy"] < line["far"]["offset accuracy"] for line in won)
        assert table["object → verb"]["head"] == "3-1"
        assert table["object → verb"]["holds"]
        assert table["object → verb"]["interval"][1] < table["object → verb"]["rule accuracy"]
    assert carried["preposition → noun"]["head"] == "2-8"
    assert carried["preposition → noun"]["holds"]
    pronouns = heads["relations"]["natural"][1]["pronouns"]["reporting"]
    low, high = pronouns["it"]["heads"]["2-4"]["interval"]
    assert low < pronouns["it"]["rule accuracy"] < high, "no better than the nearest noun"
    for kind in ("he / she", "they"):
        assert pronouns[kind]["heads"]["2-4"]["interval"][0] > pronouns[kind]["rule accuracy"]


def test_what_chapter_5_says_of_removal_in_words(heads):
    found = heads["removal"]
    tuned = found["overtuned"]
    greedy = np.array(found["greedy"]["curve"])[tuned["removed"]]
    assert np.abs(greedy - tuned["curve"]).max() < 0.035, "falls about as the greedy order does"
    known = tuned["curve on what it was tuned on"]
    assert known[:-1] == [known[0]] * (len(known) - 1), "loses nothing on these ten"
    assert abs(found["one head a layer"]["loss"] - found["loss without any"]["loss"]) < 0.01
    nearer = [one["paraphrase nearer than its decoy"] for one in found["found"].values()]
    assert [round(one * found["n triplets"]) for one in nearer] == [13, 4]
    assert found["greedy"]["removed below a loss of"]["3%"] == 31, "the quick version"
    assert round(found["loss without any"]["loss"], 2) == 0.14, "the quick version"


def test_what_chapter_5_says_of_he_for_she(heads):
    """In head 2-4, the line to "queen" becomes thinner and stays the thickest."""
    she, he = (HeadGallery(measuring.GALLERY, sentence=i, word=6).weights()[7] for i in (0, 1))
    queen, general = 5, 2
    assert [round(float(row[i]), 2) for i in (queen, general) for row in (she, he)] == [
        0.61, 0.23, 0.02, 0.13,
    ]  # fmt: skip
    assert he[1:-1].argmax() + 1 == queen
