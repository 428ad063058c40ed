import heapq
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from armful import Constraint, InfeasibleError
from armful.constraints import _path_network as path_network
from armful.constraints._path_milp import best_by_program
from armful.constraints._path_network import Network
from armful.constraints.paths import Path
from armful.testing import ConstraintContract
from armful.testing._expectations import FALSE_ALARM, tail_bound


def all_paths(edges, source, target, directed=True):
    """Every simple path as a tuple of arms in order, by walking every way."""

    def onward(node, seen, arms):
        if node == target:
            yield tuple(arms)
            return
        for arm, (tail, head) in enumerate(edges):
            for begin, end in [(tail, head)] if directed else [(tail, head), (head, tail)]:
                if begin == node and end not in seen:
                    yield from onward(end, seen | {end}, [*arms, arm])

    return list(onward(source, {source}, []))


def random_graph(rng, directed=True, forward=False):
    """Few edges among few nodes, with at least one path from node 0 to the last."""
    while True:
        n_nodes, n_arms = int(rng.integers(2, 6)), int(rng.integers(1, 9))
        edges = rng.integers(0, n_nodes, (n_arms, 2))
        edges = np.sort(edges, axis=1) if forward else edges
        if all_paths(edges.tolist(), 0, n_nodes - 1, directed):
            return edges, 0, n_nodes - 1


# -- the contract --------------------------------------------------------------------------------


class TestWithoutCyclesContract(ConstraintContract):
    def constraint(self, rng):
        edges, source, target = random_graph(rng, forward=True)
        return Path(edges, source, target), len(edges)


class TestDirectedContract(ConstraintContract):
    k_is_exact = False

    def constraint(self, rng):
        edges, source, target = random_graph(rng)
        return Path(edges, source, target), len(edges)


class TestUndirectedContract(ConstraintContract):
    k_is_exact = False
    instances = 7  # most questions are integer programs

    def constraint(self, rng):
        edges, source, target = random_graph(rng, directed=False)
        return Path(edges, source, target, directed=False), len(edges)


class OfCosts(Constraint):
    """Only asks questions whose scores are costs: what `costs=True` answers is then the sum of the scores."""

    def __init__(self, path):
        self.path, self.k, self.violation = path, path.k, path.violation

    def best(self, scores, X=None, rng=None):
        given_as = np.asarray(scores, dtype=float)
        answer = self.path.best(given_as, rng=rng)
        assert answer.value == np.minimum(given_as, 0.0)[answer.indices].sum()
        return self.path.best(np.minimum(given_as, 0.0), rng=rng)


class TestCostsContract(ConstraintContract):
    k_is_exact = False

    def constraint(self, rng):
        directed = bool(rng.integers(2))
        edges, source, target = random_graph(rng, directed)
        return OfCosts(Path(edges, source, target, directed=directed, costs=True)), len(edges)

    def _questions(self):
        for instance, scores, rng in super()._questions():
            yield instance, np.minimum(scores, 0.0), rng

    def test_ties_are_broken_at_random_and_by_the_generator_alone(self):
        """All scores are above 0, so that all paths are as good. False alarms: as in the contract."""
        for place, (constraint, n_arms, allowed) in enumerate(self._instances()):
            rng = np.random.default_rng(place)
            answers = {tuple(sorted(constraint.path.best(np.ones(n_arms), rng=rng).indices)) for _ in range(60)}
            assert len(answers) > 1 or len(allowed) == 1
            again = [constraint.path.best(np.ones(n_arms), rng=np.random.default_rng(7)).indices for _ in range(2)]
            assert again[0].tolist() == again[1].tolist()


# -- against enumeration -------------------------------------------------------------------------

NUMBERS = {
    "tied": st.integers(-3, 3).map(lambda i: i / 2),
    "costs": st.integers(-3, 0).map(lambda i: i / 2),
    "gains": st.integers(0, 3).map(lambda i: i / 2),
    "zero": st.just(0.0),
    "huge": st.integers(-3, 3).map(lambda i: i * 2.0**1020),
    "tiny": st.integers(-3, 3).map(lambda i: i * 2.0**-1020),
    "of all sizes": st.builds(lambda i, e: i * 2.0**e, st.integers(-3, 3), st.integers(-12, 12)),
}


@st.composite
def questions(draw):
    """A small graph with parallel edges and loops, scores, and arms that must and must not be used."""
    n_nodes = draw(st.integers(2, 6))
    node = st.integers(0, n_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), min_size=1, max_size=11))
    source, target = draw(st.sampled_from(edges))[0], draw(st.sampled_from(edges))[1]
    numbers = NUMBERS[draw(st.sampled_from(list(NUMBERS)))]
    scores = np.array(draw(st.lists(numbers, min_size=len(edges), max_size=len(edges))))
    fate = draw(st.lists(st.sampled_from(["free", "free", "free", "must", "not"]), min_size=len(edges)))[: len(edges)]
    return edges, source, target, scores, [[i for i, f in enumerate(fate) if f == kind] for kind in ("must", "not")]


def check_against_enumeration(question, directed, costs):
    edges, source, target, scores, (required, excluded) = question
    if source == target:
        with pytest.raises(ValueError, match=rf"^source and target must be two nodes, both are {source}$"):
            Path(edges, source, target, directed=directed)
        return
    paths = all_paths(edges, source, target, directed)
    if not paths:
        with pytest.raises(InfeasibleError, match=rf"^no path leads from {source} to {target}; "):
            Path(edges, source, target, directed=directed)
        return
    constraint = Path(edges, source, target, directed=directed, costs=costs)
    counted = np.minimum(scores, 0.0) if costs else scores

    answer = constraint.best(scores)
    assert tuple(answer.indices.tolist()) in paths
    assert answer.value == max(counted[list(path)].sum() for path in paths)  # few bits each: exact
    assert answer.ratio == 1.0
    assert constraint.k >= max(map(len, paths))

    allowed = [p for p in paths if set(required) <= set(p) and not set(excluded) & set(p)]
    if allowed:
        answer = constraint.best_given(scores, None, required=required, excluded=excluded)
        assert tuple(answer.indices.tolist()) in allowed
        assert answer.value == max(counted[list(path)].sum() for path in allowed)
    else:
        with pytest.raises(InfeasibleError, match=r"^(no path from|edge \d)"):
            constraint.best_given(scores, None, required=required, excluded=excluded)


@settings(max_examples=250, deadline=None)
@given(questions(), st.booleans(), st.booleans())
def test_the_answer_is_the_best_of_all_paths(question, directed, costs):
    check_against_enumeration(question, directed, costs)


def test_a_path_that_highs_misses_without_presolve_is_found():
    edges = [(4, 3), (1, 0), (3, 4), (4, 2), (1, 3), (0, 4), (4, 5), (3, 2), (4, 0)]
    scores = np.array([-2.0, 2.0, 2.0, -2.0, -1.0, 2.0, -1.0, 2.0, 1.0])
    path = Path(edges, 4, 2, directed=False)
    for seed in range(10):
        assert path.best(scores, rng=np.random.default_rng(seed)).value == 5.0


@pytest.mark.slow
@settings(max_examples=6000, deadline=None)
@given(questions(), st.booleans(), st.booleans())
def test_the_answer_is_the_best_of_all_paths_of_thousands_of_graphs(question, directed, costs):
    check_against_enumeration(question, directed, costs)


@settings(max_examples=200, deadline=None)
@given(questions())
def test_without_cycles_every_sign_is_exact_and_k_is_the_longest_path(question):
    edges, _, _, scores, given_arms = question
    edges = [tuple(sorted(edge)) for edge in edges]
    source, target = min(map(min, edges)), max(map(max, edges))
    check_against_enumeration((edges, source, target, scores, given_arms), directed=True, costs=False)
    paths = source != target and all_paths(edges, source, target)
    if paths:
        assert Path(edges, source, target).k == max(map(len, paths))


@settings(max_examples=100, deadline=None)
@given(questions(), st.booleans())
def test_only_simple_paths_have_no_violation_and_order_does_not_matter(question, directed):
    edges, source, target, _, _ = question
    edges = [(source, target), *edges[:7]]
    if source == target:
        return
    constraint, paths = Path(edges, source, target, directed=directed), all_paths(edges, source, target, directed)
    allowed = {tuple(sorted(path)) for path in paths}
    for size in range(len(edges) + 1):
        for members in itertools.combinations(range(len(edges)), size):
            assert (constraint.violation(members) == 0.0) == (members in allowed)
            assert constraint.violation(members) >= 0.0
            if members:
                assert constraint.violation([*members, members[0]]) > constraint.violation(members)
    for path in paths:
        assert constraint.violation(path) == constraint.violation(path[::-1]) == 0.0


def network_of(path):
    return path._network


@settings(max_examples=80, deadline=None)
@given(questions())
def test_all_four_algorithms_agree_where_they_apply(question):
    edges, source, target, scores, _ = question
    if source == target or not all_paths(edges, source, target):
        return
    network = network_of(Path(edges, source, target))
    gains = scores[network.arm] / max(float(np.abs(scores).max()), 2.0**-1020)
    arcs = best_by_program(network, gains, np.zeros(0, dtype=np.int64), np.random.default_rng(0))
    best = gains[arcs].sum()
    labels = network.labels_of_any_sign(gains)
    if labels is not None:
        assert labels[network.target] == pytest.approx(best, abs=1e-12)
    if (gains <= 0).all():
        assert labels is not None
        assert network.labels_of_costs(gains)[network.target] == pytest.approx(best, abs=1e-12)
    if network.topological_ranks is not None:
        assert labels is not None
        assert network.labels_in_order(gains)[network.target] == pytest.approx(best, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(questions(), st.booleans(), st.booleans())
def test_the_answer_is_the_best_of_all_paths_by_the_algorithms_for_large_graphs(question, directed, costs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_network, "FEW_ARCS", 0)
        check_against_enumeration(question, directed, costs)


@pytest.mark.parametrize("seed", range(10))
def test_every_node_that_a_best_path_can_pass_has_the_label_that_scipy_gives(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    edges = np.vstack([np.column_stack([np.arange(59), np.arange(1, 60)]), rng.integers(60, size=(180, 2))])
    network = network_of(Path(edges[:, ::-1], 59, 0) if seed % 2 else Path(edges, 0, 59))
    gains = -rng.integers(0, 4, network.arm.size).astype(float)  # many zeros, many ties
    few = network.labels_of_costs(gains)
    monkeypatch.setattr(path_network, "FEW_ARCS", 0)
    many = network.labels_of_costs(gains)
    near = many >= many[network.target]
    assert (few[near] == many[near]).all()
    assert (few <= many).all()


def test_a_small_graph_needs_no_sparse_matrix(monkeypatch):
    """What scipy needs to begin would take longer than the path itself."""
    edges = np.vstack([np.column_stack([np.arange(59), np.arange(1, 60)]), [(0, 58)], [(30, 2)]])
    constraint = Path(edges, 0, 59, costs=True)
    monkeypatch.setattr(path_network, "dijkstra", None)
    assert constraint.best(np.full(61, -1.0)).indices.tolist() == [59, 58]


# -- which algorithm -----------------------------------------------------------------------------

TRIANGLE = [("a", "b"), ("b", "c"), ("c", "b"), ("b", "d"), ("c", "d")]


@pytest.fixture
def used(monkeypatch):
    """The names of the algorithms that were asked, in order."""
    names = []
    for name in ("labels_in_order", "labels_of_costs", "labels_of_any_sign"):
        plain = getattr(Network, name)
        monkeypatch.setattr(Network, name, lambda *a, name=name, plain=plain: names.append(name) or plain(*a))
    program = best_by_program
    monkeypatch.setattr(
        "armful.constraints._path_milp.best_by_program", lambda *a: names.append("program") or program(*a)
    )
    return names


@pytest.mark.parametrize(
    ("scores", "options", "expected"),
    [
        ([-1, -1, -1, -1, -1], {}, ["labels_of_costs"]),
        ([0, 0, 0, 0, 0], {}, ["labels_of_costs"]),
        ([5, -1, -1, 2, 1], {}, ["labels_of_any_sign"]),
        ([5, 3, -3, 2, 1], {}, ["labels_of_any_sign"]),
        ([5, 3, -2, 2, 1], {}, ["labels_of_any_sign", "program"]),
        ([5, 3, -2, 2, 1], {"costs": True}, ["labels_of_costs", "labels_of_costs"]),  # of costs, then of random lengths
        ([-1, 1, -9, -1, -1], {"directed": False}, ["labels_of_any_sign", "program"]),
        ([1, -1, -9, 1, 1], {"directed": False}, ["labels_of_any_sign"]),  # ends are used one way only
    ],
)
def test_each_question_goes_to_the_simplest_exact_algorithm(used, scores, options, expected):
    constraint = Path(TRIANGLE, "a", "d", **options)
    used.clear()
    constraint.best(np.array(scores, dtype=float))
    assert used == expected


def test_cycles_that_lead_nowhere_do_not_count_as_cycles(used):
    """Into the source, out of the target, and off the way."""
    around = [("a", "b"), ("b", "c"), ("b", "a"), ("c", "b"), ("x", "y"), ("y", "x"), ("b", "x"), ("b", "b")]
    constraint = Path(around, "a", "c")
    assert constraint.best(np.full(8, 3.0)).indices.tolist() == [0, 1]
    assert constraint.k == 2
    assert set(used) == {"labels_in_order"}


# -- traps ---------------------------------------------------------------------------------------


def test_parallel_edges_are_not_summed_and_the_best_is_taken():
    edges = [(0, 1), (1, 2), (0, 1), (2, 1), (0, 1)]
    scores = np.array([-3.0, -1.0, -2.0, 0.0, -4.0])
    assert coo_array((-scores, np.array(edges).T)).tocsr()[0, 1] == 9.0  # what scipy makes of them
    for target, longer in [(2, []), (3, [(2, 3), (1, 3)])]:
        answer = Path(edges + longer, 0, target).best(np.r_[scores, np.full(len(longer), -5.0)])
        assert answer.indices[0] == 2


@pytest.mark.parametrize("directed", [True, False])
def test_a_street_that_costs_nothing_is_still_a_street(directed):
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "b"), ("c", "d"), ("b", "d")]
    constraint = Path(edges, "a", "d", directed=directed, costs=True)
    assert constraint.best([0.0, 0.0, -1.0, 0.0, 0.0, -1.0]).indices.tolist()[0] == 0
    assert constraint.best([0.0, 0.0, -1.0, -1.0, 0.0, -1.0]).value == 0.0
    assert constraint.best([-0.0, -0.0, -0.0, -0.0, -1.0, -1.0]).value == -1.0


def test_zero_sum_cycles_do_not_lead_the_walk_astray():
    """Around the square for nothing: every answer must still be one simple path, and all four come up."""
    square = [("s", 0), ("s", 2), (0, 1), (1, 2), (2, 3), (3, 0), (1, 0), (2, 1), (3, 2), (0, 3), (1, "t"), (3, "t")]
    constraint, rng = Path(square, "s", "t"), np.random.default_rng(0)
    answers = {tuple(constraint.best(np.zeros(12), rng=rng).indices.tolist()) for _ in range(300)}
    assert answers <= set(all_paths(square, "s", "t"))
    assert len(answers) >= 4


def textbook_dijkstra(edges, costs, source):
    """The nearest node is settled, and never looked at again."""
    distance, waiting, settled = {source: 0.0}, [(0.0, source)], set()
    while waiting:
        _, node = heapq.heappop(waiting)
        settled.add(node)
        for (tail, head), cost in zip(edges, costs, strict=True):
            if tail == node and head not in settled and distance[node] + cost < distance.get(head, np.inf):
                distance[head] = distance[node] + cost
                heapq.heappush(waiting, (distance[head], head))
    return distance


def test_dijkstra_is_wrong_when_a_cost_turns_negative_and_path_is_not():
    """`s-a-t` costs 1 + 2; `s-b-a-t` 4 - 4 + 2, which Dijkstra does not see. The arc `a-b` makes it no DAG."""
    edges, scores = [(0, 1), (1, 3), (0, 2), (2, 1), (1, 2)], np.array([-1.0, -2.0, -4.0, 4.0, -9.0])
    wrong = textbook_dijkstra(edges, -scores, 0)[3]
    assert wrong == 3.0
    answer = Path(edges, 0, 3).best(scores)
    assert (answer.indices.tolist(), answer.value) == ([2, 3, 1], -2.0)


def test_costs_never_become_gains():
    edges, scores = [(0, 1), (1, 3), (0, 2), (2, 1), (1, 2)], np.array([-1.0, -2.0, -4.0, 4.0, -9.0])
    answer = Path(edges, 0, 3, costs=True).best(scores)
    assert (answer.indices.tolist(), answer.value) == ([0, 1], -3.0)
    assert Path(edges, 0, 3, costs=True).best(np.full(5, 7.0)).value == 0.0


def test_the_longest_path_keeps_to_source_and_target():
    """A longer way elsewhere in the graph does not matter."""
    edges = [("x", "a"), ("a", "b"), ("b", "c"), ("c", "y"), ("a", "c")]
    constraint = Path(edges, "a", "c")
    assert constraint.best([100.0, 1.0, 1.0, 100.0, 1.0]).indices.tolist() == [1, 2]
    assert constraint.k == 2


def test_a_cycle_of_positive_score_is_not_part_of_a_path():
    edges = [("a", "b"), ("b", "c"), ("c", "b"), ("b", "d"), ("c", "d"), ("e", "f"), ("f", "e"), ("b", "e"), ("f", "d")]
    answer = Path(edges, "a", "d").best([0.0, 5.0, 5.0, 1.0, -1.0, 9.0, 9.0, -7.0, -9.0])
    assert answer.indices.tolist() == [0, 1, 4]


def test_a_gain_on_a_cycle_is_seen_even_in_the_last_sweep():
    """The cycle c-d-e closes in sweep 6 of 7, after the last look at a power of two."""
    network = network_of(Path(["sa", "ab", "bc", "cd", "de", "ec", "ct"], "s", "t"))
    assert network.labels_of_any_sign(np.ones(7)) is None


def test_a_gain_on_a_cycle_is_seen_long_before_as_many_sweeps_as_nodes(monkeypatch):
    looks = []
    plain = Network._has_cycle
    monkeypatch.setattr(Network, "_has_cycle", lambda self, previous: looks.append(1) or plain(self, previous))
    line = np.stack([np.arange(2000), np.arange(1, 2001)], axis=1)
    network = network_of(Path(np.concatenate([line, line[:, ::-1]]), 0, 2000))
    assert network.labels_of_any_sign(np.ones(network.arm.size)) is None
    assert 1 <= len(looks) <= 3


def test_sums_do_not_overflow_on_the_way():
    """Four times -1.5 * 2^1023 is out of range, and on no path that is chosen; `c-b` makes it no DAG."""
    much = -1.5 * 2.0**1023
    answer = Path(["sa", "ab", "bc", "ct", "cb", "st"], "s", "t").best([much, much, much, much, -1.0, 1.0])
    assert (answer.indices.tolist(), answer.value) == ([5], 1.0)


def test_cycles_apart_from_the_path_are_cut_off_until_none_is_left():
    """Six rings of three, each a gain that only a path through it may have."""
    edges, scores = [("s", (0, 0)), ("s", "t")], [-1.0, -20.0]
    for ring in range(6):
        for i in range(3):
            edges.append(((ring, i), (ring, (i + 1) % 3)))
            scores.append(2.0)
        onward = (ring + 1, 0) if ring < 5 else "t"
        edges += [((ring, 2), onward), ((ring, 0), onward)]
        scores += [-3.0, -0.5]
    answer = Path(edges, "s", "t").best(scores)
    assert answer.value == -1.0 + 6 * (2 + 2 - 3)
    assert answer.indices.size == 1 + 6 * 3


# -- required and excluded -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_arms", "message"),
    [
        ({"excluded": [0]}, "no path from 'a' to 'd' avoids all excluded edges (a -> b)"),
        ({"excluded": [3, 4]}, "no path from 'a' to 'd' avoids all excluded edges (b -> d, c -> d)"),
        ({"required": [2]}, "no path from 'a' to 'd' uses all required edges (c -> b)"),
        ({"required": [3, 4]}, "no path from 'a' to 'd' uses all required edges (b -> d, c -> d)"),
        ({"required": [4], "excluded": [1]}, "edge c -> d is required, but no usable path from 'a' to 'd' uses it"),
        (
            {"required": [2], "excluded": [3]},
            "no path from 'a' to 'd' uses all required edges (c -> b) and avoids all excluded edges (b -> d)",
        ),
        ({"required": [0, 3], "excluded": [3]}, "b -> d is both required and excluded"),
    ],
)
def test_what_cannot_be_required_or_excluded_is_said(given_arms, message):
    with pytest.raises(InfeasibleError) as refusal:
        Path(TRIANGLE, "a", "d").best_given(np.ones(5), **given_arms)
    assert str(refusal.value) == message


@pytest.mark.parametrize("arms", [[5], [-1]])
def test_required_and_excluded_arms_must_be_there(arms):
    with pytest.raises(ValueError, match=r"^required arms must be from 0 to 4, got"):
        Path(TRIANGLE, "a", "d").best_given(np.ones(5), required=arms)
    with pytest.raises(ValueError, match=r"^excluded arms must be from 0 to 4, got"):
        Path(TRIANGLE, "a", "d").best_given(np.ones(5), excluded=arms)


def test_with_required_arms_ties_still_fall_at_random():
    constraint, rng = Path([*TRIANGLE, ("b", "c")], "a", "d"), np.random.default_rng(0)
    answers = {
        tuple(constraint.best_given(np.zeros(6), rng, required=[4]).indices.tolist()) for _ in range(60)
    }  # false alarm: 2^-59
    assert answers == {(0, 1, 4), (0, 5, 4)}


# -- ties ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("costs", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_equal_streets_are_taken_equally_often(directed, costs):
    """Four parallel streets, 400 draws. False alarms: 1e-6 by Chernoff, any seed."""
    edges = [("a", "b")] * 4 + [("b", "c"), ("c", "b"), ("c", "d"), ("b", "d")]
    constraint, rng = Path(edges, "a", "d", directed=directed, costs=costs), np.random.default_rng(0)
    taken = np.zeros(4, dtype=int)
    for _ in range(400):
        taken[constraint.best(np.full(8, -1.0), rng=rng).indices[0]] += 1
    assert 2 * 4 * min(tail_bound(int(n), 400, 1 / 4) for n in taken) >= FALSE_ALARM


# -- input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1), (1, 2), (0, 2)],
        [[0, 1], [1, 2], [0, 2]],
        iter([(0, 1), (1, 2), (0, 2)]),
        np.array([[0, 1], [1, 2], [0, 2]]),
        np.array([[0, 1], [1, 2], [0, 2]], dtype=np.uint8),
        np.array([[0, 1], [1, 2], [0, 2]], dtype=object),
        np.array([[0, 1], [1, 2], [0, 2]], dtype=float),
    ],
    ids=lambda edges: type(edges).__name__ + str(getattr(edges, "dtype", "")),
)
def test_edges_may_be_any_pairs(edges):
    constraint = Path(edges, 0, 2)
    assert constraint.best([1.0, 1.0, 0.0]).indices.tolist() == [0, 1]
    assert constraint.labels == [0, 1, 2]


@pytest.mark.parametrize("names", ["abc", [None, (1, 2), frozenset()], [1.5, "1.5", -1]])
def test_nodes_may_be_anything_hashable(names):
    one, two, three = names
    assert Path([(one, two), (two, three)], one, three).best([1.0, 2.0]).indices.tolist() == [0, 1]
    assert Path(["ab", "bc"], "a", "c").best([1.0, 2.0]).indices.tolist() == [0, 1]
    assert Path(np.array(["ab", "bc"]).view("U1").reshape(2, 2), "a", "c").k == 2


@pytest.mark.parametrize(
    ("edges", "ends", "message"),
    [
        ([], "ab", "edges must be pairs of nodes, got none"),
        (np.zeros((0, 2), dtype=int), "ab", "edges must be pairs of nodes, got none"),
        (np.zeros((2, 3), dtype=int), "ab", "edges must be pairs of nodes, (n_arms, 2), got an array of shape (2, 3)"),
        (5, "ab", "edges must be pairs of nodes or a networkx graph, got int"),
        (["ab", "abc"], "ab", "edges must be pairs of nodes, edge 1 is 'abc'"),
        (["ab", 7], "ab", "edges must be pairs of nodes, edge 1 is 7"),
        ([(["a"], ["b"])], "ab", "nodes must be hashable labels: numbers, strings, tuples"),
        (["ab"], "aa", "source and target must be two nodes, both are 'a'"),
        (["ab"], "zb", "source 'z' is on no edge; the nodes are 'a', 'b'"),
        (["ab", "cd", "ef", "fg"], "az", "target 'z' is on no edge; the nodes are 'a', 'b', 'c', 'd', 'e' and 2 more"),
        (["ba"], "ab", "no path leads from 'a' to 'b'; no edge leaves it"),
        (["ax", "xy", "yx", "zb"], "ab", "no path leads from 'a' to 'b'; reachable are 'x', 'y'"),
    ],
)  # fmt: skip
def test_every_wrong_graph_gets_one_sentence(edges, ends, message):
    with pytest.raises(ValueError) as refusal:
        Path(edges, *ends)
    assert str(refusal.value) == message


def test_a_path_that_is_not_there_is_infeasible_in_undirected_graphs_too():
    with pytest.raises(InfeasibleError, match=r"^no path leads from 'a' to 'b'; reachable are 'x'$"):
        Path(["xa", "zb"], "a", "b", directed=False)


def test_scores_for_another_number_of_arms_are_refused():
    with pytest.raises(ValueError, match=r"^Path has 5 edges, got 4 arms$"):
        Path(TRIANGLE, "a", "d").best(np.ones(4))


def test_arms_that_are_not_there_are_refused():
    for indices in ([0, 5], [-1]):
        with pytest.raises(ValueError, match=r"^indices must be from 0 to 4, got"):
            Path(TRIANGLE, "a", "d").violation(indices)


def test_a_path_and_a_separate_cycle_are_not_a_path():
    edges = ["ab", "cd", "de", "ec", "ff"]
    for directed in (True, False):
        constraint = Path(edges, "a", "b", directed=directed)
        assert constraint.violation([0]) == 0.0
        assert constraint.violation([0, 1, 2, 3]) == 3.0
        assert constraint.violation([0, 4]) == 1.0
        assert constraint.violation([0, 0]) == 1.0
        assert constraint.violation([]) == 2.0


def test_a_copy_with_a_change_and_through_pickle():
    edges = np.array([[0, 1], [1, 2], [2, 1], [1, 3], [2, 3]])
    constraint = Path(edges, 0, 3)
    edges[:] = 9  # what was given may change
    back = constraint.with_(source=3, target=0, directed=False, costs=True)
    assert back.best(-np.ones(5)).indices.tolist() == [3, 0]
    assert (back.directed, back.costs, constraint.costs) == (False, True, False)
    assert pickle.loads(pickle.dumps(constraint)).best(-np.ones(5)).indices.tolist() == [0, 3]
    assert not list(constraint.limits([0, 3]))
    assert (
        repr(back)
        == "Path(edges=[[0, 1], [1, 2], [2, 1], [1, 3], [2, 3]], source=3, target=0, directed=False, costs=True)"
    )


# -- size ----------------------------------------------------------------------------------------


def grid(side, both_ways):
    crossing = np.arange(side * side).reshape(side, side)
    right = np.stack([crossing[:, :-1].ravel(), crossing[:, 1:].ravel()], axis=1)
    down = np.stack([crossing[:-1].ravel(), crossing[1:].ravel()], axis=1)
    forth = np.concatenate([right, down])
    return np.concatenate([forth, forth[:, ::-1]]) if both_ways else forth


def test_on_a_large_grid_the_algorithms_agree_with_scipy_and_with_one_another():
    rng = np.random.default_rng(0)
    edges = grid(60, both_ways=True)
    costs = rng.random(len(edges))
    expected = dijkstra(coo_array((costs, edges.T.astype(np.int32)), shape=(3600, 3600)).tocsr(), indices=0)[-1]
    heights = rng.standard_normal(3600)
    slopes = heights[edges[:, 1]] - heights[edges[:, 0]]  # every path from here to there gains the same
    for directed, taken in [(True, edges), (False, grid(60, both_ways=False))]:
        constraint = Path(taken, 0, 3599, directed=directed)
        answer = constraint.best(-costs[: len(taken)])
        assert constraint.violation(answer.indices) == 0.0
        if directed:
            assert answer.value == pytest.approx(-expected)
            sloped = constraint.best(slopes - costs)
            assert sloped.value == pytest.approx(heights[-1] - heights[0] - expected)
            assert sloped.indices.tolist() == answer.indices.tolist()


def test_a_long_line_is_no_trouble():
    """20,000 edges in a row: nothing is recursive."""
    line = np.stack([np.arange(20_000), np.arange(1, 20_001)], axis=1)
    for directed in (True, False):
        answer = Path(line, 0, 20_000, directed=directed).best(np.full(20_000, -1.0))
        assert answer.indices.tolist() == list(range(20_000))


def test_an_integer_program_on_many_edges_warns_and_costs_do_not():
    """A ring of 1,101 nodes there and back, and one small cycle that is a gain."""
    ring = np.stack([np.arange(1101), (np.arange(1101) + 1) % 1101], axis=1)
    edges = np.concatenate([ring, ring[:, ::-1]])
    scores = np.full(2202, -1.0)
    scores[[5, 1106]] = 2.0
    constraint = Path(edges, 0, 10)
    sentence = (
        "Path has 2198 edges for an integer program, which may take long, as some cycle has a positive sum of scores; "
        "if scores are costs, give costs=True"
    )
    with pytest.warns(UserWarning, match=f"^{sentence}$"):
        answer = constraint.best(scores)
    assert answer.indices.tolist() == list(range(10))
    assert constraint.with_(costs=True).best(scores).indices.tolist() == list(range(10))
    with pytest.warns(UserWarning, match=r"some arms are required; require fewer arms or remove cycles$"):
        assert constraint.best_given(-np.ones(2202), required=[500 + 1101]).indices.size == 1091


# -- costs that tie ----------------------------------------------------------------------------------


def well_connected(n_nodes=200, out=8):
    rng = np.random.default_rng(0)
    tails = np.repeat(np.arange(n_nodes), out)
    edges = np.stack([tails, rng.integers(n_nodes, size=tails.size)], axis=1)
    return Path(edges, 0, n_nodes - 1, costs=True), len(edges)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_edges_that_cost_nothing_make_no_long_paths(share):
    """200 nodes; uniform costs give 5 edges on average, and walking about among free edges gave 166."""
    constraint, n_edges = well_connected()
    rng = np.random.default_rng(1)
    lengths = []
    for _ in range(30):
        costs = np.where(rng.random(n_edges) < share, 0.0, 0.01 * rng.random(n_edges))
        selection = constraint.best(-costs, None, rng)
        assert constraint.violation(selection.indices) == 0.0
        lengths.append(len(selection.indices))
    assert np.mean(lengths) < 9


def test_of_paths_that_cost_the_same_each_is_drawn():
    """300 draws miss the longest, drawn with a chance above 0.1, in under 1e-13 of seeds."""
    edges = [(0, 1), (1, 5), (0, 2), (2, 5), (0, 3), (3, 4), (4, 5)]
    constraint, rng = Path(edges, 0, 5, costs=True), np.random.default_rng(0)
    drawn = [tuple(constraint.best(np.zeros(7), None, rng).indices.tolist()) for _ in range(300)]
    assert set(drawn) == {(0, 1), (2, 3), (4, 5, 6)}
    assert drawn.count((4, 5, 6)) < 150


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_free_edges_do_not_change_the_value_of_a_path(seed):
    rng = np.random.default_rng(seed)
    edges = np.concatenate([[[0, 1], [1, 5]], rng.integers(6, size=(12, 2))])
    scores = -rng.integers(0, 3, len(edges)) / 4
    short, any_of_them = Path(edges, 0, 5, costs=True), Path(edges, 0, 5)
    found = short.best(scores, None, rng)
    assert short.violation(found.indices) == 0.0
    assert found.value == any_of_them.best(scores, None, rng).value
