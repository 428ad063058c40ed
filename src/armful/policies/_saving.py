"""What a policy was made with, and policies written to files."""

import inspect
import os
from typing import TYPE_CHECKING

from armful.files import _npz_format as npz_format

if TYPE_CHECKING:
    from armful.policies.policy import Policy


def save(policy: "Policy", path: str | os.PathLike[str]) -> None:
    """Write options, state and random generator as they are at one moment."""
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


def option_names(kind: type["Policy"]) -> list[str]:
    """Return the named parameters of the class and, where it passes the rest on, of its parents."""
    names: list[str] = []
    for ancestor in kind.__mro__:
        if "__init__" not in vars(ancestor) or ancestor is object:
            continue
        parameters = inspect.signature(ancestor).parameters.values()
        named = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        names += [name for name in named if name not in names]
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return names
