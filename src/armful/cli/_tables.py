"""The tables of a comparison, printed in the terminal."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from armful.experiments._page import plus_minus
from armful.experiments._standing import Standing
from armful.experiments.plan import size_name

COLUMN = 20
"""Width in characters of a column of one size."""

LEGEND = """\
Regret and its standard error: lower is better.
* the lowest, or not clearly above it in these runs (paired, 95 %).
"""


def show(standings: Sequence[Standing], console: Console) -> None:
    """Print a table for each environment, split where the terminal is too narrow for all sizes."""
    for standing in standings:
        for sizes in _sizes_that_fit(standing, console.width):
            console.print(_table(standing, sizes))
    console.print(Text(LEGEND))


def _sizes_that_fit(standing: Standing, width: int) -> Iterator[list[tuple[int, int]]]:
    longest = min(max(len(policy) for policy in standing.policies), width // 2)
    n = max(1, (width - longest - 4) // COLUMN)
    for begin in range(0, len(standing.sizes), n):
        yield standing.sizes[begin : begin + n]


def _table(standing: Standing, sizes: Sequence[tuple[int, int]]) -> Table:
    """Return a table; names are `Text`, so that nothing in them is taken for markup."""
    table = Table(title=Text(standing.environment), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("policy", overflow="fold")
    for size in sizes:
        table.add_column(Text(size_name(*size)), justify="right", no_wrap=True)
    for policy in standing.policies:
        table.add_row(Text(policy), *(_regret(standing, policy, size) for size in sizes))
    return table


def _regret(standing: Standing, policy: str, size: tuple[int, int]) -> Text:
    result, behind = standing.results[policy, size], standing.behind[policy, size]
    is_among_the_lowest = len(standing.policies) > 1 and (behind is None or not behind.is_clear)
    mark = "*" if is_among_the_lowest else " "
    return Text(f"{plus_minus(result.mean, result.stderr)} {mark}", style="bold" if is_among_the_lowest else "")
