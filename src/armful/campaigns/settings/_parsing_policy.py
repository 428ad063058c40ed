"""The table `[policy]` of `campaign.toml`: the policy is made once, to hear what it has to say about its options."""

import re
from typing import Any

from armful import policies
from armful._signatures import parameters_of
from armful.campaigns.settings._checking import Section, nearest, word
from armful.campaigns.settings._sections import PolicySettings
from armful.policies import Policy

KINDS = {
    name: kind
    for name in policies.__all__
    if isinstance(kind := getattr(policies, name), type) and issubclass(kind, Policy) and kind is not Policy
}
GIVEN = {"n_features": "the features decide", "seed": "it stands at the top of the file"}


def parse_policy(section: Section) -> PolicySettings:
    """Return the settings of the policy."""
    kind = section.get("kind", word(*KINDS), "CappedC2UCB")
    options = {name: value for name, value in section.table.items() if name != "kind"}
    if kind == section.table.get("kind", kind):
        _refuse_options(section, kind, options)
    return PolicySettings(kind=kind, options=options)


def _refuse_options(section: Section, kind: str, options: dict[str, Any]) -> None:
    known = [name for name in parameters_of(KINDS[kind]) if name not in GIVEN]
    for name in options:
        if name in GIVEN:
            section.add((name,), f"must not be set here: {GIVEN[name]}")
        elif name not in known:
            meant = nearest(name, known)
            hint = f"its options are {', '.join(known)}" if meant is None else f"did you mean {meant}?"
            section.add((name,), f"is not an option of {kind}; {hint}")
    options = {name: value for name, value in options.items() if name in known}
    refused: list[str] = []
    while True:  # an option that is refused is noted and left out, to hear of the others
        try:
            policy = PolicySettings(kind=kind, options=options).make(n_features=2)
            break
        except (TypeError, ValueError) as error:
            message = str(error)
            name = re.split(r"\W", message, maxsplit=1)[0]
            sentence = f"policy.{message}" if message.startswith(f"{name} must") else f"policy: {message}"
            section.mistakes.add((*section.path, name), sentence)
            if name not in options:
                return
            refused.append(name)
            del options[name]
    if getattr(policy, "needs_caps", False) and "cap" not in refused:
        section.add(
            ("cap",), f"is missing: {kind} needs a number that no mean reward exceeds, like cap = 1.0 for a click"
        )
