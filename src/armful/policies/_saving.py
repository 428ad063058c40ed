"""Writing policies to files."""

import os
from typing import TYPE_CHECKING

from armful.files import _npz_format as npz_format

if TYPE_CHECKING:
    from armful.policies.policy import Policy


def save(policy: "Policy", path: str | os.PathLike[str]) -> None:
    """Write options, state and random generator, all as of one moment."""
    kind, generator = type(policy), policy._generator
    with policy._thread_locks.drawing, policy._thread_locks.state:
        state, position, columns = policy.state, generator.bit_generator.state, policy.columns
    try:
        header = {
            "class": f"{kind.__module__}:{kind.__qualname__}",
            "options": policy.options,
            "ridge": state.ridge,
            "generator": position,
            "columns": columns,
        }
        npz_format.write(path, "policy", header, state.to_arrays())
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{kind.__name__} has an option that cannot be saved: {error}") from None
