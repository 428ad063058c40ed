"""The reproduction in a few sentences: what the paper expects, what was observed, and where armful differs."""

from collections.abc import Sequence

from armful.experiments._page import code, joined, plus_minus
from armful.experiments._pairs import FEWEST, Difference, difference
from armful.experiments._reproduction import KINDS, ROUNDS_PER_K, Reproduction
from armful.experiments._standing import Standing
from armful.experiments.results import Result

PAPERS_RULE, OURS = "CappedC2UCB-paper", "CappedC2UCB"

ALIKE = 1.15
"""Policies whose regret is within this factor of the lowest are "almost the same"."""

OPEN = 0.25
"""If armful's rule may have lost more than this fraction of the paper's regret beyond it, the verdict is left open."""

EXPECTED = (
    "The paper expects the regret (what is lost against always choosing the best allowed set: lower is better) of its "
    f"own rule, here {code(PAPERS_RULE)}, to grow most slowly on the grouped type as k, the number of arms chosen in "
    "each of T rounds, grows, and all policies but epsilon-greedy to be almost the same on the uniform type."
)


def verdict(reproduction: Reproduction) -> list[str]:
    """Return three sentences: what was expected, what was observed, and where armful differs from the paper."""
    return [EXPECTED, observed(reproduction), differs(reproduction)]


def observed(reproduction: Reproduction) -> str:
    """Return what was observed at the largest size for the paper's own policies."""
    k = max(reproduction.protocol.sizes)
    on_grouped, on_uniform = ([r for r in reproduction.of(kind) if r.k == k and r.policy != OURS] for kind in KINDS)
    grouped_as_expected, grouped = _lowest_is_the_papers(on_grouped)
    uniform_as_expected, uniform = _almost_the_same(on_uniform)
    begin = ("This was not observed", "Half of this was observed", "This was observed")[
        grouped_as_expected + uniform_as_expected
    ]
    runs = reproduction.protocol.runs
    return (
        f"{begin} (leaving out armful's own rule; k = {k}, T = {ROUNDS_PER_K * k}, {runs} run{'s' * (runs > 1)}): "
        f"on the grouped type {grouped}; on the uniform type {uniform}."
    )


def differs(reproduction: Reproduction) -> str:
    """Return how armful's rule compares with the paper's at every size and on both types."""
    begin = (
        f"armful's own {code(OURS)} clips every score at B, the largest mean reward, and breaks ties there by the "
        "estimate, where the paper's rule lifts every uncertain arm to B"
    )
    runs = reproduction.protocol.runs
    if runs < FEWEST:
        return f"{begin}; it takes {FEWEST} runs at least to tell the two apart."
    pairs = rule_differences(reproduction)
    above = _in_words([size for size, (d, _) in pairs.items() if d.low > 0])
    below = _in_words([size for size, (d, _) in pairs.items() if d.high < 0])
    worst = max(d.high / papers.mean for d, papers in pairs.values())
    at_most = f" (with 95 % confidence at most {100 * worst:.0f} % more, at any size)" if worst > 0 else ""
    if above:
        return f"{begin}; it lost clearly more than the paper's rule with {above}{at_most}."
    if worst > OPEN:
        return f"{begin}; {runs} runs are too few to say whether it lost more than the paper's rule{at_most}."
    clearly = f", and clearly less with {below}" if below else ""
    return (
        f"{begin}; up to noise it lost no more than the paper's rule at every size and on both types{clearly}{at_most}."
    )


def rule_differences(reproduction: Reproduction) -> dict[tuple[str, int], tuple[Difference, Result]]:
    """Return how much more armful's rule lost than the paper's, and the paper's result, by type and k.

    The intervals hold at once for all types and sizes.
    """
    sizes = sorted(reproduction.protocol.sizes)
    found = {}
    for kind in KINDS:
        ours, papers = ({r.k: r for r in reproduction.of(kind, policy)} for policy in (OURS, PAPERS_RULE))
        for k in sizes:
            found[kind, k] = difference(ours[k], papers[k], n_pairs=len(KINDS) * len(sizes)), papers[k]
    return found


def too_few_runs(reproduction: Reproduction) -> list[str]:
    """Return, for each type at the largest size, which policies the runs do not tell from the lowest."""
    found = []
    for kind in KINDS:
        standing = Standing.of(kind, reproduction.of(kind))
        differences = [standing.behind[policy, standing.sizes[-1]] for policy in standing.policies]
        if any(d is not None and not d.is_clear for d in differences):
            found.append(f"{kind.capitalize()} type, {standing.sentences()[-1]}")
    return found


def _lowest_is_the_papers(results: Sequence[Result]) -> tuple[bool, str]:
    """Return whether the paper's rule lost least, or may have, and a sentence on it."""
    first, second = sorted(results, key=lambda result: result.mean)[:2]
    papers = next(result for result in results if result.policy == PAPERS_RULE)
    rival = second if first is papers else first
    clear = difference(papers, rival, n_pairs=len(results) * (len(results) - 1) // 2).is_clear
    doubt = "" if clear else ", which these runs do not tell apart"
    if rival is first:
        return not clear, f"{code(rival.policy)} lost least, and the paper's rule {_times(papers, rival)}{doubt}"
    lost = plus_minus(papers.mean, papers.stderr)
    return True, f"the paper's rule lost least, {lost}, and {code(rival.policy)} next, {_times(rival, papers)}{doubt}"


def _almost_the_same(results: Sequence[Result]) -> tuple[bool, str]:
    """Return whether all but epsilon-greedy lost about as much, and a sentence on it."""
    lowest = min(results, key=lambda result: result.mean)
    others = sorted((r for r in results if r.policy != "EpsilonGreedy"), key=lambda r: r.mean)
    if others[-1].mean <= ALIKE * lowest.mean:
        most = others[-1].mean / lowest.mean
        return True, f"all {len(others)} policies but epsilon-greedy lost at most {most:.2f} times the lowest"
    worst, beside = others[-1], [r for r in others if r is not lowest]
    alike = [r for r in beside if r.mean <= ALIKE * lowest.mean]
    return False, (
        f"{code(lowest.policy)} lost least, {len(alike) or 'none'} of the {len(beside)} others (epsilon-greedy aside) "
        f"lost at most {ALIKE} times as much, and {code(worst.policy)} {_times(worst, lowest)}"
    )


def _times(result: Result, other: Result) -> str:
    return f"{result.mean / other.mean:.2f} times as much"


def _in_words(sizes: Sequence[tuple[str, int]]) -> str:
    """Return types and sizes in words, like "k = 2 and 4 on the grouped type"."""
    by_kind = {kind: [str(k) for each, k in sizes if each == kind] for kind in KINDS}
    return joined([f"k = {joined(sizes)} on the {kind} type" for kind, sizes in by_kind.items() if sizes])
