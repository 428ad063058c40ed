"""One-sentence messages for errors in a user's own class; errors in armful keep their tracebacks."""

import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

Expected = tuple[type[Exception], ...]

LIBRARIES = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]


@contextmanager
def explain_user_errors(doing: str, *classes: type, expected: Expected) -> Iterator[None]:
    """Turn exceptions into a ValueError of one sentence that begins with `doing`.

    classes: whose code runs. If all of them are armful's, only `expected` exceptions, whose message says enough, are
    turned; any other is a bug of armful and keeps its traceback.
    """
    own = [kind for kind in classes if not _is_armful(kind.__module__)]
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"{doing}: there is not enough memory ({_one_line(error) or 'MemoryError'})") from None
    except (Exception, SystemExit) as error:
        if not own and not isinstance(error, expected):
            raise
        raise ValueError(f"{doing}: {_sentence(error, own, expected)}") from None


def summary(error: BaseException, module: str) -> str:
    """Return an exception in a sentence, with the line of `module` that raised it."""
    return _with_line(_with_type(error), _last_line(error, lambda frame: _module(frame) == module))


def _sentence(error: BaseException, own: list[type], expected: Expected) -> str:
    what = _one_line(error) if isinstance(error, expected) and str(error) else _with_type(error)
    modules = {parent.__module__ for kind in own for parent in kind.__mro__ if not _is_armful(parent.__module__)}
    line = _last_line(error, lambda frame: _module(frame) in modules or _is_user_code(frame))
    if line is None and not isinstance(error, expected):  # the wrong arguments, or an answer that armful cannot use
        names = " and ".join(kind.__name__ for kind in own)
        line = f"{names} in armful's {_last_line(error, lambda frame: _is_armful(_module(frame)))}"
    return _with_line(what, line)


def _last_line(error: BaseException, matches: Callable[[FrameType], bool]) -> str | None:
    """Return the innermost line of the traceback whose frame `matches`."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if matches(frame):
            where = f"{Path(frame.f_code.co_filename).name}, line {line}"
            inside = frame.f_code.co_qualname
            return where if inside == "<module>" else f"{where}, in {inside}"
    return None


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_user_code(frame: FrameType) -> bool:
    """Return whether a frame is neither armful's nor an installed library's."""
    path = frame.f_code.co_filename
    return not path.startswith(("<", *LIBRARIES)) and not _is_armful(_module(frame))


def _is_armful(module: str) -> bool:
    return module.partition(".")[0] == "armful"


def _with_type(error: BaseException) -> str:
    return f"{type(error).__name__}: {_one_line(error)}".removesuffix(": ")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _with_line(what: str, line: str | None) -> str:
    return what if line is None else f"{what} ({line})"
