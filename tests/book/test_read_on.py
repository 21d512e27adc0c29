"""The places to read on, as links of a page."""

import re

import pytest
from bs4 import BeautifulSoup

from _ext.read_on import linked
from mha_lib.teaching import CATALOGUE, check_split_heads, effect_table

PAGES = {str(number): f"page{number}.html" for number in range(1, 7)}


def test_a_place_is_a_link_to_its_heading():
    said = "Read on in chapter 2, &#x27;Step 2: split&#x27;. More."
    link = '<a href="page2.html#step-2-split">chapter 2, &#x27;Step 2: split&#x27;</a>'
    assert linked(said, PAGES) == f"Read on in {link}. More."


def test_the_chapter_that_has_a_name_is_found():
    said = linked("<td>Watch out for, &#x27;Mistakes with masks&#x27;</td>", PAGES)
    assert 'href="page6.html#mistakes-with-masks"' in said


@pytest.mark.parametrize("said", ["chapter 2 says", "chapter 9, &#x27;Nothing&#x27;"])
def test_what_is_no_place_of_the_book_stays(said):
    assert linked(said, PAGES) == said


def test_every_entry_of_the_catalogue_is_linked_wherever_it_is_shown():
    steps = {entry.step for entry in CATALOGUE}
    html = linked(effect_table(*steps)._repr_html_(), PAGES)
    assert len(re.findall(r'<td><a href="page\d\.html#', html)) == len(CATALOGUE)


def test_a_link_to_the_notebook_becomes_one_to_the_page():
    said = check_split_heads(lambda x, h: x.reshape(h, len(x), -1))._repr_html_()
    assert '.ipynb#step-2-split">' in said
    soup = BeautifulSoup(linked(said, PAGES), "html.parser")
    assert [link["href"] for link in soup.find_all("a")] == ["page2.html#step-2-split"]
    assert linked(said, PAGES).count("</a>") == 1
    assert linked(said, {}) == said
