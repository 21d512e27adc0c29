"""The workflow that publishes: what it runs is pinned, and it may do no more than it must."""

import re
import tomllib

import pytest
import yaml

from tests.notebooks import ROOT

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAY_WRITE = {"publish": {"pages", "id-token"}, "release": {"contents"}}


def jobs():
    for path in FILES:
        for name, job in yaml.safe_load(path.read_text("utf-8"))["jobs"].items():
            yield pytest.param(name, job, id=name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_commit_with_its_version_beside_it(path):
    used = re.findall(r"uses: *(.*)", path.read_text("utf-8"))
    assert used
    for line in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
    assert len({line.split("@")[0] for line in used}) == len(set(used)), "two versions of one"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_is_permitted_to_all_jobs(path):
    assert yaml.safe_load(path.read_text("utf-8"))["permissions"] == {}


@pytest.mark.parametrize(("name", "job"), [*jobs()])
def test_a_job_has_the_permissions_that_it_needs(name, job):
    writes = {what for what, how in job["permissions"].items() if how == "write"}
    assert writes == MAY_WRITE.get(name, set())
    if writes:  # and it runs nothing of the book or its dependencies
        ran = " ".join(step.get("run", "") + step.get("uses", "") for step in job["steps"])
        assert not re.search(r"checkout|setup-python|make|pip|bash", ran)
        assert {"build", "versions"} <= set(job["needs"])
    assert job["timeout-minutes"] <= 45


@pytest.mark.parametrize(("name", "job"), [*jobs()])
def test_what_others_can_name_is_no_part_of_a_command(name, job):
    for step in job["steps"]:
        assert "${{" not in step.get("run", "")
        if "actions/checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_the_library_is_tested_on_every_python_that_it_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: 3." in line]
    text = (ROOT / ".github" / "workflows" / "pages.yml").read_text("utf-8")
    assert yaml.safe_load(text)["jobs"]["versions"]["strategy"]["matrix"]["python"] == named
