"""A plan in plain words."""

from collections.abc import Iterator

from armful.campaigns.planning._records import PlanResult
from armful.campaigns.settings import Settings

EXPLORED = 0.1
"""The fraction of exploration below which a round goes by what is known."""


def sentences(plan: PlanResult) -> Iterator[str]:
    """Yield what a plan says, one sentence or two for each topic."""
    yield _setting(plan)
    yield _cadence(plan)
    if plan.cap is not None:
        yield _cap(plan)
    yield _exploring(plan)
    yield _lift(plan)
    yield from _holdout(plan)
    yield (
        f"This assumes a mean reward of {plan.base_rate:.3g} with a standard deviation of {plan.noise:.3g}, and "
        f"customers whose means differ by {100 * plan.spread:.3g} % of it: "
        "give your own mean by --base-rate if you know it."
    )


def left_out(settings: Settings) -> list[str]:
    """Return what a plan does not simulate of the settings, in a sentence; none if there is nothing."""
    choose = settings.choose
    rules = {
        "the quotas": choose.quotas,
        "the budget": choose.budget,
        "who is excluded": choose.exclude,
        "who must be chosen": choose.require,
    }
    found = [name for name, value in rules.items() if value]
    if not found:
        return []
    names = " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)
    return [f"Left out of this simulation: {names}. They leave less to choose from, so expect a smaller lift."]


def _setting(plan: PlanResult) -> str:
    text = f"{_count(plan.rounds, 'round')} of {plan.k:,} contacts among {plan.n_customers:,} customers"
    if plan.window_rounds:
        text += f", with outcomes that come {_count(plan.window_rounds, 'round')} late"
    if plan.n_sampled < plan.n_customers:
        each = plan.n_customers / plan.n_sampled
        text += f"; simulated on {plan.n_sampled:,} of them, each standing for {each:,.3g}"
    return text + "."


def _cadence(plan: PlanResult) -> str:
    between = plan.k * min(1 + plan.window_rounds, plan.rounds)
    rule = f"About {max(round(plan.cadence), 1):,} contacts can go out before outcomes are learned without losing by it"
    if between <= plan.cadence:
        return f"{rule}, and here it is {between:,}: the rounds are short enough."
    return f"{rule}, and here it is {between:,}: more rounds of fewer contacts would learn faster, where possible."


def _cap(plan: PlanResult) -> str:
    first = plan.rounds_to_learn
    blind = min(plan.window_rounds + 1, plan.rounds)
    text = f"In the first {_count(blind, 'round')} no outcome is known" if blind > 1 else "In round 1 nothing is known"
    if first is None:
        left = plan.per_round[-1].at_cap
        if left < plan.k:
            return f"{text}, and that is all there is: nothing learned is ever used."
        return (
            f"{text}, and in the last so little is known that {left:,} customers, more than the {plan.k:,} to choose, "
            f"could still be worth {plan.cap:g}, the highest mean reward (cap in campaign.toml): lower it if it cannot "
            "be that high, or plan more rounds."
        )
    if first == blind + 1:
        return f"{text}; from round {first} on the expected rewards decide."
    return (
        f"{text}, and until round {first - 1} so little is known that more customers than can be chosen could be worth "
        f"the highest mean reward, {plan.cap:g}; from round {first} on the expected rewards decide."
    )


def _exploring(plan: PlanResult) -> str:
    first, last = plan.per_round[0], plan.per_round[-1]
    text = f"Of the chosen, {_percent(first.exploring)} are there to learn more of people like them in round 1"
    if last is first:
        return text + "."
    text += f" and {_percent(last.exploring)} in round {last.number}"
    settled = next((each.number for each in plan.per_round if each.exploring < EXPLORED), last.number)
    return text + (f"; in round {settled} they are fewer than a tenth." if settled < last.number else ".")


def _lift(plan: PlanResult) -> str:
    brings = f"Compared with customers drawn at random a contact would bring {_signed(plan.lift)}"
    if len(plan.per_round) == 1:
        return f"{brings}; who knew everything would have {_signed(plan.best_lift)}."
    first, last = plan.per_round[0].lift, plan.per_round[-1].lift
    return (
        f"{brings} over all rounds, {_signed(first)} in the first and {_signed(last)} in the last; who knew everything "
        f"would have {_signed(plan.best_lift)} over all rounds."
    )


def _holdout(plan: PlanResult) -> Iterator[str]:
    contacts = plan.holdout * plan.k
    number = f"{contacts:,.0f}" if contacts >= 10 else f"{contacts:.2g}"
    held = f"With a holdout of {_percent(plan.holdout)} of people ({number} contacts a round)"
    if plan.holdout == 0:
        yield "Without a holdout nothing will show whether it worked."
    elif plan.smallest_lift is None:
        yield f"{held} no lift can be seen: hold out more people."
    else:
        verdict = "enough" if plan.smallest_lift <= plan.lift else "not enough"
        yield (
            f"{held} a lift of {_percent(plan.smallest_lift)} or more is seen in 80 of 100 campaigns: {verdict} for "
            f"the {_signed(plan.lift)} expected here."
        )
    for lift, share in plan.needed.items():
        if share is None:
            yield f"To see a lift of {lift} no holdout is large enough: it takes more contacts or more rounds."
        else:
            yield f"To see a lift of {lift} hold out {_percent(share)} of people."


def _percent(fraction: float) -> str:
    percent = 100 * fraction
    return f"{percent:.0f} %" if percent >= 10 or percent == round(percent) else f"{percent:.1f} %"


def _signed(fraction: float) -> str:
    return f"{100 * fraction:+.0f} %"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"
