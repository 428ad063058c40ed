import csv
import math
from html.parser import HTMLParser

import numpy as np
import pytest

from armful.environments import PaperInstance
from armful.experiments import _reproduction as reproduction
from armful.experiments._report import bounds_table, write
from armful.experiments._reproduction import ALL_SIGNS, KINDS, ROUNDS_PER_K, B, Protocol, paper_policies
from armful.experiments.running import run_cell


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction")
    done = reproduction.run(Protocol(sizes=(2, 3), runs=3), out / "cells", workers=1)
    return done, write(done, out, seconds=1.0)


def test_the_policies_are_those_of_the_papers_table():
    made = {name: recipe.make(n_features=7) for name, recipe in paper_policies().items()}
    assert list(made) == [
        "EpsilonGreedy",
        "C2UCB",
        "ArmwiseThompson",
        "CombLinUCB",
        "CombLinTS",
        "CappedC2UCB-paper",
        "CappedC2UCB",
    ]
    assert made["EpsilonGreedy"].epsilon == 0.05
    for name in ("C2UCB", "ArmwiseThompson", "CappedC2UCB-paper", "CappedC2UCB"):
        assert (made[name].ridge, made[name].radius) == (7.0, 7**0.5)
    assert (made["CombLinUCB"].ridge, made["CombLinUCB"].noise, made["CombLinUCB"].radius) == (1.0, 1.0, 7**0.5)
    assert (made["CombLinTS"].ridge, made["CombLinTS"].noise) == (1.0, 1.0)
    assert [made[name].rule for name in ("CappedC2UCB-paper", "CappedC2UCB")] == ["paper", "clip"]
    assert made["CappedC2UCB"].cap == 0.9


@pytest.mark.slow
def test_the_table_has_every_type_policy_and_size(small):
    with small[1].with_name("regret.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["type", "policy", "k", "T", "pulled", "runs", "mean", "stderr"]
    assert {(r["type"], r["policy"], int(r["k"])) for r in rows} == {
        (kind, policy, k) for kind in KINDS for policy in paper_policies() for k in (2, 3)
    }
    assert all(int(r["T"]) == 20 * int(r["k"]) and int(r["pulled"]) == 20 * int(r["k"]) ** 2 for r in rows)
    assert all(int(r["runs"]) == 3 and float(r["mean"]) > 0 for r in rows)


@pytest.mark.slow
def test_a_number_of_the_table_is_that_of_its_cell_run_alone(small):
    cell = next(c for c in Protocol(sizes=(2, 3), runs=3).paper_cells({}) if c.policy == "CombLinTS" and c.k == 3)
    again = run_cell(cell)
    assert [r.mean for r in small[0].of(cell.environment, "CombLinTS") if r.k == 3] == [again.mean]


def test_the_bounds_are_shown_with_the_regret_they_bound(small):
    """Written out anew for k = 3: R = 1, lambda = d = 7, L = 4, B = 0.9, delta = 0.1."""
    k, T, d = 3, 60, 7
    G = d * math.log(1 + 16 * k * T / (d * 7))
    S = math.sqrt(4 / (k * T / 2) + 0.01 + 0.81)
    beta = math.sqrt(d * math.log((1 + 16 * k * T / 7) / 0.1)) + S * math.sqrt(7)
    main = 2 * beta * math.sqrt(2 * k * T * G)
    general = main + min(4 * beta * 4 * k / math.sqrt(7), 4 * 0.9 * k * k) * G
    by_rounds = 2 * beta * math.sqrt(k * T * G / math.log(2)) + 2 * 0.9 * k * G / math.log(2)
    numbers = [2 * 0.9 * k * T, general, main + 4 * 0.9 * k * G, by_rounds]
    expected = "".join(f"<td>{number:,.0f}</td>" for number in numbers)
    assert expected in bounds_table(small[0])


def test_the_campaign_caps_at_its_own_bound():
    (bound,) = {cell.environment_recipe.options["bound"] for cell in Protocol().campaign_cells()}
    caps = {
        cell.policy_recipe.options["cap"] for cell in Protocol().campaign_cells() if "cap" in cell.policy_recipe.options
    }
    assert caps == {bound}


@pytest.mark.parametrize("k", [2, 3, 32])
def test_no_mean_reward_exceeds_the_cap_of_the_capped_rules(k):
    means = [shown.mean for shown in PaperInstance(k=k).rounds(ROUNDS_PER_K * k, np.random.default_rng(0))]
    assert max(abs(mean).max() for mean in means) <= B


class Fetched(HTMLParser):
    def __init__(self):
        super().__init__()
        self.addresses, self.images, self.headings, self.text = [], 0, 0, ""

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        self.images += tag == "img"
        self.headings += tag == "h2"

    def handle_data(self, data):
        self.text += data


def test_the_page_stands_alone_and_says_everything(small):
    page = Fetched()
    page.feed(small[1].read_text())
    assert page.text.index("Expected.") < page.text.index("What was run") < page.text.index("Figure (a)")
    assert page.images == 4
    assert all(address.startswith("data:image/svg+xml;base64,") for address in page.addresses)
    for words in (
        "Expected. The paper expects the regret (what is lost",
        "Observed. ",
        "Where armful differs. ",
        "3 runs leave questions open.",
        "Lower is better",
        "armful's rule and the paper's",
        "growth exponent",
        "Bounds and the measured regret",
        "Chosen where the paper is silent",
        "Seed 0",
        "numpy",
        "This run took",
        "Figure (d) takes all signs of theta* positive, with --full too.",
        *paper_policies(),
    ):
        assert words in page.text
    assert not any(mark in page.text for mark in ("nan", "None", "inf "))


def test_figures_are_there_as_png_and_svg(small):
    for name in ("grouped", "uniform", "campaign", "cap"):
        for ending in ("png", "svg"):
            assert small[1].with_name(f"figure-{name}.{ending}").stat().st_size > 1000


def test_the_worst_signs_are_those_of_the_largest_regret_on_other_seeds(tmp_path, monkeypatch):
    protocol = Protocol(sizes=(2,), runs=2, seed=4, worst_signs=True)
    cells = protocol.search_cells()
    assert {c.environment_recipe.options["signs"] for c in cells} == set(ALL_SIGNS)
    assert len(cells) == 2 * 7 * 16
    assert {c.seed for c in cells} == {5}
    assert {c.seed for c in protocol.paper_cells({})} == {4}
    one_policy = [c for c in cells if c.environment == "grouped" and c.policy == "C2UCB"]
    monkeypatch.setattr(Protocol, "search_cells", lambda self: one_policy)
    chosen = reproduction._worst_signs(protocol, tmp_path, 1, None)
    means = {c.environment_recipe.options["signs"]: run_cell(c).mean for c in one_policy}
    assert means[chosen["grouped", "C2UCB"]] == max(means.values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sizes": ()}, "at least one"),
        ({"sizes": (2, 2)}, "different"),
        ({"sizes": (0,)}, "k must be"),
        ({"sizes": (2, 1)}, "at least 2, got 1"),
        ({"runs": 10**12}, "1000000000000 runs of 320 rounds would take 17,920,000 GB of memory"),
        ({"runs": 10**400}, "GB of memory, this machine has"),
    ],
)
def test_impossible_protocols_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Protocol(**wrong)
