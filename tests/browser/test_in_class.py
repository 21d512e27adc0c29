"""The lesson plans' links open each widget at the setting that they name."""

import re

import pytest

from tests.browser.conftest import ROOT

PAGE = (ROOT / "chapters" / "in_class.md").read_text("utf-8")
LINKS = sorted(set(re.findall(r'href="([\w.]+)#([\w.]+)=([^"]+)"', PAGE)))


@pytest.mark.parametrize(("page", "widget", "settings"), LINKS, ids=lambda part: part)
def test_a_link_opens_a_widget_at_its_setting(visit, site, page, widget, settings):
    window = visit()
    opened = window.open(f"{site}/chapters/{page}#{widget}={settings}")
    place = opened.locator(".static-widget:focus")
    place.get_by_role("button", name="Link to this setting").click()
    taken = opened.url.split("=", 1)[1].split(",")
    assert set(settings.split(",")) <= set(taken)
    assert window.complaints == []
