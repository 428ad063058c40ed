"""Objects that are compared, hashed and printed by the arguments they were made with."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, singledispatch
from reprlib import Repr
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import sparray


class Value:
    """An object that is equal to others of its class with equal `options`: its arguments, by name.

    One that keeps no options is equal to itself alone.
    """

    options: Mapping[str, Any] = MappingProxyType({})

    def with_(self, **changes: Any) -> Self:
        """Return the same object with some options changed: `quotas.with_(total=1200)`.

        Parameters
        ----------
        **changes
            New values of options, by name.

        Raises
        ------
        ValueError
            If there is no such option, or the new value is refused.
        """
        for name in changes:
            if name not in self.options:
                raise ValueError(f"{type(self).__name__} has no option {name!r}; it has {', '.join(self.options)}")
        return type(self)(**{**self.options, **changes})

    @cached_property
    def _identity(self) -> Hashable:
        return hashable(self.options) if self.options else id(self)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and self._identity == other._identity)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._identity))

    def __repr__(self) -> str:
        given = {name: value for name, value in self.options.items() if value is not None}
        return f"{type(self).__name__}({', '.join(f'{name}={SHORT.repr(given[name])}' for name in given)})"


@singledispatch
def hashable(value: Any) -> Hashable:
    """Return an option as something that can be compared and hashed; further types register theirs."""
    return value  # type: ignore[no-any-return]


@hashable.register(np.ndarray)
def _(array: NDArray[Any]) -> Hashable:
    return (array.shape, array.dtype.str, array.tobytes()) if array.dtype != object else hashable(array.tolist())


@hashable.register(sparray)
def _(matrix: Any) -> Hashable:
    rows = matrix.tocsr().sorted_indices()
    return (rows.shape, *(part.tobytes() for part in (rows.indptr, rows.indices, rows.data)))


@hashable.register(list | tuple)
def _(values: Sequence[Any]) -> Hashable:
    return tuple(hashable(value) for value in values)


@hashable.register(Mapping)
def _(values: Mapping[Any, Any]) -> Hashable:
    return frozenset((key, hashable(value)) for key, value in values.items())


class _Short(Repr):
    """Options as a repr shows them: the first few entries of a long one."""

    def repr_ndarray(self, array: NDArray[Any], level: int) -> str:
        return self.repr1(array[: self.maxlist + 1].tolist(), level)

    def repr_csr_array(self, matrix: Any, level: int) -> str:
        return f"<{matrix.shape[0]} x {matrix.shape[1]} matrix>"

    def repr_Groups(self, groups: Any, level: int) -> str:
        return self.repr1([groups.labels[i] for i in groups.of_arm[: self.maxlist + 1].tolist()], level)

    def repr_KeyedEdges(self, edges: Any, level: int) -> str:
        return self.repr_list(list(edges), level)


SHORT = _Short()
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = 6
SHORT.maxother = SHORT.maxstring = 60
