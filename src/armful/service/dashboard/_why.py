"""Why a decision was made, in one plain sentence."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from armful import policies
from armful.campaigns.audit._finding import number, quoted
from armful.campaigns.settings import PolicySettings

ExploresBy = Literal["bonus", "draw", "random"]
"""How a policy explores: by a bonus where little is known, by scores drawn from what might be true, or by rounds whose
scores are random."""

HOLDOUT = "Drawn at random for the holdout, without the model: what the model chooses is compared with such sets."
PARTS = {"bonus": "bonus for what is not known yet", "draw": "from a random draw"}


def explores_by(settings: PolicySettings) -> ExploresBy:
    """Return how the policy of a campaign explores.

    Examples
    --------
    >>> [explores_by(PolicySettings(kind=kind)) for kind in ("CappedC2UCB", "CombLinTS", "EpsilonGreedy")]
    ['bonus', 'draw', 'random']
    """
    kind = getattr(policies, settings.kind)
    if issubclass(kind, policies.EpsilonGreedy):
        return "random"
    return "draw" if kind.is_thompson else "bonus"


def share_of(share: str, arms: Sequence[Mapping[str, Any]]) -> str:
    """Return the share of a decision: `explored` if all of its arms were drawn at random to explore.

    Examples
    --------
    >>> share_of("chosen", [{"share": "explored"}]), share_of("chosen", [{"share": "explored"}, {"share": "chosen"}])
    ('explored', 'chosen')
    """
    return "explored" if arms and all(arm["share"] == "explored" for arm in arms) else share


def why(decision: Mapping[str, Any], by: ExploresBy = "bonus") -> str:
    """Return why the arms of a decision were chosen.

    Parameters
    ----------
    decision : mapping
        With `share`, `chosen` and `runner_up`, as the dashboard has them.
    by : {"bonus", "draw", "random"}, default "bonus"
        How the policy explores.

    Examples
    --------
    >>> arm = {"id": "a", "share": "chosen", "predicted": 0.25, "bonus": 0.05, "score": 0.3, "capped": False}
    >>> print(why({"share": "chosen", "chosen": [arm], "runner_up": {"id": "b", "score": 0.28}}))
    `a` scores 0.3: 0.25 predicted + 0.05 bonus for what is not known yet; the best left out, `b`, scores 0.28.
    """
    arms = decision["chosen"]
    if decision["share"] == "holdout":
        return HOLDOUT
    if not arms:
        return "Its arms were erased, and with them why they were chosen."
    picked = [arm for arm in arms if arm["share"] != "explored" and arm["score"] is not None]
    n_explored = sum(arm["share"] == "explored" for arm in arms)
    drawn = f"{n_explored:,} of {len(arms):,} arms {'was' if n_explored == 1 else 'were'} drawn at random to explore"
    if not picked:
        return f"{drawn[0].upper()}{drawn[1:]}."
    best, last = max(picked, key=_score), min(picked, key=_score)
    parts = [_first(best, by), _last(last, best), _left_out(decision["runner_up"], last), drawn if n_explored else ""]
    return "; ".join(filter(None, parts)) + "."


def _score(arm: Mapping[str, Any]) -> float:
    return float(arm["score"])


def _first(arm: Mapping[str, Any], by: ExploresBy) -> str:
    """Return the score of an arm and what it is the sum of."""
    score = f"{quoted(arm['id'])} scores {number(arm['score'])}"
    predicted, added = arm["predicted"], arm["bonus"]
    if not added:
        return f"{score}, its predicted reward"
    if by == "random":
        return f"All arms had a random score this time, to explore: {score}"
    sign = "+" if added > 0 else "\u2212"
    cap = ", the cap" if arm["capped"] else ""
    return f"{score}{cap}: {number(predicted)} predicted {sign} {number(abs(added))} {PARTS[by]}"


def _last(last: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    return "" if last is best else f"the last that got in, {quoted(last['id'])}, scores {number(last['score'])}"


def _left_out(arm: Mapping[str, Any] | None, last: Mapping[str, Any]) -> str:
    if arm is None or arm["score"] is None:
        return ""
    text = f"the best left out, {quoted(arm['id'])}, scores {number(arm['score'])}"
    return f"{text}, and the constraint kept it out" if arm["score"] > last["score"] else text
