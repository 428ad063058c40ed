"""Policies back from files."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

from armful.errors import FileFormatError
from armful.files import npz_format
from armful.policies.policy import Policy
from armful.ridge import RidgeState


def load(path: str | os.PathLike[str]) -> Policy:
    """The policy that `save` wrote: it goes on exactly as the saved one would have."""
    header, arrays = npz_format.read(path, "policy")
    kind = _find_class(str(header.get("class")), path)
    state = RidgeState.from_arrays(header.get("ridge"), arrays, path)
    try:
        policy = kind(**header["options"])
        policy.rng = _restored_generator(header["generator"])
        policy.state = state
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise FileFormatError(f"{path} does not fit {kind.__name__} of this armful: {error}") from None
    return policy


def _restored_generator(state: dict[str, Any]) -> Generator:
    kind = getattr(np.random, state["bit_generator"])
    if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
        raise ValueError(f"{state['bit_generator']} is no bit generator of numpy")
    bits = kind()
    bits.state = state
    return Generator(bits)


def _find_class(name: str, path: str | os.PathLike[str]) -> type[Policy]:
    for kind in _subclasses(Policy):
        if f"{kind.__module__}:{kind.__qualname__}" == name:
            return kind
    raise FileFormatError(f"{path} holds a policy of class {name}; import the module that defines it, then load again")


def _subclasses(kind: type[Policy]) -> Iterator[type[Policy]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)
