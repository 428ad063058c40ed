"""The checks that every constraint passes."""

from collections.abc import Iterator
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from armful.checks import FloatArray, IntArray
from armful.constraints import Constraint, RankedConstraint
from armful.constraints.ranked import goes_by_rank
from armful.randomness import draw_key
from armful.testing._expectations import expect_close, expect_refusal


class Instance(NamedTuple):
    """A small random instance with all its allowed sets, found by enumerating the subsets."""

    constraint: Constraint
    n_arms: int
    allowed: list[IntArray]


class ConstraintContract:
    """The tests that every constraint passes: answers are compared with enumeration.

    Attributes
    ----------
    instances : int
        The number of random instances.
    k_is_exact : bool
        Whether `k` is the size of the largest allowed set, or only an upper bound on it.

    Examples
    --------
    >>> from armful import TopK
    >>> class TestTopK(ConstraintContract):
    ...     def constraint(self, rng):
    ...         n_arms = int(rng.integers(2, 8))
    ...         return TopK(int(rng.integers(1, n_arms + 1))), n_arms
    """

    instances: int = 25
    k_is_exact: bool = True

    def constraint(self, rng: Generator) -> tuple[Constraint, int]:
        """Return a random constraint and its number of arms, at most ten: all 2^n subsets are enumerated.

        Parameters
        ----------
        rng : Generator
            The source of randomness.
        """
        raise NotImplementedError(f"{type(self).__name__} must define constraint(self, rng)")

    # -- the answer ----------------------------------------------------------------------------------

    def test_the_answer_is_an_allowed_set(self) -> None:
        for (constraint, n_arms, _), scores, rng in self._questions():
            indices = constraint.best(scores, rng=rng).indices
            what = f"{constraint!r} on {scores} answers {indices}"
            assert isinstance(indices, np.ndarray), f"{what}, not an array"
            assert indices.ndim == 1, f"{what} of shape {indices.shape}"
            assert np.issubdtype(indices.dtype, np.integer), f"{what} of type {indices.dtype}"
            assert np.unique(indices).size == indices.size, f"{what}, an arm twice"
            assert all(0 <= i < n_arms for i in indices), f"{what}, beyond the {n_arms} arms"
            assert indices.size <= constraint.k, f"{what}, more than k = {constraint.k}"
            assert constraint.violation(indices) == 0.0, f"{what}, violation {constraint.violation(indices)}"

    def test_no_allowed_set_has_a_larger_value_than_the_ratio_says(self) -> None:
        for (constraint, _, allowed), scores, rng in self._questions():
            answer = constraint.best(scores, rng=rng)
            assert 0 < answer.ratio <= 1, f"{constraint!r} answers with ratio {answer.ratio}"
            best = max(float(scores[members].sum()) for members in allowed)
            if best < 0 and answer.ratio < 1:
                continue  # a ratio promises nothing about losses
            slack = 1e-9 * float(np.abs(scores).sum())
            value = float(scores[answer.indices].sum())
            assert value >= answer.ratio * best - slack, (
                f"{constraint!r} on {scores} answers {answer.indices} of value {value}; another set has {best}"
            )

    def test_the_value_is_the_sum_of_the_scores(self) -> None:
        for (constraint, _, _), scores, rng in self._questions():
            answer = constraint.best(scores, rng=rng)
            slack = 1e-9 * float(np.abs(scores).sum())
            assert abs(answer.value - float(scores[answer.indices].sum())) <= slack, (
                f"{constraint!r} on {scores} says that {answer.indices} have the value {answer.value}"
            )

    def test_ties_are_broken_at_random_and_by_the_generator_alone(self) -> None:
        """Of two equally good sets or more, 60 draws show at least two.

        False alarms: at most 2^-59 an instance, if no set comes up more than half the time.
        """
        for seed, (constraint, n_arms, allowed) in enumerate(self._instances()):
            scores = np.ones(n_arms)
            rng = np.random.default_rng(seed)
            largest = max(members.size for members in allowed)
            n_best = sum(members.size == largest for members in allowed)
            answers = (set(constraint.best(scores, rng=rng).indices.tolist()) for _ in range(60))
            first = next(answers)
            differ = n_best == 1 or any(answer != first for answer in answers)
            assert differ, f"{constraint!r} always answers {first} to a tie of {n_best} sets"
            again = [constraint.best(scores, rng=np.random.default_rng(seed)).indices.tolist() for _ in range(3)]
            assert again[0] == again[1] == again[2], f"{constraint!r} answers {again} under one seed"

    # -- the family of sets --------------------------------------------------------------------------

    def test_k_is_the_size_of_the_largest_allowed_set(self) -> None:
        for constraint, _, allowed in self._instances():
            largest = max(members.size for members in allowed)
            right = constraint.k == largest if self.k_is_exact else constraint.k >= largest
            assert right, f"{constraint!r} has k = {constraint.k}, its largest set has {largest} arms"

    def test_a_violation_is_a_number_and_an_arm_counts_once(self) -> None:
        for constraint, n_arms, allowed in self._instances():
            for members in _subsets(n_arms):
                violation = constraint.violation(members)
                assert isinstance(violation, float), f"{constraint!r} has a violation of type {type(violation)}"
                assert violation >= 0, f"{constraint!r} has violation {violation} for {members}"
            for members in allowed:
                if members.size:
                    twice = np.append(members, members[0])
                    assert constraint.violation(twice) > 0, f"{constraint!r} allows an arm twice: {twice}"

    # -- bad input -------------------------------------------------------------------------------------

    def test_scores_that_are_not_numbers_in_a_row_are_refused(self) -> None:
        for constraint, n_arms, _ in self._instances():
            for bad in (np.nan, np.inf, -np.inf):
                scores = np.ones(n_arms)
                scores[-1] = bad
                expect_refusal(f"{constraint!r} with a score of {bad}", constraint.best, scores)
            for shape in ((n_arms, 1), (2, n_arms), ()):
                expect_refusal(f"{constraint!r} with scores of shape {shape}", constraint.best, np.ones(shape))

    def test_another_number_of_scores_is_refused_or_answered_within_them(self) -> None:
        for constraint, n_arms, _ in self._instances():
            for n_scores in {0, n_arms - 1, n_arms + 1}:
                try:
                    indices = constraint.best(np.ones(n_scores)).indices
                except ValueError:
                    continue
                assert constraint.violation(indices) == 0.0, f"{constraint!r} answers {indices} to {n_scores} scores"
                assert all(i < n_scores for i in indices), f"{constraint!r} answers {indices} to {n_scores} scores"

    def test_neither_question_nor_answer_is_shared(self) -> None:
        for (constraint, _, _), scores, _ in self._questions():
            kept = scores.copy()
            scores.flags.writeable = False
            first = constraint.best(scores, rng=np.random.default_rng(0)).indices
            assert np.array_equal(scores, kept), f"{constraint!r} changes the scores it is given"
            expected = first.tolist()
            if first.flags.writeable:
                first[:] = 0
            again = constraint.best(scores, rng=np.random.default_rng(0)).indices.tolist()
            assert again == expected, f"{constraint!r} answers {expected}, then {again} once its answer was changed"

    def test_many_rows_at_once_are_answered_as_one_by_one(self) -> None:
        for seed, (constraint, n_arms, _) in enumerate(self._instances()):
            rows = np.stack(list(_kinds_of_scores(np.random.default_rng(seed), n_arms)))
            indices, values = constraint.best_each(rows, [np.random.default_rng([seed, i]) for i in range(len(rows))])
            for i, row in enumerate(rows):
                alone = constraint.best(row, rng=np.random.default_rng([seed, i]))
                assert list(indices[i]) == alone.indices.tolist(), f"{constraint!r} on row {i} of {rows}"
                expect_close(values[i], alone.value, f"{constraint!r}, value of row {i}")
            for row, value, alike in zip(rows, constraint.best_values(rows), values, strict=True):
                slack = 1e-9 * float(np.abs(row).sum())  # the answers may be different sets, equal up to rounding
                assert abs(value - alike) <= slack, f"{constraint!r}, best_values: {value} for {alike}"

    # -- internals -------------------------------------------------------------------------------------

    def _instances(self) -> list[Instance]:
        """Return the instances, made once for a class: enumerating subsets is slow."""
        kept: list[Instance] | None = vars(type(self)).get("_made")
        if kept is None:
            kept = []
            for seed in range(self.instances):
                constraint, n_arms = self.constraint(np.random.default_rng(seed))
                allowed = [members for members in _subsets(n_arms) if constraint.violation(members) == 0.0]
                assert allowed, f"{constraint!r} on {n_arms} arms allows no set; constraint() must give one that does"
                kept.append(Instance(constraint, n_arms, allowed))
            type(self)._made = kept  # type: ignore[attr-defined]
        return kept

    def _questions(self) -> Iterator[tuple[Instance, FloatArray, Generator]]:
        for seed, instance in enumerate(self._instances()):
            rng = np.random.default_rng([seed, 1])
            for scores in _kinds_of_scores(rng, instance.n_arms):
                yield instance, scores, rng


class RankedConstraintContract(ConstraintContract):
    """The tests that every `RankedConstraint` passes besides those of `ConstraintContract`.

    A choice from millions of arms reduces each partition to candidates and merges these; the best set must survive.

    Examples
    --------
    >>> from armful import AtMost
    >>> class TestAtMost(RankedConstraintContract):
    ...     def constraint(self, rng):
    ...         n_arms = int(rng.integers(2, 8))
    ...         return AtMost(int(rng.integers(1, n_arms + 1))), n_arms
    """

    def test_ranks_are_complete(self) -> None:
        for constraint, n_arms, _ in self._instances():
            what, ranks = f"the ranks of {constraint!r}", self._ranked(constraint).ranks
            assert 0 <= ranks.low <= ranks.high, f"{what} ask for {ranks.low} to {ranks.high} arms"
            assert ranks.high == constraint.k, f"{what} allow {ranks.high} arms, k is {constraint.k}"
            if not ranks.levels:
                continue
            assert ranks.of_arm is not None, f"{what} have levels, but no group for each arm"
            assert ranks.of_arm.shape == (n_arms,), f"{what} have groups of shape {ranks.of_arm.shape}"
            n_finest = ranks.levels[0].lower.size
            finest = ranks.levels[0].of_finest.tolist()
            assert finest == list(range(n_finest)), f"{what}: the finest groups lie in {finest}, not in themselves"
            for level in ranks.levels:
                assert level.of_finest.shape == (n_finest,), f"{what}: a level is not of the {n_finest} finest groups"
                assert (level.lower <= level.upper).all(), f"{what}: {level.lower} is above {level.upper}"

    def test_the_best_set_of_all_arms_is_found_from_partitions(self) -> None:
        for (instance, n_arms, _), scores, rng in self._questions():
            key, constraint = draw_key(rng), self._ranked(instance)
            best, ranks = constraint.best_among(scores, key), constraint.ranks
            partition, left = rng.integers(0, 3, n_arms), []
            for arms in (np.flatnonzero(partition == i) for i in range(3)):
                kept, thresholds = ranks.reduce(arms, scores[arms], key)
                left.append(arms[kept])
                beaten = scores < ranks.thresholds_of(thresholds, np.arange(n_arms))
                assert not beaten[best.indices].any(), (
                    f"{constraint!r} on {scores}: {best.indices} are below a threshold"
                )
            merged = np.sort(np.concatenate(left))
            found = constraint.best_among(scores[merged], key, merged)
            what = f"{constraint!r} on {scores}: {found.indices} from partitions, {best.indices} from all arms"
            assert set(found.indices.tolist()) == set(best.indices.tolist()), what

    def test_one_key_breaks_ties_in_best_and_in_best_among(self) -> None:
        for (constraint, _, _), scores, _ in self._questions():
            at_once = constraint.best(scores, rng=np.random.default_rng(0)).indices
            among = self._ranked(constraint).best_among(scores, draw_key(np.random.default_rng(0))).indices
            assert np.array_equal(at_once, among), (
                f"{constraint!r} on {scores}: {at_once} by best, {among} by best_among"
            )

    def _ranked(self, constraint: Constraint) -> RankedConstraint:
        assert goes_by_rank(constraint), f"{constraint!r} has no ranks"
        return constraint


def _subsets(n_arms: int) -> Iterator[IntArray]:
    sizes = (combinations(range(n_arms), size) for size in range(n_arms + 1))
    return (np.array(members, dtype=np.int64) for members in chain.from_iterable(sizes))


def _kinds_of_scores(rng: Generator, n: int) -> Iterator[FloatArray]:
    """Yield `(n,)` scores of every kind: of both signs and one, tied, and of very different sizes."""
    yield rng.standard_normal(n)
    yield rng.random(n) + 0.1
    yield -rng.random(n) - 0.1
    yield rng.integers(-1, 2, n).astype(np.float64)
    yield np.zeros(n)
    for scale in (2.0**255, 2.0**-255, 2.0 ** rng.integers(-20, 20, n)):
        yield rng.standard_normal(n) * scale
