"""What a release has: the chapter on paper, and the site that opens from its files."""

import ctypes
import re
import zipfile
from itertools import pairwise

import pypdfium2
import pypdfium2.raw as pdfium
import pytest
import yaml
from bs4 import BeautifulSoup

from release import pdf
from release.__main__ import NAME, write_wheel, write_zip
from tests.browser.conftest import SITE
from tests.browser.moves import slider
from tests.notebooks import ROOT

# The chapter is printed once, for all of them.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("release")]
PAGES = pdf.pages_of(yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8")))


def joined(words):
    """Return words without blanks: where paper breaks a line is nobody's concern."""
    return re.sub(r"[\s\u00ad\u2010-\u2015\ufffe-]+", "", words)


@pytest.fixture(scope="module")
def paper(tmp_path_factory, browser):
    """Print the chapter; return the document, and the words of each sheet."""
    path = tmp_path_factory.mktemp("release") / "chapter.pdf"
    address = "https://a.example/book/"
    if not (SITE / "index.html").exists():
        pytest.fail(f"{SITE} is not there: run `make book` first")
    pdf.write(SITE, pdf.contents_of(ROOT), path, address, chromium=browser)
    assert [each.name for each in path.parent.iterdir()] == ["chapter.pdf"]
    document = pypdfium2.PdfDocument(path)
    yield document, [sheet.get_textpage().get_text_range() for sheet in document]
    document.close()


@pytest.fixture(scope="module")
def articles():
    """Return the text of the pages that are printed, parsed, in order."""
    found = []
    for page in PAGES:
        html = (SITE / f"{page}.html").read_text("utf-8")
        found.append(BeautifulSoup(html, "html.parser").article)
        for unread in found[-1].select(".headerlink, .definitions"):
            unread.decompose()
    return found


def headings(articles, names):
    for article in articles:
        yield from article.select(names)


def test_every_sheet_has_its_number_at_the_foot(paper):
    document, words = paper
    assert len(document) > 40
    for number, (sheet, text) in enumerate(zip(document, words, strict=True), 1):
        foot = sheet.get_textpage().get_text_bounded(bottom=0, top=45)
        assert foot.strip() == str(number), text[:80]


def test_every_paragraph_is_printed_solutions_included(paper, articles):
    _, words = paper
    printed = joined("".join(re.sub(r"\s\d+\s*$", "", text) for text in words))
    missing, found = [], 0
    for article in articles:
        for paragraph in article.select("p"):
            if paragraph.find_parent(["noscript", "svg", "summary"]) or paragraph.select(
                "math, svg"
            ):
                continue
            if text := joined(paragraph.get_text()):
                found += 1
                missing += [] if text in printed else [paragraph.get_text()]
    assert found > 400
    assert missing == []


def test_bookmarks_are_the_headings_in_order(paper, articles):
    document, _ = paper
    marks = [(mark.level, joined(mark.get_title())) for mark in document.get_toc()]
    assert marks == [
        (int(heading.name[1]) - 1, joined(heading.get_text()))
        for heading in headings(articles, "h1, h2, h3")
    ]


def test_each_page_begins_on_a_sheet_of_its_own(paper, articles):
    document, words = paper
    starts = [mark.get_dest().get_index() for mark in document.get_toc() if mark.level == 0]
    assert len(starts) == len(PAGES)
    assert starts == sorted(set(starts))
    for start, heading in zip(starts, headings(articles, "h1"), strict=True):
        assert joined(heading.get_text()) in joined(words[start])


def links(document):
    """Yield the sheet of each link, and where it leads: a sheet, or an address elsewhere."""
    for number, sheet in enumerate(document):
        at, link = ctypes.c_int(0), pdfium.FPDF_LINK()
        while pdfium.FPDFLink_Enumerate(sheet, at, link):
            if target := pdfium.FPDFLink_GetDest(document, link):
                yield number, pdfium.FPDFDest_GetDestPageIndex(document, target)
                continue
            action = pdfium.FPDFLink_GetAction(link)
            size = pdfium.FPDFAction_GetURIPath(document, action, None, 0)
            buffer = ctypes.create_string_buffer(size)
            pdfium.FPDFAction_GetURIPath(document, action, buffer, size)
            yield number, buffer.value.decode()


def test_links_lead_to_another_place_on_paper_or_to_an_address(paper, articles):
    document, _ = paper
    found = list(links(document))
    inside = [(here, there) for here, there in found if isinstance(there, int)]
    outside = {there for _, there in found if isinstance(there, str)}
    assert all(0 <= there < len(document) for _, there in inside)
    assert all(re.match("https?://", there) for there in outside), outside
    assert any(there.startswith("https://a.example/book/chapters/") for there in outside)
    # The way through, on the first page, leads to where each chapter begins.
    starts = [mark.get_dest().get_index() for mark in document.get_toc() if mark.level == 0]
    assert set(starts[1:8]) <= {there for here, there in inside if here < starts[1]}
    assert len(inside) > 150


def test_widgets_and_figures_are_pictures(paper, articles):
    document, words = paper
    printed = joined(" ".join(words))
    captions = [
        joined(caption.get_text().replace("Turn on JavaScript to change the settings.", ""))
        for article in articles
        for caption in article.select("noscript figcaption")
    ]
    assert len(captions) >= 8
    assert [caption for caption in captions if caption not in printed] == []
    assert "TurnonJavaScript" not in printed
    starts = [mark.get_dest().get_index() for mark in document.get_toc() if mark.level == 0]
    drawn = [
        sum(
            1
            for sheet in range(begin, end)
            for _ in document[sheet].get_objects(filter=[pdfium.FPDF_PAGEOBJ_PATH])
        )
        for begin, end in pairwise(starts[:8])
    ]
    assert min(drawn) > 100  # each of the first page and the chapters has drawings


def test_nothing_runs_off_the_paper(paper):
    document, _ = paper
    for sheet in document:
        text, width = sheet.get_textpage(), sheet.get_width()
        edges = [text.get_rect(i) for i in range(text.count_rects())]
        assert all(left >= 0 and right <= width for left, _, right, _ in edges)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Return the folder of the site, taken out of its zip."""
    folder = tmp_path_factory.mktemp("zip")
    for name in ("once.zip", "again.zip"):
        write_zip(SITE, folder / name)
    assert (folder / "once.zip").read_bytes() == (folder / "again.zip").read_bytes()
    with zipfile.ZipFile(folder / "once.zip") as archive:
        archive.extractall(folder)
    return folder / NAME


def test_the_zip_opens_from_its_files_without_a_network(visit, unpacked):
    window = visit()
    page = window.page
    page.goto((unpacked / "index.html").as_uri())
    page.wait_for_url("**/chapters/index.html")
    page.get_by_role("link", name="Split, attend, concatenate, project").first.click()
    page.locator(".mha-widget").first.wait_for()
    before = page.locator(".mha-result").first.inner_text()
    control = slider(page.locator(".mha-widget").first, "heads h")
    control.press("End")
    assert page.locator(".mha-result").first.inner_text() != before
    window.open(f"{(unpacked / 'search.html').as_uri()}?q=eigenvectors")
    page.locator("ul.search p.context").first.wait_for()
    assert window.foreign == []
    assert window.complaints == []


def test_the_wheel_has_the_library_and_what_it_needs(tmp_path):
    write_wheel(tmp_path)
    (path,) = tmp_path.glob("mha_lib-*.whl")
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if name.startswith("mha_lib/")}
    tracked = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "mha_lib").rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }
    assert names == tracked
