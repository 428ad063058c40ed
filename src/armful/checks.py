"""Checks of arguments: each returns the value as armful uses it, or raises a `ValueError` of one sentence."""

import math
import os
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class NotFiniteError(ValueError):
    """A number is NaN or infinite, in a row of arms that a caller may know by a name.

    Examples
    --------
    >>> error = NotFiniteError("rewards must be finite, got nan", 3)
    >>> print(error)
    rewards must be finite, got nan in row 3
    >>> print(error.named("home -> park"))
    rewards must be finite, got nan in row 3, home -> park
    """

    def __init__(self, before: str, row: int, after: str = "", arm: str = "") -> None:
        super().__init__(before, row, after, arm)
        self.before, self.row, self.after, self.arm = before, row, after, arm

    def __str__(self) -> str:
        return f"{self.before} in row {self.row}{f', {self.arm}' if self.arm else ''}{self.after}"

    def named(self, arm: str | None) -> "NotFiniteError":
        """Return the error with the name of the arm in this row, if it has one."""
        return NotFiniteError(self.before, self.row, self.after, arm or self.arm)


def positive(name: str, value: float, hint: str = "1.0 is a usual start") -> float:
    """Return a positive finite number."""
    number = _number(name, value)
    if not number > 0:
        raise ValueError(f"{name} must be positive, got {value!r}; {hint}")
    return number


def at_least_zero(name: str, value: float) -> float:
    """Return a finite number that is zero or more."""
    number = _number(name, value)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {value!r}")
    return number


def probability(name: str, value: float, *, zero_and_one: bool = False) -> float:
    """Return a number between 0 and 1; with `zero_and_one` these are allowed too."""
    number = _number(name, value)
    if not (0 <= number <= 1 if zero_and_one else 0 < number < 1):
        ends = "from 0 to 1" if zero_and_one else "between 0 and 1"
        raise ValueError(f"{name} must be {ends}, got {value!r}")
    return number


LARGEST = 1e100
"""The largest constant that is accepted: a larger one is a mistake, and its square could overflow."""


def moderate(name: str, number: float) -> float:
    """Return the number if its square cannot overflow."""
    if number > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:g}, got {number!r}")
    return number


def count(name: str, value: int, minimum: int = 1) -> int:
    """Return a whole number that is at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise ValueError(f"{name} must be a whole number of at least {minimum}, got {value!r}")
    return int(value)


def fits_in_memory(what: str, n_numbers: int) -> None:
    """Raise if this machine's memory cannot hold so many float64.

    Examples
    --------
    >>> fits_in_memory("n_arms = 10^20", 10**20)
    Traceback (most recent call last):
    ...
    ValueError: n_arms = 10^20 would take 800,000,000,000 GB of memory, this machine has ...
    """
    available = memory_size()
    if 8 * n_numbers > available:
        raise ValueError(
            f"{what} would take {8 * n_numbers // 10**9:,} GB of memory, this machine has {available / 1e9:,.0f} GB"
        )


def memory_size() -> int:
    """Return the bytes of memory of this machine, 1 TiB where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 40


def one_of(name: str, value: str, allowed: tuple[str, ...], *, or_number: bool = False) -> str:
    """Return the value if it is one of the allowed words.

    or_number: whether a number would be right too, for the message.
    """
    if value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        number, one = "a number or " if or_number else "", "one of " if len(allowed) > 1 else ""
        raise ValueError(f"{name} must be {number}{one}{words}, got {value!r}")
    return value


def features(X: ArrayLike, n_features: int, *, finite: bool = True) -> FloatArray:
    """Return rows of features, `(..., n, n_features)`.

    finite: whether to check every number, which takes time; a caller may check the result instead.
    """
    array = floats("features", X)
    if array.shape == (0,):  # an empty list: no rows
        array = array.reshape(0, n_features)
    if array.ndim < 2 or array.shape[-1] != n_features:
        raise ValueError(f"features must have shape (n_arms, {n_features}), got {shape_of(array)}")
    if finite:
        refuse_not_finite("features", array)
    return array


def vector(name: str, values: ArrayLike, length: int, *, finite: bool = True) -> FloatArray:
    """Return one number for each arm, `(length,)`."""
    array = floats(name, values)
    if array.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), one for each arm, got {shape_of(array)}")
    if finite:
        refuse_not_finite(name, array)
    return array


def caps(values: ArrayLike, n_arms: int) -> FloatArray:
    """Return the cap of each arm, `(n_arms,)`; infinity where none is known."""
    array = vector("caps", values, n_arms, finite=False)
    if not all_finite(array):
        for row in np.flatnonzero(np.isnan(array) | (array == -np.inf)).tolist():
            raise NotFiniteError(f"caps must be numbers, infinity for no cap, got {array[row]}", row)
    return array


def floats(name: str, values: ArrayLike) -> FloatArray:
    """Return an array of real numbers, of any shape.

    Examples
    --------
    >>> floats("rewards", ["good", "bad"])
    Traceback (most recent call last):
    ...
    ValueError: rewards must be an array of real numbers, got words like 'good'
    """
    if type(values) is np.ndarray and values.dtype == np.float64:  # mostly
        return values
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} must be an array without a mask; fill or drop what is masked first")
    try:
        array = np.asarray(values)
        if values is None or array.dtype.kind not in "biufO":
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be an array of real numbers, got {_kind(values)}") from None


def exact_floats(name: str, values: ArrayLike) -> FloatArray:
    """Return an array of real numbers, of any shape; integers must be such as float64 holds.

    Examples
    --------
    >>> exact_floats("costs", [2**53 + 1, 7])
    Traceback (most recent call last):
    ...
    ValueError: costs must be numbers that float64 holds exactly, got the integer 9007199254740993; use a larger unit
    """
    array = floats(name, values)
    large = np.abs(array) >= 2.0**53  # 2^53 + 1 becomes 2^53
    if large.any():
        given = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)  # with its integers
        for number, rounded in zip(given[large].tolist(), array[large].tolist(), strict=True):
            if isinstance(number, Integral) and int(number) != rounded:  # which Python compares exactly
                raise ValueError(
                    f"{name} must be numbers that float64 holds exactly, got the integer {number}; use a larger unit"
                )
    return array


def _kind(values: Any) -> str:
    """Return a description of values that are not numbers."""
    try:
        entries = np.asarray(values, dtype=object).ravel().tolist()
    except ValueError:
        entries = []  # ragged lists
    word = next((entry for entry in entries if isinstance(entry, str)), None)
    if word is not None:
        return f"words like {word!r}" if len(word) <= 40 else f"words like {word[:40]!r}..."
    if isinstance(values, list | tuple):
        return "ragged lists, or lists of something else"
    if isinstance(values, np.ndarray):
        return f"an array of {values.dtype}"
    return "None" if values is None else type(values).__name__


def shape_of(array: FloatArray) -> str:
    """Return the shape of an array for a message; a single number is shown itself.

    Examples
    --------
    >>> shape_of(np.zeros((2, 3))), shape_of(np.array(0.5))
    ('(2, 3)', 'the single number 0.5')
    """
    return str(array.shape) if array.ndim else f"the single number {array.item()!r}"


def all_finite(array: NDArray[np.floating[Any]]) -> bool:
    """Return whether all numbers are finite; the sum of squares is tried first, since it is faster to compute."""
    return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def refuse_not_finite(name: str, array: NDArray[np.floating[Any]], first_row: int = 0) -> None:
    """Raise if a number is NaN or infinite, and name its row; rows are counted from `first_row`."""
    if all_finite(array):
        return
    where = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
    refusal = f"{name} must be finite, got {array[where]}"
    if array.ndim > 2:
        raise ValueError(f"{refusal} in index {where}")
    raise NotFiniteError(refusal, first_row + where[0])


def _number(name: str, value: Any) -> float:
    if type(value) is float and math.isfinite(value):  # mostly
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    except OverflowError:
        raise ValueError(f"{name} must be a number that float64 holds") from None
    if isinstance(value, str | bool | np.bool_) or not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return number
