"""The progress bar of building a table and of running experiments."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(description: str, total: int | None, *, show: bool = True) -> Iterator[Callable[[int, str], None]]:
    """Draw a bar on standard error, if rich is installed; yields `advance(steps, note)`."""
    try:
        from rich.console import Console  # noqa: PLC0415 - an extra
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    except ModuleNotFoundError:
        show = False
    if not show:
        yield lambda *_: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    note_column = TextColumn("{task.fields[note]}", markup=False)
    with Progress(*columns, note_column, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total, note="")
        yield lambda steps, note: bar.update(task, advance=steps, note=note)
