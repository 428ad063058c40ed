"""The contract suite of everything that arms can be chosen from: in memory, on disk, on a cluster."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator

from armful.arms import Arms
from armful.checks import FloatArray
from armful.constraints import AtMost, NestedQuotas, Quotas, TopK
from armful.constraints.ranked import RankedConstraint
from armful.policies import C2UCB, ArmwiseThompson, CappedC2UCB, Choice, CombLinTS, CombLinUCB, EpsilonGreedy, Policy
from armful.testing._expectations import expect_close, expect_read_only, expect_refusal


class ArmsContract:
    """The checks that every kind of arms passes: the same choice as scoring every row in float64 in one array.

    Inherit it in a test file and write `arms`.

    Attributes
    ----------
    options : mapping
        Further arguments of `choose`, like `{"client": client}`.
    n_arms, n_features : int
        The size of the matrix, whose numbers float32 holds exactly. With 16,000 arms or more the scan is used.

    Examples
    --------
    >>> from armful import Table
    >>> class TestTable(ArmsContract):
    ...     def arms(self, X):
    ...         return Table.wrap(X)
    """

    options: Mapping[str, Any] = {}
    n_arms, n_features = 16_321, 12

    def arms(self, X: FloatArray) -> Any:
        """Return what to choose from.

        Parameters
        ----------
        X : ndarray of shape (n_arms, n_features)
            The features; its rows are the arms, in this order.
        """
        raise NotImplementedError(f"{type(self).__name__} must define arms(self, X)")

    def learn(self, policy: Policy, X: FloatArray, rewards: FloatArray, weights: FloatArray | None) -> None:
        """Learn from all rows of `X`, `(n_arms, n_features)`, as it is done for such arms."""
        policy.learn(X, rewards, weights=weights)

    def constraints(self, rng: Generator) -> Iterator[RankedConstraint]:
        """Yield constraints on `n_arms` arms: small and large sets, groups that need arms, groups that are full."""
        city = rng.integers(0, 40, self.n_arms)
        city[:40] = np.arange(40)  # at least one arm for each
        yield TopK(30)
        yield AtMost(200)
        yield Quotas(city, at_least=1, at_most=5, total=(50, 90))
        yield NestedQuotas({"region": city // 8, "city": city}, at_least={"city": 1}, at_most={"region": 15, "city": 4})
        yield Quotas(city, exactly={0: 3, 7: 1, 39: 2})
        yield Quotas(city, at_most=2)
        yield TopK(self.n_arms // 2)

    # -- choosing ------------------------------------------------------------------------------------

    def test_every_policy_chooses_as_from_one_array(self) -> None:
        rng = np.random.default_rng(0)
        X = self._rows(rng)
        arms, constraints = self.arms(X), list(self.constraints(rng))
        for i, policy in enumerate(self._policies()):
            for t in range(3):
                self._expect_same_choice(policy, arms, X, constraints[(i + t) % len(constraints)], rng)
                if t == 1:
                    policy.discount(0.7)

    def test_ties_are_broken_as_with_one_array(self) -> None:
        rng = np.random.default_rng(2)
        X = self._rows(rng)[rng.integers(0, self.n_arms // 40, self.n_arms)]
        arms = self.arms(X)
        for constraint in self.constraints(rng):
            policy = C2UCB(n_features=self.n_features, ridge=1.0, seed=2)
            for _ in range(2):
                self._expect_same_choice(policy, arms, X, constraint, rng)

    def test_arms_of_rare_features_are_not_missed(self) -> None:
        """Arms of features that are hardly ever seen have the largest bonuses, and many of them are equal."""
        rng = np.random.default_rng(3)
        X = (rng.random((self.n_arms, self.n_features)) < 0.01).astype(np.float64)
        X[0] = 1.0
        arms, policy = self.arms(X), C2UCB(n_features=self.n_features, ridge=1.0, radius=0.2, seed=3)
        for constraint in list(self.constraints(rng))[:4]:
            self._expect_same_choice(policy, arms, X, constraint, rng)

    def test_caps_hold_and_ties_at_the_cap_are_broken_as_with_one_array(self) -> None:
        rng = np.random.default_rng(4)
        X = self._rows(rng)
        arms, caps = self.arms(X), rng.integers(1, 4, self.n_arms) / 4
        constraints = list(self.constraints(rng))
        for i, rule in enumerate(("clip", "paper")):
            policy = CappedC2UCB(n_features=self.n_features, ridge=1.0, cap=0.5, rule=rule, seed=4)
            for t in range(2):  # at first every arm is at its cap
                self._expect_same_choice(policy, arms, X, constraints[(i + t) % min(3, len(constraints))], rng)
        policy = CappedC2UCB(n_features=self.n_features, ridge=1.0, norm=2.0, seed=4)
        for constraint in constraints[:3]:
            self._expect_same_choice(policy, arms, X, constraint, rng, caps)

    def test_an_empty_choice_is_allowed_where_every_score_is_negative(self) -> None:
        rng = np.random.default_rng(5)
        X = np.abs(self._rows(rng))
        arms, policy = self.arms(X), C2UCB(n_features=self.n_features, ridge=1.0, radius=0.0, seed=5)
        policy.learn(np.eye(self.n_features), -np.ones(self.n_features))
        choice = self._expect_same_choice(policy, arms, X, AtMost(7), rng)
        assert len(choice) == 0, f"{choice.indices} were chosen, whose scores are {choice.scores}"

    # -- learning ------------------------------------------------------------------------------------

    def test_learning_from_all_rows_gives_the_state_of_one_array(self) -> None:
        rng = np.random.default_rng(6)
        X, rewards = self._rows(rng), rng.standard_normal(self.n_arms)
        for weights in (None, rng.integers(0, 3, self.n_arms).astype(np.float64)):
            here, there = (C2UCB(n_features=self.n_features, ridge=2.0, seed=6) for _ in range(2))
            for policy in (here, there):
                policy.learn(X[:3], rewards[:3])
            here.learn(X, rewards, weights=weights)
            self.learn(there, X, rewards, weights)
            for name in ("V", "b", "n", "theta", "log_det", "residual"):
                expect_close(getattr(there.state, name), getattr(here.state, name), name)

    # -- bad input -----------------------------------------------------------------------------------

    def test_arms_that_cannot_be_chosen_from_are_refused_and_nothing_changes(self) -> None:
        rng = np.random.default_rng(7)
        X = self._rows(rng)
        policy = ArmwiseThompson(n_features=self.n_features, ridge=1.0, seed=7)
        before = policy.rng.bit_generator.state  # type: ignore[union-attr]

        def choose(X: FloatArray, constraint: RankedConstraint) -> Choice:
            return policy.choose(self.arms(X), constraint, **self.options)

        for bad in (np.nan, np.inf):
            spoilt = X.copy()
            spoilt[self.n_arms // 2, 3] = bad
            expect_refusal(f"a feature of {bad}", choose, spoilt, TopK(3))
        expect_refusal("too few arms", choose, X, TopK(self.n_arms + 1))
        expect_refusal("groups of other arms", choose, X, Quotas(np.arange(self.n_arms + 1) % 3, at_most=1))
        expect_refusal("other features", choose, np.ascontiguousarray(X[:, 1:]), TopK(3))
        assert policy.rng.bit_generator.state == before, "a refused choice drew from the generator"  # type: ignore[union-attr]

    # -- internals --------------------------------------------------------------------------------------

    def _rows(self, rng: Generator) -> FloatArray:
        return rng.standard_normal((self.n_arms, self.n_features), dtype=np.float32).astype(np.float64)

    def _policies(self) -> Iterator[Policy]:
        d = self.n_features
        yield C2UCB(n_features=d, ridge=1.0, seed=1)
        yield C2UCB(n_features=d, ridge=1.0, radius=0.05, seed=1)
        yield CappedC2UCB(n_features=d, ridge=1.0, cap=1.0, seed=1)
        yield CappedC2UCB(n_features=d, ridge=1.0, cap=1.0, rule="paper", seed=1)
        yield CombLinUCB(n_features=d, ridge=1.0, seed=1)
        yield ArmwiseThompson(n_features=d, ridge=1.0, seed=1)
        yield CombLinTS(n_features=d, ridge=1.0, seed=1)
        yield EpsilonGreedy(n_features=d, ridge=1.0, epsilon=0.5, seed=1)

    def _expect_same_choice(
        self,
        policy: Policy,
        arms: Any,
        X: FloatArray,
        constraint: RankedConstraint,
        rng: Generator,
        caps: FloatArray | None = None,
    ) -> Choice:
        """Choose, compare everything with scoring all rows in one array, and learn rewards from an allowed set."""
        twin = copy.deepcopy(policy)
        scores = twin._score_arms(Arms(X, twin.state, caps), constraint.k)
        best = constraint.best(scores.value, None, twin.rng)  # type: ignore[arg-type]
        choice = policy.choose(arms, constraint, caps=caps, **self.options)
        i, what = best.indices, f"{policy!r} under {constraint!r}"
        assert np.array_equal(choice.indices, i), f"{what}: {choice.indices} were chosen, {i} are best"
        for name, expected in (
            ("features", X[i]),
            ("mean", scores.mean[i]),
            ("bonus", scores.bonus[i]),
            ("scores", scores.value[i]),
            ("capped", scores.capped[i]),
            ("value", best.value),
        ):
            given = getattr(choice, name)
            assert np.array_equal(given, expected), f"{what}: {name} is {given}, expected {expected}"
        assert constraint.violation(choice.indices) == 0, f"{what}: {choice.indices} are not allowed"
        expect_read_only(choice)
        assert X.flags.writeable, f"{what}: choosing made the rows that were given read-only"
        generators = [each.rng.bit_generator.state for each in (policy, twin)]  # type: ignore[union-attr]
        assert generators[0] == generators[1], f"{what}: the generator is left in another state"
        rewards = choice.features[:, 0] + rng.standard_normal(len(choice))
        policy.learn(choice, 0.1 * rewards)  # below the caps
        return choice
