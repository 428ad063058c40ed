"""Try what will be published as a stranger gets it: the wheel alone, in an empty environment, away from the source.

The environment variable TAG, where it is set, names the tag that is released.
"""

import email
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from email.message import Message
from pathlib import Path

CORE = {"armful", "numpy", "scipy"}

README_EXAMPLES = """
import doctest, sys
import armful
assert armful.__file__.startswith(sys.prefix), f"the examples ran {armful.__file__}, not the wheel"
flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
result = doctest.testfile("README.md", module_relative=False, optionflags=flags)
print(f"README.md: {result.attempted} lines of its examples tried, {result.failed} failed")
sys.exit(result.failed > 0 or result.attempted == 0)
"""


def refuse_unless(holds: bool, sentence: str) -> None:
    if not holds:
        sys.exit(f"release-check: {sentence}")


def read_metadata(wheel: Path) -> Message:
    """Check the files of the wheel, and return its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        about = email.message_from_bytes(archive.read(metadata))
    refuse_unless("armful/py.typed" in names, "the wheel has no armful/py.typed, so type checkers ignore its types")
    folders = {name.partition("/")[0] for name in names}
    refuse_unless(folders == {"armful", metadata.partition("/")[0]}, f"the wheel installs more than armful: {folders}")
    tests = [name for name in names if re.search(r"(^|/)(tests/|test_[^/]*\.py$|conftest\.py$)", name)]
    refuse_unless(not tests, f"the wheel holds tests: {tests}")
    relative = re.findall(r"\]\((?!https?:|#)[^)]*\)", str(about.get_payload()))
    refuse_unless(not relative, f"links that a package index cannot follow: {relative}")
    return about


def fits_the_tag(tag: str, version: str, changelog: str) -> None:
    refuse_unless(tag == f"v{version}", f"the tag is {tag}, the version in src/armful/__init__.py is {version}")
    newest = next((line for line in changelog.splitlines() if line.startswith("## ")), "nothing")
    released = re.fullmatch(rf"## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest) is not None
    refuse_unless(released, f"CHANGELOG.md should begin with '## {version} (YYYY-MM-DD)', it begins with '{newest}'")


def in_an_empty_environment(wheel: Path, readme: str, version: str) -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "README.md").write_text(readme, encoding="utf-8")
        venv.create(Path(folder) / "env", with_pip=True)
        scripts = Path(folder) / "env" / ("Scripts" if os.name == "nt" else "bin")

        def run(*command: str) -> str:
            program = str(scripts / command[0])
            done = subprocess.run(
                [program, *command[1:]], cwd=folder, env=outside, stdout=subprocess.PIPE, text=True, check=False
            )
            print(done.stdout, end="", flush=True)
            refuse_unless(done.returncode == 0, f"failed with only the wheel installed: {' '.join(command[:3])} ...")
            return done.stdout

        run("python", "-m", "pip", "install", "--quiet", str(wheel))
        there = {re.split("==| @ ", line)[0] for line in run("python", "-m", "pip", "freeze").splitlines()}
        refuse_unless(there == CORE, f"the wheel alone should bring {sorted(CORE)}, it brought {sorted(there)}")
        printed = run("armful", "--version")
        refuse_unless(printed == f"armful {version}\n", f"armful --version should print armful {version}")
        run("python", "-c", README_EXAMPLES)


def main() -> None:
    dist = Path(sys.argv[1]).resolve()
    root = Path(__file__).resolve().parent.parent
    wheels, sources = sorted(dist.glob("*.whl")), sorted(dist.glob("*.tar.gz"))
    refuse_unless(len(wheels) == len(sources) == 1, f"{dist} should hold one wheel and one sdist")
    version = read_metadata(wheels[0])["Version"]
    if os.environ.get("TAG"):
        fits_the_tag(os.environ["TAG"], version, (root / "CHANGELOG.md").read_text(encoding="utf-8"))
    in_an_empty_environment(wheels[0], (root / "README.md").read_text(encoding="utf-8"), version)
    print(f"armful {version} in {dist.name}/ is ready to be published")


if __name__ == "__main__":
    main()
