"""The chapter as a PDF: its pages in one document, printed by Chromium.

All pages become one page of HTML, so that links between them lead from one place of the PDF to
another, and its bookmarks are the headings.  What unfolds is open, but for the code that draws; a
widget is the picture that readers without JavaScript see.
"""

import re
import shutil
from html import escape

import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import sync_playwright
from pypdf import PdfWriter
from pypdf.generic import NameObject, TextStringObject

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
# Pages of the first part and these; the classroom and the reference stay on the site.
MORE = ("chapters/notation", "chapters/bibliography")
FOOT = (
    '<div style="width: 100%; font: 9px sans-serif; text-align: center">'
    '<span class="pageNumber"></span></div>'
)
STYLE = """
.bd-main, .bd-main .bd-content { display: block; }
.on-paper + .on-paper { break-before: page; }
.bd-main .on-paper h1 { display: block !important; }
.bd-main .on-paper .bd-article { max-width: none; padding: 0; }
.on-paper h1, .on-paper h2, .on-paper h3 { break-after: avoid; }
.on-paper svg, .on-paper img { max-width: 100%; }
"""
ON_THE_SITE = "On the site its settings can be changed."


def pages_of(contents):
    """Return the names of the pages that a PDF has, in order.

    Parameters
    ----------
    contents : dict
        As ``_toc.yml`` has them.
    """
    chapters = [entry["file"] for entry in contents["parts"][0]["chapters"]]
    return [contents["root"], *chapters, *MORE]


def _place(page, fragment=""):
    return f"{page.rpartition('/')[2]}--{fragment}"


def _prefixed(html, page):
    """Return a page's HTML with all its names made unique in a document of many."""
    html = re.sub(r'(?<=\s)(id|for)="', rf'\1="{_place(page)}', html)
    html = re.sub(r'(href="#|url\(#)', rf"\g<1>{_place(page)}", html)
    return re.sub(
        r'(aria-(?:labelledby|describedby|controls)=")([^"]*)',
        lambda names: names[1] + " ".join(_place(page, name) for name in names[2].split()),
        html,
    )


def _article(site, page, pages, address):
    """Return the text of a page, ready to be printed among others."""
    html = (site / f"{page}.html").read_text("utf-8")
    text = BeautifulSoup(html, "html.parser").select_one("article.bd-article")
    for place in text.select(".static-widget"):
        picture = place.find_next_sibling("noscript")
        place.decompose()
        picture.name = "div"
        for caption in picture.find_all("figcaption"):
            words = caption.get_text().replace(
                "Turn on JavaScript to change the settings.", ON_THE_SITE
            )
            caption.string = words
    for unread in text.select("script, noscript, button, .headerlink, .definitions"):
        unread.decompose()
    for folded in text.select("details:not(.above-input)"):
        folded["open"] = ""
    folder = page.rpartition("/")[0]
    for link in text.select("a[href]"):
        to, _, fragment = link["href"].partition("#")
        if not to or re.match("[a-z]+:", to):
            continue
        target = f"{folder}/{to}".removesuffix(".html")
        if target in pages:
            known = fragment and "=" not in fragment  # a widget's setting is no place on paper
            link["href"] = "#" + _place(target, fragment if known else "top")
        elif address:
            link["href"] = f"{address}{folder}/{link['href']}"
        else:
            link.unwrap()
    own = _prefixed(str(text), page)
    # What leads to other pages has their names already.
    for other in pages:
        own = own.replace(f'href="#{_place(page)}{_place(other)}', f'href="#{_place(other)}')
    return f'<div class="on-paper" id="{_place(page, "top")}">{own}</div>'


def combined(site, pages, address=""):
    """Return the pages as one document.

    Parameters
    ----------
    site : pathlib.Path
        The built book.
    pages : list of str
        Names such as ``chapters/index``, in order.
    address : str
        Where the site is published, for links to pages that are not among these; without it these
        are words.
    """
    first = BeautifulSoup((site / f"{pages[0]}.html").read_text("utf-8"), "html.parser")
    title = BeautifulSoup((site / "index.html").read_text("utf-8"), "html.parser").title.text
    sheets = "".join(str(tag) for tag in first.head.select("link[rel=stylesheet]"))
    body = "".join(_article(site, page, pages, address) for page in pages)
    html = (
        f'<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>{sheets}<style>{STYLE}</style></head>"
        f'<body><main class="bd-main"><div class="bd-content">{body}</div></main></body></html>'
    )
    return re.sub(r'(src|href)="\.\./(_\w+)/', rf'\1="{site.as_uri()}/\2/', html)


def _print(browser, page_file, path):
    page = browser.new_page(color_scheme="light")
    page.goto(page_file.resolve().as_uri(), wait_until="load")
    page.evaluate("document.fonts.ready.then(() => {})")
    page.pdf(
        path=path, format="A4", scale=0.75, outline=True, tagged=True, print_background=True,
        display_header_footer=True, header_template="<span></span>", footer_template=FOOT,
        margin={"top": "18mm", "bottom": "18mm", "left": "16mm", "right": "16mm"},
    )  # fmt: skip
    page.close()


def _finish(path, html):
    """Give bookmarks the words of their headings: Chromium says those twice that a page pushes on.

    The time of printing goes, so that the same book gives the same file.
    """
    document = BeautifulSoup(html, "html.parser")
    titles = [" ".join(each.get_text().split()) for each in document.select("h1, h2, h3")]
    writer = PdfWriter(clone_from=path)

    def walk(mark):
        while mark is not None:
            mark = mark.get_object()
            yield mark
            yield from walk(mark.get("/First"))
            mark = mark.get("/Next")

    marks = list(walk(writer.get_outline_root().get("/First")))
    for mark, title in zip(marks, titles, strict=True):
        mark[NameObject("/Title")] = TextStringObject(title)
    for time in ("/CreationDate", "/ModDate"):
        writer.metadata = {k: v for k, v in writer.metadata.items() if k != time}
    writer.write(path)


def write(site, contents, path, address="", chromium=None):
    """Print the chapter into the file at ``path``, with a browser that runs already or another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    html = combined(site, pages_of(contents), address)
    page_file = path.with_suffix(".html")
    page_file.write_text(html, encoding="utf-8")
    if chromium:
        _print(chromium, page_file, path)
    else:
        executable = next(filter(None, map(shutil.which, BROWSERS)), None)
        if executable is None:
            raise FileNotFoundError("the PDF is printed by Chromium: install chromium")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            _print(browser, page_file, path)
            browser.close()
    page_file.unlink()
    _finish(path, html)


def contents_of(root):
    """Return what ``_toc.yml`` of the book in ``root`` says."""
    return yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
