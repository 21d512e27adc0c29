"""Two builds of one commit are the same site.

One file differs, `.buildinfo`: Sphinx notes there a hash of its settings, and among them are the
folders of the book.  Nobody reads it but Sphinx, and neither page nor release has it.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.build.conftest import ADDRESS, build_book

DIFFERENT = {".buildinfo"}
# With widgets, drawings, formulas and code that runs.
PAGES = ("index.ipynb", "02_split_attend_concat_project.ipynb", "notation.md")


@pytest.mark.slow
def test_two_builds_of_one_commit_are_the_same(tmp_path):
    folders = [tmp_path / "one", tmp_path / "another place"]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(2) as pool:
        sites = pool.map(lambda each: build_book(each, PAGES, ADDRESS, "force"), folders)
        one, other = (
            {
                path.relative_to(site).as_posix(): path.read_bytes()
                for path in site.rglob("*")
                if path.is_file()
            }
            for site in sites
        )
    assert one.keys() == other.keys()
    assert b'class="static-widget"' in one["chapters/index.html"]
    assert {name for name in one if one[name] != other[name]} == DIFFERENT
