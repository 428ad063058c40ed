"""Reading policies from files."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

from armful.errors import FileFormatError
from armful.files import _npz_format as npz_format
from armful.policies._columns import restored_names
from armful.policies.policy import Policy


def load(path: str | os.PathLike[str]) -> Policy:
    """Return the policy that `Policy.save` wrote; it goes on exactly as the saved one would have.

    Parameters
    ----------
    path : str or PathLike
        The file. A policy of a class of your own needs its module imported first.

    Returns
    -------
    Policy

    Raises
    ------
    FileFormatError
        If the file is damaged, or does not hold a policy of this version.
    """
    header, arrays = npz_format.read(path, "policy")
    kind = _find_class(str(header.get("class")), path)
    state = kind.model_class.from_arrays(header.get("ridge"), arrays, path)
    try:
        options = header["options"]
        if "n_features" in options and options["n_features"] != state.n_features:  # before memory for so many is taken
            raise ValueError(f"expected a state of {options['n_features']} features, got one of {state.n_features}")
        policy = kind(**options)
        policy.rng = _restored_generator(header["generator"])
        policy.state = state
        policy._columns = restored_names(header.get("columns"), state.n_features)
    except Exception as error:  # of any class, given what somebody wrote into a file
        raise FileFormatError(
            f"{path} does not fit {kind.__name__} of this armful: {npz_format.short(error)}"
        ) from None
    return policy


def _restored_generator(state: dict[str, Any]) -> Generator:
    kind = getattr(np.random, state["bit_generator"])
    if not (isinstance(kind, type) and issubclass(kind, np.random.BitGenerator)):
        raise ValueError(f"{state['bit_generator']} is not a bit generator of numpy")
    for holder, name, last in ((state.get("state"), "pos", 624), (state, "buffer_pos", 4)):
        position = holder.get(name, 0) if isinstance(holder, dict) else 0
        if not (isinstance(position, int) and 0 <= position <= last):  # numpy would read beyond its memory
            raise ValueError(f"{name} of its generator must be from 0 to {last}, got {position!r}")
    bits = kind()
    bits.state = state
    return Generator(bits)


def _find_class(name: str, path: str | os.PathLike[str]) -> type[Policy]:
    for kind in _subclasses(Policy):
        if f"{kind.__module__}:{kind.__qualname__}" == name:
            return kind
    raise FileFormatError(
        f"{path} holds a policy of class {npz_format.short(name)}; import the module that defines it, then load again"
    )


def _subclasses(kind: type[Policy]) -> Iterator[type[Policy]]:
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)
