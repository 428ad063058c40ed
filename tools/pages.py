"""Write the pages of the documentation site that are made when it is built.

- docs/gallery/: a page for each examples/*.py with its figure, what it prints and its code, made by running it;
- docs/reference/command-line.md: the help of every command;
- docs/changelog.md and docs/contributing.md: the files of the repository, with links that work on the site.

An example runs again when it, this file or the source of armful has changed. Called by `make docs`.
"""

import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GALLERY = DOCS / "gallery"
ARGUMENTS = {"certify_a_regret": ["2", "4", "8"]}  # what the gallery shows, where the example's default is too little
REPOSITORY = "https://github.com/armful/armful/blob/main"


def examples_in_nav() -> list[str]:
    """Return the names of the examples in the order of the navigation; refuse one that is not in it."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (pages,) = (entry["Examples"] for entry in yaml.safe_load(text)["nav"] if "Examples" in entry)
    names = [Path(path).stem for page in pages if isinstance(page, dict) for path in page.values()]
    there = {path.stem for path in (ROOT / "examples").glob("*.py")}
    if set(names) != there:
        sys.exit(f"nav of mkdocs.yml and examples/ must name the same examples, differ in {set(names) ^ there}")
    return names


def output(*arguments: str) -> str:
    """Return what Python prints when it is called so; stop if that fails."""
    done = subprocess.run([sys.executable, *arguments], cwd=GALLERY, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"python {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def title_of(name: str) -> str:
    return name.replace("_", " ").capitalize()


def docstring_of(source: str) -> tuple[str, str]:
    """Return the first sentence of an example's docstring, and the rest."""
    first, _, rest = source.split('"""')[1].partition("\n")
    return first.strip(), rest.strip("\n")


def write_example(name: str) -> None:
    """Run an example, and write its page and its figure."""
    path, page, figure = ROOT / "examples" / f"{name}.py", GALLERY / f"{name}.md", GALLERY / f"{name}.svg"
    inputs = [path, Path(__file__), *(ROOT / "src").rglob("*.py")]
    if page.exists() and page.stat().st_mtime > max(file.stat().st_mtime for file in inputs):
        return
    print(f"running examples/{path.name}", flush=True)
    arguments = ARGUMENTS.get(name, [])
    printed = output(str(path), *arguments, "--figure", str(figure))
    source = path.read_text(encoding="utf-8")
    first, rest = docstring_of(source)
    shown = " ".join(["python", f"examples/{path.name}", *arguments, "--figure", figure.name])
    page.write_text(
        f"# {title_of(name)}\n\n{first}\n\n{rest}\n\n"
        f"![What the example draws]({figure.name}){{ .figure }}\n\n"
        f"```text\n$ {shown}\n{printed.rstrip()}\n```\n\n"
        f"## The code\n\n[examples/{path.name}]({REPOSITORY}/examples/{path.name})\n\n```python\n{source}```\n",
        encoding="utf-8",
    )


def write_gallery() -> None:
    """Write the pages of all examples, and one that shows them side by side."""
    GALLERY.mkdir(exist_ok=True)
    names = examples_in_nav()
    for name in names:
        write_example(name)
    cards = [
        f"-   [![{title_of(name)}]({name}.svg)]({name}.md)\n\n"
        f"    **[{title_of(name)}]({name}.md)**<br>\n"
        f"    {docstring_of((ROOT / 'examples' / f'{name}.py').read_text(encoding='utf-8'))[0]}\n"
        for name in names
    ]
    (GALLERY / "index.md").write_text(
        "# Examples\n\nPlain scripts, each done in seconds. Their figures and what they print were made when "
        "this site was built.\n\n" + '<div class="grid cards gallery" markdown>\n\n' + "\n".join(cards) + "\n</div>\n",
        encoding="utf-8",
    )


def write_command_line() -> None:
    """Write the help of every command as a page."""
    body = output("-m", "typer", "armful.cli._app", "utils", "docs", "--name", "armful").partition("\n")[2].lstrip()
    plan = output("-m", "armful", "compare", "--example")
    text = (
        "# Command line\n\nThe commands of campaigns need the extra `[campaigns]`, `reproduce` and `compare` the extra "
        f"`[experiments]`.\n\n{body.rstrip()}\n\n"
        "## A plan\n\nWhat `armful compare --example` prints. "
        "[Compare policies](../howto/compare-policies.md) explains it.\n\n"
        f"```toml\n{plan.rstrip()}\n```\n"
    )
    (DOCS / "reference" / "command-line.md").write_text(text, encoding="utf-8")


def on_the_site(text: str) -> str:
    """Return the text of a file of the repository with links that work from docs/."""

    def link(match: re.Match[str]) -> str:
        target = match[1]
        if target.startswith(("http", "#")):
            return match[0]
        if target.startswith("docs/"):
            inside = target.removeprefix("docs/")
            return f"]({inside}index.md)" if inside.endswith("/") else f"]({inside})"
        return f"]({REPOSITORY}/{target})"

    return re.sub(r"\]\(([^)\s]+)\)", link, text)


def write_files_of_the_repository() -> None:
    """Write changelog.md and contributing.md."""
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        (DOCS / name.lower()).write_text(on_the_site(text), encoding="utf-8")


if __name__ == "__main__":
    write_gallery()
    write_command_line()
    write_files_of_the_repository()
