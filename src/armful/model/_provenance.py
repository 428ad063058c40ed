"""Which observations a state holds: enough to tell when two states hold the same ones."""

import secrets

Sources = frozenset[int]
"""A random number for each state in which learning began and that is part of the sum; none before that."""

NO_SOURCES: Sources = frozenset()
MOST_SOURCES = 10_000
"""Of more, merged over the years, those of the last state are not remembered any more."""


def begun(sources: Sources) -> Sources:
    """Return the sources after learning: what learned before stays one source, however much it learns."""
    return sources or frozenset((secrets.randbits(63),))


def joined(one: Sources, other: Sources) -> Sources:
    """Return the sources of a sum."""
    both = one | other
    return both if len(both) <= MOST_SOURCES else one
