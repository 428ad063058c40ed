"""The exceptions that armful raises on purpose, besides plain `ValueError` for bad input."""

from typing import Any


class InfeasibleError(ValueError):
    """No set of arms satisfies the constraint; the message names the part that cannot be met."""


class PrecisionError(ArithmeticError, ValueError):
    """Rounding in float64 is as large as the ridge, or a number is beyond its range."""


class FileFormatError(ValueError):
    """A file cannot be read: it is truncated, of another format, or written by a later version."""


class NoRowsError(ValueError):
    """A file has columns, but no rows."""


class LedgerError(ValueError):
    """The ledger of a campaign cannot be opened, read or written; the message says why, and nothing was changed."""


class UnknownRoundError(LedgerError):
    """There is no such round: one that was asked for, or that a reward is for."""


class NotChosenError(LedgerError):
    """A reward is for an arm that was not chosen in its round."""


class QueueFullError(RuntimeError):
    """More writes are waiting for the ledger than may wait; try again later."""


class SettingsError(ValueError):
    """The settings of a campaign have mistakes, all of which are listed.

    Attributes
    ----------
    where : str
        The file with the mistakes.
    problems : list of str
        One sentence for each mistake, with its line.
    """

    def __init__(self, where: str, problems: list[str]) -> None:
        count = f"{len(problems)} mistake{'' if len(problems) == 1 else 's'}"
        super().__init__("\n".join([f"{where} has {count}:", *(f"  {problem}" for problem in problems)]))
        self.where = where
        self.problems = problems

    def __reduce__(self) -> tuple[Any, ...]:
        """Let the error be pickled: by default exceptions are made anew from their message alone."""
        return type(self), (self.where, self.problems)


class ServiceError(RuntimeError):
    """A decision service refused a request, or did not answer; the message says why.

    Attributes
    ----------
    status : int or None
        The HTTP status; None if no answer came.
    problem : dict
        The problem details of the answer (RFC 9457: type, title, status, detail); empty if it had none.
    """

    def __init__(self, sentence: str, status: int | None = None, problem: dict[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.problem = problem or {}


def with_message(error: OSError, sentence: str) -> OSError:
    """Return an error of the same kind and number whose text is one sentence."""
    new = type(OSError(error.errno, ""))(sentence)
    new.errno = error.errno
    return new
