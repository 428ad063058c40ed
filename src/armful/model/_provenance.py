"""Which observations a state holds, as far as it takes to see that two states hold the same ones."""

import secrets

Sources = frozenset[int]
"""A random number for each state that learned first and was then merged into this one; none before learning."""

NO_SOURCES: Sources = frozenset()
MOST_SOURCES = 10_000
"""If a merge would exceed it, the sources of the second state are dropped."""


def begun(sources: Sources) -> Sources:
    """Return the sources after learning: a new one if there were none."""
    return sources or frozenset((secrets.randbits(63),))


def joined(one: Sources, other: Sources) -> Sources:
    """Return the sources of a sum."""
    both = one | other
    return both if len(both) <= MOST_SOURCES else one
