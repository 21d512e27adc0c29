"""Make what a release has, from the built book, in ``_build/release``.

python -m release       # make release: the site as a zip, the chapter as a PDF, the wheel
python -m release pdf   # make pdf
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import yaml

from release import pdf

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"
OUT = ROOT / "_build" / "release"
NAME = "multi_head_attention"
WHEEL_NEEDS = ("pyproject.toml", "README.md", "LICENSE", "LICENSE-CC-BY-4.0")


def version():
    """Return the version of the library, which is the book's."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def site_address():
    """Return where the site is published, or ""."""
    sys.path.insert(0, str(ROOT / "_ext"))
    from book_options import pages_address

    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    repository = config["repository"]["url"]
    return config["html"].get("baseurl") or (pages_address(repository) if repository else "")


def write_zip(site, path):
    """Put a site into a zip, in a folder of its own; the same site gives the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(site.rglob("*")):
            name = file.relative_to(site).as_posix()
            if file.is_file() and not name.startswith("."):
                archive.writestr(
                    ZipInfo(f"{NAME}/{name}"), file.read_bytes(), ZIP_DEFLATED, compresslevel=9
                )


def write_wheel(folder):
    """Build the library's wheel into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as source:  # a build leaves its traces
        shutil.copytree(ROOT / "mha_lib", Path(source, "mha_lib"))
        for name in WHEEL_NEEDS:
            shutil.copy(ROOT / name, source)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "--disable-pip-version-check"]
        subprocess.run([*command, "--wheel-dir", str(folder), source], check=True)  # noqa: S603


def main(only=""):
    if not (SITE / "index.html").exists():
        sys.exit(f"{SITE} is not there: run `make book` first")
    pdf_path = OUT / f"{NAME}-{version()}.pdf"
    pdf.write(SITE, pdf.contents_of(ROOT), pdf_path, site_address())
    made = [pdf_path]
    if only != "pdf":
        made.append(OUT / f"{NAME}-{version()}.zip")
        write_zip(SITE, made[-1])
        write_wheel(OUT)
        made += OUT.glob(f"*-{version()}-*.whl")
    for path in made:
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
