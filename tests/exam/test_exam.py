"""The exam questions: their answers by other means, and their files as others read them."""

import re
import zipfile
from xml.etree import ElementTree

import pytest

from assignments.exam.__main__ import main
from assignments.exam.bank import BY_NAME, TEMPLATES, bank
from mha_lib.teaching import measure

QUESTIONS = bank(seed=7, n_each=3)
QTI = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"

# From the numbers in a question's text to its answer, worked out by hand.
BY_HAND = {
    "parameters": lambda d, h: 4 * d * d,
    "softmax entries": lambda h, n: h * n * n,
    "head width": lambda d, h: d / h,
    "full width heads": lambda h, *_: h,
    "matrix flops": lambda *_: 1,
    "score memory": lambda h, n, *_: round(h * n * n * 4 / 1024**2, 2),
    "cache": lambda h, kv: h / kv,
    "shared scores": lambda h, kv, n: h * n * n,
    "least errors": lambda n: round(1 - n**-0.5, 3),
    "best weight": lambda n: round(n**-0.5, 3),
    "one score": lambda n, ratio: round(ratio / (ratio + n - 1), 3),
    "spread of scores": lambda _, __, width: width**0.5,
    "allowed pairs": lambda n, past: sum(past + i for i in range(1, n + 1)),
}


def numbers(text):
    return [int(one) for one in re.findall(r"(?<![\d.^])\d+(?![\d.])", text)]


def test_there_are_many_and_no_two_alike():
    assert len(QUESTIONS) == 3 * len(TEMPLATES) >= 40
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS)


def test_another_seed_gives_other_numbers_and_the_same_seed_the_same():
    assert bank(seed=7, n_each=3) == QUESTIONS
    assert len({q.text for q in bank(seed=8)} & {q.text for q in QUESTIONS}) < 12


def test_more_than_there_are_is_refused():
    with pytest.raises(ValueError, match=r"has only \d+ different questions, not n_each=40: use"):
        bank(n_each=40)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_one_answer_is_right(question):
    assert sum(answer.is_right for answer in question.answers) == 1
    values = [answer.value for answer in question.answers]
    assert len(set(values)) == len(values) >= 2
    template = question.name.rpartition(" ")[0]
    if template in BY_HAND:
        found = numbers(
            question.text.replace("2^{20}", "").replace("float32 numbers of 4 bytes", "")
        )
        assert question.right == pytest.approx(BY_HAND[template](*found))
        wrong = [answer.value for answer in question.answers if not answer.is_right]
        assert all(abs(one - question.right) > 2 * question.tolerance for one in wrong)
    elif template == "hidden with one head":
        seen = {
            a.value: measure(BY_NAME[a.value], "one head", step="multi_head_attention").noticed
            for a in question.answers
        }
        assert [name for name, noticed in seen.items() if not noticed] == [question.right]


def test_moodle_reads_them(tmp_path):
    assert main([str(tmp_path), "7"]) == 0
    entries = ElementTree.parse(tmp_path / "moodle.xml").findall("question")  # noqa: S314 - ours
    assert entries[0].get("type") == "category"
    for entry, question in zip(entries[1:], QUESTIONS, strict=True):
        assert entry.findtext("name/text") == question.name
        assert "$" not in entry.findtext("questiontext/text")
        answers = entry.findall("answer")
        right = [a.findtext("text") for a in answers if a.get("fraction") == "100"]
        if question.tolerance is None:
            assert right == [question.right]
            assert entry.get("type") == "multichoice"
            assert entry.findtext("single") == "true"
        else:
            assert float(right[0]) == pytest.approx(question.right)
            assert entry.get("type") == "numerical"
            assert float(answers[0].findtext("tolerance")) == pytest.approx(question.tolerance)
        told = [a.findtext("feedback/text") or "" for a in answers]
        assert told == [answer.feedback for answer in question.answers]


def test_canvas_reads_them(tmp_path):
    assert main([str(tmp_path), "7"]) == 0
    with zipfile.ZipFile(tmp_path / "canvas.zip") as package:
        manifest = ElementTree.fromstring(package.read("imsmanifest.xml"))  # noqa: S314 - ours
        files = [one.get("href") for one in manifest.iter() if one.tag.endswith("}file")]
        (name,) = (one for one in files if "meta" not in one)
        items = ElementTree.fromstring(package.read(name)).iter(f"{QTI}item")  # noqa: S314 - ours
    for item, question in zip(items, QUESTIONS, strict=True):
        assert item.get("title") == question.name
        full = [
            condition for condition in item.iter(f"{QTI}respcondition")
            if condition.findtext(f"{QTI}setvar") == "100"
        ]  # fmt: skip
        assert len(full) == 1
        if question.tolerance is None:
            labels = {
                label.get("ident"): "".join(label.itertext()).strip()
                for label in item.iter(f"{QTI}response_label")
            }
            marked = full[0].find(f".//{QTI}varequal").text
            assert re.sub("<[^>]*>", "", labels[marked]) == question.right
            assert len(labels) == len(question.answers)
        else:
            low = float(full[0].find(f".//{QTI}vargte").text)
            high = float(full[0].find(f".//{QTI}varlte").text)
            assert low <= question.right <= high
            assert high - low <= 2.001 * max(question.tolerance, 1e-6)


def test_the_text_has_a_key(tmp_path):
    assert main([str(tmp_path), "7"]) == 0
    text = (tmp_path / "questions.txt").read_text("utf-8")
    assert all(question.text in text for question in QUESTIONS)
    assert len(re.findall(r"^\d+\. .* See chapter", text, re.MULTILINE)) == len(QUESTIONS)


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["a", "1", "2"]])
def test_unclear_arguments_are_explained(arguments, capsys):
    assert main(arguments) == 2
    assert "OUT [SEED]" in capsys.readouterr().out
