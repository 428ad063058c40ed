"""Every exception armful raises on purpose, beside plain `ValueError` for bad input."""


class InfeasibleError(ValueError):
    """No set of arms satisfies the constraint; the message says which part cannot be met."""


class PrecisionError(ArithmeticError, ValueError):
    """Float64 can no longer tell the ridge from rounding, or a number left its range."""


class FileFormatError(ValueError):
    """A file is not what it should be: truncated, foreign, or written by a later version."""


def with_message(error: OSError, sentence: str) -> OSError:
    """Return an error of the same kind and number whose text is one sentence."""
    new = type(OSError(error.errno, ""))(sentence)
    new.errno = error.errno
    return new
