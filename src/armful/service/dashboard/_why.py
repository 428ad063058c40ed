"""Why a decision was made, in one plain sentence."""

from typing import Any

from armful.campaigns.audit._finding import number, quoted

HOLDOUT = "Drawn at random for the holdout, without the model: what the model chooses is compared with such sets."


def why(decision: dict[str, Any]) -> str:
    """Return why the arms of a decision were chosen.

    Parameters
    ----------
    decision : dict
        With `share`, `chosen` and `runner_up`, as the dashboard has them.

    Examples
    --------
    >>> arm = {"id": "a", "share": "chosen", "predicted": 0.25, "bonus": 0.05, "score": 0.3, "capped": False}
    >>> print(why({"share": "chosen", "chosen": [arm], "runner_up": {"id": "b", "score": 0.28}}))
    `a` leads with a predicted reward of 0.25 and a bonus of 0.05 for what is not known yet; the best arm that was left
    out, `b`, scores 0.28.
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
    best = max(picked, key=lambda arm: arm["score"])
    parts = [_leads(best), _left_out(decision["runner_up"]), drawn if n_explored else ""]
    return "; ".join(filter(None, parts)) + "."


def _leads(arm: dict[str, Any]) -> str:
    predicted, bonus = arm["predicted"], arm["bonus"]
    if bonus is None or bonus <= 0:
        return f"{quoted(arm['id'])} leads with a predicted reward of {number(predicted)}"
    text = f"a predicted reward of {number(predicted)} and a bonus of {number(bonus)} for what is not known yet"
    return f"{quoted(arm['id'])} leads with {text}{', up to the cap' if arm['capped'] else ''}"


def _left_out(arm: dict[str, Any] | None) -> str:
    if arm is None or arm["score"] is None:
        return ""
    return f"the best arm that was left out, {quoted(arm['id'])}, scores {number(arm['score'])}"
