from dataclasses import replace

import pytest

from armful import EpsilonGreedy, simulate
from armful.environments import Slates
from armful.experiments import Recipe, Result, run_cells
from tests.experiments.test_plan import TINY


def test_a_cell_gives_what_simulate_gives(tmp_path):
    cell = next(cell for cell in TINY.cells() if cell.policy == "greedy" and cell.k == 3)
    (result,) = run_cells([cell], tmp_path)
    direct = simulate(
        EpsilonGreedy(n_features=4, epsilon=0.0), Slates(n_arms=12, n_features=4, k=3), rounds=8, repetitions=3, seed=0
    )
    assert result.regret == direct.total_regret.tolist()
    assert result.mean == pytest.approx(direct.mean)
    assert result.stderr == pytest.approx(direct.stderr)
    assert result.curve[-1] == pytest.approx(direct.mean)
    assert result.pulled == 24


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers(tmp_path):
    one = run_cells(TINY.cells(), tmp_path / "one", workers=1)
    two = run_cells(TINY.cells(), tmp_path / "two", workers=2)
    assert [r.regret for r in one] == [r.regret for r in two]
    assert [(r.policy, r.k) for r in one] == [(c.policy, c.k) for c in TINY.cells()]


class Interrupt(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_run_goes_on_where_it_was(tmp_path, workers):
    ran = []

    def stop_after_two(result):
        ran.append(result)
        if len(ran) == 2:
            raise Interrupt

    with pytest.raises(Interrupt):
        run_cells(TINY.cells(), tmp_path, workers=workers, progress=stop_after_two)
    kept = len(list(tmp_path.glob("*.json")))
    assert kept == 2

    reported = []
    results = run_cells(TINY.cells(), tmp_path, workers=workers, progress=reported.append)
    assert reported.count(None) == kept
    assert len(reported) == len(results) == 4
    assert [r.regret for r in results] == [r.regret for r in run_cells(TINY.cells(), tmp_path / "fresh")]


def test_a_half_written_or_foreign_result_is_run_again(tmp_path):
    first = run_cells(TINY.cells(), tmp_path)
    damaged, foreign = sorted(tmp_path.glob("*.json"))[:2]
    damaged.write_text(damaged.read_text()[:40])
    foreign.write_text('{"other": 1}')
    reported = []
    again = run_cells(TINY.cells(), tmp_path, progress=reported.append)
    assert sum(isinstance(each, Result) for each in reported) == 2
    assert [r.regret for r in again] == [r.regret for r in first]


def test_nothing_half_written_is_left_behind(tmp_path):
    run_cells(TINY.cells(), tmp_path)
    assert not list(tmp_path.glob("*.part"))


def test_an_environment_with_an_objective_gives_a_regret_counted_from_the_ratios_share(tmp_path):
    varied = Recipe("Slates", {"n_arms": 8, "n_features": 4, "variety": 1.0})
    plan = replace(TINY, environments={"varied": varied}, sizes=[(3, 4)])
    for result in run_cells(plan.cells(), tmp_path):
        policy = next(c for c in plan.cells() if c.policy == result.policy).policy_recipe.make(n_features=4)
        direct = simulate(policy, Slates(n_arms=8, n_features=4, k=3, variety=1.0), rounds=4, repetitions=3, seed=0)
        assert result.regret == direct.total_regret.tolist()
        assert result.mean < 0  # greedy is nearly always better than 1 - 1/e of the best
