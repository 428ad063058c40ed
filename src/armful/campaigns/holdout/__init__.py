"""Who is in the holdout: sticky shares of people by a hash of their ids.

A campaign has three shares of people. The *chosen* share is contacted as the policy chooses, the *holdout* as the house
rule chooses, and the *no-contact* share never. A person's share is a hash of the campaign's name and the person's id:
it is the same in every round, on every machine, and nothing needs to be remembered.
"""

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armful import checks
from armful.checks import FloatArray
from armful.randomness import MIX

SHARES = ("chosen", "holdout", "no-contact")
"""The names of the shares; `share_of` returns positions in this."""

CHOSEN, HOLDOUT, NO_CONTACT = 0, 1, 2

_BLOCK = 1 << 16  # ids hashed at once: their numbers then stay in the processor's cache


def share_of(ids: ArrayLike, campaign: str, *, holdout: float, no_contact: float = 0.0) -> NDArray[np.uint8]:
    """Return the share of each person: 0 chosen, 1 holdout, 2 no-contact, `(n,)`.

    A larger `holdout` keeps all who were in the holdout before, and moves nobody into or out of the no-contact share;
    the same holds the other way round.

    Parameters
    ----------
    ids : array_like of str, shape (n,)
        Whole numbers are taken as their digits.
    campaign : str
        The campaign's name: shares of campaigns with other names are independent of these.
    holdout : float
        The fraction of people in the holdout.
    no_contact : float, default 0.0
        The fraction of people who are never contacted.

    Returns
    -------
    ndarray of uint8, shape (n,)

    Raises
    ------
    ValueError
        If the fractions leave nobody to be chosen.

    Examples
    --------
    >>> share_of(["anna", "bert", "4711"], "autumn", holdout=0.5)
    array([0, 0, 0], dtype=uint8)
    """
    return shares_at(uniforms(ids, campaign), holdout=holdout, no_contact=no_contact)


def shares_at(u: FloatArray, *, holdout: float, no_contact: float) -> NDArray[np.uint8]:
    """Return the shares of people from their `uniforms`; the arguments are those of `share_of`."""
    checks.probability("holdout", holdout, zero_and_one=True)
    checks.probability("no_contact", no_contact, zero_and_one=True)
    if holdout + no_contact >= 1:
        raise ValueError(
            f"holdout and no_contact must leave somebody to choose from, got {holdout!r} and {no_contact!r}; "
            "their sum must be below 1"
        )
    shares = np.zeros(u.size, dtype=np.uint8)
    shares[u < holdout] = HOLDOUT
    shares[u >= 1 - no_contact] = NO_CONTACT
    return shares


def uniforms(ids: ArrayLike, key: str) -> FloatArray:
    """Return a number from 0 up to 1 for each id, `(n,)`: the first 53 bits of `hashes`.

    Parameters
    ----------
    ids : array_like of str, shape (n,)
        Whole numbers are taken as their digits.
    key : str
        Numbers of other keys are independent of these.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> uniforms(["anna", "bert"], "autumn").round(3)
    array([0.711, 0.886])
    """
    return uniforms_of(_code_points(ids), key)


def uniforms_of(codes: NDArray[np.uint8] | NDArray[np.uint32], key: str) -> FloatArray:
    """Return the `uniforms` of ids whose code points are given, `(n, length of the longest)`, 0 after the end."""
    return (_hashes(codes, key) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def hashes(ids: ArrayLike, key: str) -> NDArray[np.uint64]:
    """Return a 64-bit number for each id, `(n,)`: a fixed function of the key and the id alone.

    The code points c_1, c_2, ... of an id are hashed to `a_0 + a_1 c_1 + a_2 c_2 + ...` modulo 2^64, with coefficients
    drawn from the key by BLAKE2b, and mixed as in SplitMix64. Without the mixing this is the multilinear hash, which is
    strongly universal (Lemire and Kaser 2014).

    Parameters
    ----------
    ids : array_like of str, shape (n,)
        Whole numbers are taken as their digits.
    key : str
        Numbers of other keys are independent of these.

    Returns
    -------
    ndarray of uint64, shape (n,)

    Examples
    --------
    >>> hashes(["anna", "bert"], "autumn")
    array([13115939637502391183, 16339202913716751888], dtype=uint64)
    """
    return _hashes(_code_points(ids), key)


def _hashes(codes: NDArray[np.uint8] | NDArray[np.uint32], key: str) -> NDArray[np.uint64]:
    first, *others = _coefficients(key, codes.shape[1] + 1)
    result = np.empty(len(codes), dtype=np.uint64)
    for begin in range(0, len(codes), _BLOCK):
        block = codes[begin : begin + _BLOCK]
        z = np.full(len(block), first)
        for column, coefficient in zip(block.T, others, strict=True):
            z += column * coefficient
        z = (z ^ (z >> np.uint64(30))) * MIX[0]
        z = (z ^ (z >> np.uint64(27))) * MIX[1]
        result[begin : begin + _BLOCK] = z ^ (z >> np.uint64(31))
    return result


def _code_points(ids: ArrayLike) -> NDArray[np.uint32]:
    """Return the code points of each id, `(n, length of the longest)`; 0 after the end of an id, which adds nothing."""
    array = np.asarray(ids)
    if array.ndim != 1:
        raise ValueError(f"ids must be one id for each person, got an array of shape {array.shape}")
    if array.size and array.dtype.kind not in "UTOiu":
        raise ValueError(f"ids must be text, got an array of {array.dtype}; text keeps ids like '007' as they are")
    text = array.astype(np.str_, copy=False)
    length = text.dtype.itemsize // 4
    return np.ascontiguousarray(text, dtype=f"=U{length}").view(np.uint32).reshape(text.size, length)


def _coefficients(key: str, n: int) -> NDArray[np.uint64]:
    """Return n pseudo-random numbers, of which the first do not depend on n."""
    digests = (
        hashlib.blake2b(key.encode(), digest_size=64, salt=block.to_bytes(16, "little")).digest()
        for block in range(-(-n // 8))
    )
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[:n]
