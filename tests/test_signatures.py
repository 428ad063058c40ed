"""What a user meets who gives a wrong argument or misspells a name."""

import inspect
import pickle

import pytest

import armful
from armful import constraints, environments, policies, theory
from armful._signatures import parameters_of


class Mine(armful.C2UCB):
    def __init__(self, *, taste=1.0, **common):
        super().__init__(**common)
        self.taste = taste


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: armful.TopK(10, 3), "TopK takes k; got 2 arguments by position"),
        (lambda: armful.TopK(3, k=3), "TopK got k twice, by position and by name; it takes k"),
        (armful.TopK, "TopK needs k; it takes k"),
        (
            lambda: armful.Knapsack([1, 2], 3, 5),
            "Knapsack takes costs, budget, and by name at_most, time_limit, "
            "as in Knapsack(costs, budget, at_most=...); got 3 arguments by position",
        ),
        (
            lambda: armful.EpsilonGreedy(20),
            "EpsilonGreedy takes by name n_features, epsilon, ridge, seed, "
            "as in EpsilonGreedy(n_features=...); got 1 argument by position",
        ),
        (
            lambda: armful.EpsilonGreedy(n_features=2, eps=0.1),
            "EpsilonGreedy has no option 'eps', did you mean 'epsilon'? "
            "It takes by name n_features, epsilon, ridge, seed",
        ),
        (
            lambda: armful.CombLinTS(n_features=2, alpha=1.0),
            "CombLinTS has no option 'alpha'; it takes by name n_features, noise, ridge, seed",
        ),
        (
            lambda: environments.Slates(n_arm=5),
            "Slates has no option 'n_arm', did you mean 'n_arms'? It takes by name n_arms, n_features, k, variety",
        ),
        (
            lambda: armful.Diverse(2.0),
            "Diverse takes by name weight, scale, as in Diverse(weight=...); got 1 argument by position",
        ),
        (
            lambda: armful.Table([[1.0]]),
            "a Table is made by Table.wrap(X), Table.build(source, path) or Table.open(path), got Table of list",
        ),
        (
            lambda: armful.Table.wrap([[1.0]], id=[1]),
            "Table.wrap has no option 'id', did you mean 'ids'? It takes X, ids, and by name float32_copy",
        ),
    ],
)
def test_a_call_that_does_not_fit_names_the_class_and_what_it_takes(call, sentence):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == sentence


@pytest.mark.parametrize("kind", [armful.C2UCB, armful.CappedC2UCB, armful.ArmwiseThompson, Mine])
def test_the_class_named_is_the_one_that_was_typed_not_the_one_that_defines_init(kind):
    options = ", ".join(parameters_of(kind))
    with pytest.raises(TypeError) as caught:
        kind(n_feature=3)
    assert str(caught.value) == (
        f"{kind.__name__} has no option 'n_feature', did you mean 'n_features'? It takes by name {options}"
    )
    with pytest.raises(TypeError, match=f"^{kind.__name__} needs n_features; it takes by name {options}$"):
        kind()


MADE_IN_EVERY_ROUND = (armful.Arms, armful.Choice, armful.Scores, armful.Selection)


def public_classes():
    """What users make; what armful makes in every round keeps Python's own message, which costs nothing."""
    for module in (armful, environments):
        for name in module.__all__:
            kind = getattr(module, name)
            if kind in MADE_IN_EVERY_ROUND or getattr(kind, "_is_protocol", False):
                continue
            if isinstance(kind, type) and parameters_of(kind):
                yield pytest.param(kind, id=name)


@pytest.mark.parametrize("kind", list(public_classes()))
def test_every_public_class_names_itself(kind):
    with pytest.raises(TypeError) as caught:
        kind(no_such_option=1)
    assert str(caught.value).startswith(f"{kind.__name__} has no option 'no_such_option'")
    assert all(name in str(caught.value) for name in parameters_of(kind))


def test_signatures_docstrings_and_pickles_stay_as_they_were():
    assert str(inspect.signature(armful.TopK)) == "(k: int) -> None"
    assert list(inspect.signature(armful.C2UCB).parameters)[:2] == ["n_features", "ridge"]
    assert list(inspect.signature(armful.Table.wrap).parameters) == ["X", "ids", "float32_copy"]
    assert "Make a table of an array" in armful.Table.wrap.__doc__
    assert pickle.loads(pickle.dumps(armful.TopK(3))) == armful.TopK(3)


def test_a_type_error_from_within_is_left_alone():
    class Broken(armful.C2UCB):
        def __init__(self, **common):
            super().__init__(**common)
            len(3)

    with pytest.raises(TypeError, match=r"^object of type 'int' has no len"):
        Broken(n_features=2)


@pytest.mark.parametrize(
    ("module", "typed", "meant"),
    [
        (armful, "Topk", "TopK"),
        (armful, "capped_c2ucb", "CappedC2UCB"),
        (environments, "slates", "Slates"),
        (constraints, "Knapsak", "Knapsack"),
        (policies, "EpsilonGreddy", "EpsilonGreedy"),
        (theory, "bta", "beta"),
    ],
)
def test_a_misspelt_name_suggests_the_right_one(module, typed, meant):
    with pytest.raises(AttributeError) as caught:
        getattr(module, typed)
    assert str(caught.value) == f"module {module.__name__!r} has no attribute {typed!r}; did you mean {meant!r}?"
    assert not hasattr(module, typed)


def test_a_name_like_no_other_is_missing_and_nothing_more():
    with pytest.raises(AttributeError, match=r"^module 'armful' has no attribute 'zebra'$"):
        armful.zebra  # noqa: B018
    with pytest.raises(ImportError):
        exec("from armful import Topk")
