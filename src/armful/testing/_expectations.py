"""Assertions of the contract suites; plain asserts, so that any test runner works."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, bdtrc

from armful.policies.choice import ARRAYS, Choice

FALSE_ALARM = 1e-6
"""The largest probability that a statistical check fails for a correct class, for any seed."""


def expect_refusal(what: str, action: Callable[..., object], *arguments: object) -> str:
    """Return the message of a refusal; fail unless `action(*arguments)` raises `ValueError` with one line."""
    try:
        result = action(*arguments)
    except ValueError as error:
        message = str(error)
        assert message.strip(), f"{what} is refused without a message"
        assert "\n" not in message, f"{what} is refused by more than one line: {message}"
        return message
    except Exception as error:
        raise AssertionError(f"{what} raises {type(error).__name__} where ValueError is expected: {error}") from error
    else:
        raise AssertionError(f"{what} is not refused, the answer is {result!r}")


def expect_close(actual: ArrayLike, expected: ArrayLike, what: str, tolerance: float = 1e-9) -> None:
    """Fail unless shapes are equal, and numbers up to `tolerance` relative to the largest of them."""
    a, b = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    scale = max(1.0, float(np.abs(b).max(initial=0.0)))
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale, equal_nan=False, err_msg=what, strict=True)


def tail_bound(successes: int, trials: int, probability: float) -> float:
    """Return the probability that a binomial is at least as far from its mean, on the same side.

    >>> round(tail_bound(49, 100, 0.5), 3), round(tail_bound(90, 100, 0.5), 19)
    (0.46, 1.53e-17)
    """
    if successes < trials * probability:
        return float(bdtr(successes, trials, probability))
    return float(bdtrc(successes - 1, trials, probability))


def expect_read_only(choice: Choice) -> None:
    """Fail if an array of the choice can be written to."""
    for name in ARRAYS:
        array = getattr(choice, name)
        assert array is None or not array.flags.writeable, f"choice.{name} can be written to"
