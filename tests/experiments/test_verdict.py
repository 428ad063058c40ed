"""What the reproduction says of itself follows from its numbers."""

import re

import numpy as np
import pytest

from armful.experiments._reproduction import KINDS, Protocol, Reproduction, paper_policies
from armful.experiments._verdict import OURS, PAPERS_RULE, differs, too_few_runs, verdict
from tests.experiments.test_results import result

SIZES = (2, 4)


def reproduced(factors, runs=30, noise=0.01):
    """A reproduction in which a policy loses k times 10 times its factor, by type where that differs."""
    rng = np.random.default_rng(0)
    results = []
    for kind in KINDS:
        for k in SIZES:
            luck = rng.normal(size=runs)
            for policy in paper_policies():
                factor = factors.get((kind, policy), factors.get(policy, 1.5))
                regret = 10 * k * factor * (1 + 0.1 * luck + noise * rng.normal(size=runs))
                results.append(result(1, regret.tolist(), environment=kind, policy=policy, k=k, rounds=20 * k))
    return Reproduction(Protocol(sizes=SIZES, runs=runs), results, [], [], {})


AS_IN_THE_PAPER = {
    PAPERS_RULE: 1.0,
    OURS: 0.9,
    **{("uniform", policy): 1.1 for policy in paper_policies() if policy not in (PAPERS_RULE, OURS)},
    ("uniform", "EpsilonGreedy"): 2.0,
}


def test_a_verdict_is_three_sentences_that_explain_their_words():
    expected, observed, differing = verdict(reproduced(AS_IN_THE_PAPER))
    assert "regret (what is lost against always choosing the best allowed set: lower is better)" in expected
    assert "k, the number of arms chosen in each of T rounds" in expected
    for sentence in (expected, observed, differing):
        assert sentence.endswith(".")
        assert sentence.count(". ") == 0


def test_the_paper_confirmed():
    _, observed, _ = verdict(reproduced(AS_IN_THE_PAPER))
    assert observed.startswith("This was observed (leaving out armful's own rule; k = 4, T = 80, 30 runs): ")
    assert "on the grouped type the paper's rule lost least, 4" in observed
    assert " next, 1.49 times as much; " in observed
    assert observed.endswith(
        "on the uniform type all 5 policies but epsilon-greedy lost at most 1.11 times the lowest."
    )


def test_the_paper_half_confirmed():
    _, observed, _ = verdict(reproduced({**AS_IN_THE_PAPER, ("uniform", "ArmwiseThompson"): 1.7}))
    assert observed.startswith("Half of this was observed")
    words = "`CappedC2UCB-paper` lost least, {} of the 4 others (epsilon-greedy aside) lost at most 1.15 times as much"
    assert words.format(3) in observed
    assert observed.endswith("and `ArmwiseThompson` 1.70 times as much.")
    uniform = {("uniform", policy): 1.4 for policy in paper_policies() if policy not in (PAPERS_RULE, OURS)}
    assert words.format("none") in verdict(reproduced({**AS_IN_THE_PAPER, **uniform}))[1]


def test_the_paper_refuted():
    _, observed, _ = verdict(reproduced({"CombLinTS": 0.5, PAPERS_RULE: 1.0, OURS: 1.0}))
    assert observed.startswith("This was not observed")
    assert "`CombLinTS` lost least, and the paper's rule 2.0" in observed


def test_what_runs_do_not_tell_apart_is_said_to_be_so():
    _, observed, _ = verdict(reproduced({**AS_IN_THE_PAPER, ("grouped", "C2UCB"): 1.001}, noise=0.1))
    assert "which these runs do not tell apart" in observed


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        (
            {OURS: 0.9},
            "up to noise it lost no more than the paper's rule at every size and on both types, "
            "and clearly less with k = 2 and 4 on the grouped type and k = 2 and 4 on the uniform type.",
        ),
        ({OURS: 1.0}, "up to noise it lost no more than the paper's rule at every size and on both types (with 95 %"),
        (
            {OURS: 1.0, ("uniform", OURS): 1.3},
            "lost clearly more than the paper's rule with k = 2 and 4 on the uniform type (with 95 % confidence",
        ),
    ],
)
def test_armfuls_rule_is_compared_with_the_papers_at_every_size_and_on_both_types(ours, words):
    assert words in differs(reproduced({**AS_IN_THE_PAPER, **ours}))


@pytest.mark.parametrize("runs", [1, 4])
def test_very_few_runs_decide_nothing(runs):
    few = reproduced(AS_IN_THE_PAPER, runs=runs)
    assert differs(few).endswith("; it takes 5 runs at least to tell the two apart.")
    assert len(too_few_runs(few)) == 2


def test_runs_that_leave_much_open_are_not_called_noise():
    assert "; 6 runs are too few to say whether it lost more than the paper's rule (with 95 % confidence" in differs(
        reproduced({**AS_IN_THE_PAPER, OURS: 1.0}, runs=6, noise=0.3)
    )


def test_a_warning_says_when_runs_are_too_few():
    assert too_few_runs(reproduced(AS_IN_THE_PAPER)) == []
    found = too_few_runs(reproduced({**AS_IN_THE_PAPER, ("grouped", "C2UCB"): 0.905}, noise=0.1))
    grouped = next(sentence for sentence in found if sentence.startswith("Grouped type, k = 4, T = 80: "))
    assert re.search(r"30 runs are too few to tell it from `\w+` \(about [\d,]+ runs might be enough\)\.$", grouped)


def test_policies_that_lost_the_same_need_more_than_a_million_runs():
    regret = dict.fromkeys(paper_policies(), 1.0)
    alike = reproduced({**regret, "CombLinTS": 2.0}, noise=0.0)
    sentence = too_few_runs(alike)[0]
    assert sentence.count("(more than a million runs might be enough)") == len(regret) - 2
    assert "`CombLinTS`" not in sentence
    assert " and `" in sentence
