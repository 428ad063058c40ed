"""Changing lines of `campaign.toml`, as a user does with an editor."""

import re
from collections.abc import Mapping


def edited(text: str, values: Mapping[tuple[str, str], str]) -> str:
    r"""Return TOML in which some keys have another value, each given by its table, its name and the value as written.

    Examples
    --------
    >>> print(edited("[choose]\nk = 10  # contacts\n# rest = 1", {("choose", "k"): "20", ("choose", "rest"): "3"}))
    [choose]
    k = 20  # contacts
    rest = 3
    """
    lines = text.split("\n")
    for (table, key), value in values.items():
        start = lines.index(f"[{table}]") + 1
        ends = (i for i in range(start, len(lines)) if lines[i].startswith("["))
        end = next(ends, len(lines))
        for pattern in (rf"{key} *=[^#]*?( *#.*)?", rf"# *{key} *=[^#]*?( *#.*)?"):
            found = [i for i in range(start, end) if re.fullmatch(pattern, lines[i])]
            if found:
                comment = re.fullmatch(pattern, lines[found[0]])
                lines[found[0]] = f"{key} = {value}{(comment and comment[1]) or ''}"
                break
        else:
            lines.insert(start, f"{key} = {value}")
    return "\n".join(lines)
