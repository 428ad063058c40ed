"""The exceptions that armful raises on purpose, besides plain `ValueError` for bad input."""


class InfeasibleError(ValueError):
    """No set of arms satisfies the constraint; the message names the part that cannot be met."""


class PrecisionError(ArithmeticError, ValueError):
    """Rounding in float64 is as large as the ridge, or a number is beyond its range."""


class FileFormatError(ValueError):
    """A file cannot be read: it is truncated, of another format, or written by a later version."""


def with_message(error: OSError, sentence: str) -> OSError:
    """Return an error of the same kind and number whose text is one sentence."""
    new = type(OSError(error.errno, ""))(sentence)
    new.errno = error.errno
    return new
