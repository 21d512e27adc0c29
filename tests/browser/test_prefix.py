"""Pages with widgets under a path prefix, as GitHub Pages publishes a project.

What they link to and load is relative, which test_site.py sees; at a root and from files the other
tests open them.
"""

import pytest

from tests.browser.conftest import PAGES, SITE, Visit, serving

ALIVE = [
    page
    for page in PAGES
    if (SITE / page).exists() and "static-widget" in (SITE / page).read_text("utf-8")
]


@pytest.fixture(scope="module")
def prefixed(tmp_path_factory):
    """Serve the site under a prefix; return its address there."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "a prefix").symlink_to(SITE, target_is_directory=True)
    with serving(folder) as address:
        yield f"{address}/a%20prefix"


@pytest.mark.parametrize("page", ALIVE)
def test_all_that_a_page_needs_is_found_under_a_prefix(browser, prefixed, page):
    window = Visit(browser, prefixed)
    tab = window.open(f"{prefixed}/{page}")
    places = tab.locator(".static-widget")
    assert places.count() == tab.locator(".static-widget[data-ready]").count() > 0
    assert tab.locator(".mha-widget").first.inner_text()
    assert window.foreign == []  # nor anything of this host that is outside
    assert window.complaints == []
    window.context.close()


def test_there_are_pages_with_widgets():
    """Else nothing would be said of them."""
    assert len(ALIVE) >= 5
