"""The site as it is published: at a root, under a path prefix, and where nothing is to be found."""

import contextlib
import functools
import http.server
import re
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup
from page_heads import HEIGHT, WIDTH, anchored, card, pages_without_description
from PIL import Image

from tests.browser.conftest import Visit

HOME = "https://somebody-else.github.io/their.book/"


@contextlib.contextmanager
def github_pages(site, prefix):
    """Serve a site under a prefix, and its 404 page for all that is not there; give the address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            inside = path.startswith(prefix)
            return super().translate_path(path.removeprefix(prefix) if inside else "/nothing")

        def send_error(self, code, *arguments, **options):
            page = Path(site, "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *arguments):
            pass

    handler = functools.partial(Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def published(book):
    """Return the folder of the site that has an address."""
    address, site = book
    if not address:
        pytest.skip("without an address it is published nowhere")
    return site


def meta(page, name):
    tag = page.find("meta", {"property": name}) or page.find("meta", {"name": name})
    return tag["content"] if tag else None


def test_a_link_preview_has_a_picture_once_there_is_an_address(book):
    address, site = book
    page = BeautifulSoup((site / "chapters/index.html").read_text("utf-8"), "html.parser")
    assert meta(page, "og:title") == "Multi-head attention: the interactive chapter"
    assert meta(page, "og:description") == meta(page, "description")
    if not address:
        assert meta(page, "og:image") is None
        assert meta(page, "og:url") is None
        return
    assert meta(page, "og:url") == f"{HOME}chapters/index.html"
    assert meta(page, "twitter:card") == "summary_large_image"
    assert meta(page, "og:image:alt")
    assert page.find("link", rel="canonical")["href"] == f"{HOME}chapters/index.html"
    assert meta(page, "og:image").startswith(HOME)  # a preview is made elsewhere
    picture = meta(page, "og:image").removeprefix(HOME)
    size = meta(page, "og:image:width"), meta(page, "og:image:height")
    with Image.open(site / picture) as image:
        assert (image.format, image.size) == ("PNG", (WIDTH, HEIGHT))
        assert tuple(map(str, image.size)) == size


def test_the_picture_is_the_diagram_beside_the_title(tmp_path):
    path = tmp_path / "card.png"
    path.write_bytes(card())
    with Image.open(path) as image:
        pixels = image.convert("RGB")
        left, right = pixels.crop((0, 0, 370, HEIGHT)), pixels.crop((370, 0, WIDTH, HEIGHT))
        colours = {colour for _, colour in right.getcolors(1 << 20)}
    assert {(0, 0x72, 0xB2), (0xE6, 0x9F, 0)} <= colours  # both heads
    darkness = [1 - value / 255 for value in left.convert("L").get_flattened_data()]
    assert sum(darkness) > 5000  # letters: without a font there are none
    assert path.stat().st_size < 100_000


def test_the_map_names_every_page_at_its_address(book):
    address, site = book
    if not address:
        assert not (site / "sitemap.xml").exists()
        return
    places = [place.text for place in ET.parse(site / "sitemap.xml").findall(".//{*}loc")]  # noqa: S314
    pages = {path.relative_to(site).as_posix() for path in (site / "chapters").rglob("*.html")}
    assert {place.removeprefix(HOME) for place in places} == pages
    assert len(places) == len(pages)


def test_whoever_is_lost_finds_all_that_the_page_has_from_any_depth(published):
    text = (published / "404.html").read_text("utf-8")
    found = 0
    for address in re.findall(r'\s(?:href|src|action)="([^"]*)"', text):
        if address.startswith("#") or urlsplit(address).netloc not in ("", urlsplit(HOME).netloc):
            continue
        reached = urljoin(f"{HOME}some/where/deep/", address)
        assert reached.startswith(HOME), address
        assert (published / unquote(urlsplit(reached.removeprefix(HOME)).path)).exists(), address
        found += 1
    assert found > 20


@pytest.mark.parametrize("at_root", [False, True], ids=["prefix", "root"])
def test_a_page_that_is_not_there_leads_back(published, browser, at_root, tmp_path):
    site, prefix = published, "/their.book/"
    if at_root:  # the same site, as if the repository were OWNER.github.io
        site, prefix = tmp_path / "site", "/"
        site.mkdir()
        for path in published.iterdir():
            (site / path.name).symlink_to(path)
        page = (published / "404.html").read_text("utf-8").replace('="/their.book/', '="')
        (site / "404.html").unlink()
        (site / "404.html").write_text(anchored(page, "https://a.github.io/"), encoding="utf-8")
    with github_pages(site, prefix) as address:
        window = Visit(browser, address)
        for deep in ("nothing.html", "chapters/no/such/page.html"):
            page = window.open(f"{address}{prefix}{deep}")
            assert page.get_by_role("heading", name="Page not found").is_visible()
            # All but the page itself is there, and so its type and colours.
            missing = [one for one in window.complaints if deep not in one and "404 (" not in one]
            assert missing == []
            family = page.evaluate("getComputedStyle(document.body).fontFamily")
            assert "Segoe UI" in family
            window.complaints.clear()
        page.get_by_role("link", name="search", exact=True).click()
        page.wait_for_url(f"{address}{prefix}search.html")
        page.go_back()
        page.locator("article").get_by_role("link", name="first page").click()
        assert page.url == f"{address}{prefix}chapters/index.html"
        window.context.close()


def test_every_page_is_asked_for_a_description():
    env = type("Env", (), {"book_descriptions": {"chapters/index": "What it is."}})
    assert pages_without_description(env, ["chapters/new", "chapters/index"]) == ["chapters/new"]
    env.book_descriptions = {}  # a book without any, as in tests
    assert pages_without_description(env, ["chapters/new"]) == []
