"""The plan that `armful compare --example` prints."""

EXAMPLE = """\
# A plan for `armful compare plan.toml`: every policy in every environment at every size.

runs = 50        # repetitions of each; the error bars shrink like 1/sqrt(runs)
seed = 0         # the same seed gives the same numbers, whatever the number of workers

# k is how many arms are chosen in a round, rounds is how often. An environment without an option k uses rounds only.
sizes = [
    { k = 5, rounds = 50 },
    { k = 10, rounds = 100 },
    { k = 20, rounds = 200 },
]

# A policy is a class of armful with its options. The words "d" and "sqrt(d)" stand for the number of features and its
# square root. `class` may be left out where the name is the class; give it to have one class twice, or your own:
# class = "my_policies.py:MyPolicy" (a file beside this plan) or class = "package.module:MyPolicy".
[policies.EpsilonGreedy]
epsilon = 0.05

[policies.C2UCB]

[policies.CappedC2UCB]
cap = 1.0        # no arm pays more on average

[policies.careful]
class = "CappedC2UCB"
cap = 1.0
radius = "logdet"  # a radius with a guarantee, which needs the noise and the length of theta*, and is careful
noise = 0.5
norm = 1.0

[policies.paper-rule]
class = "CappedC2UCB"
rule = "paper"
cap = 1.0
ridge = "d"
radius = "sqrt(d)"

[policies.CombLinTS]
noise = 0.5

# An environment is a class of armful, or your own, with its options; k comes from the sizes.
[environments.slates]
class = "Slates"
n_arms = 100
n_features = 10

[environments.campaign]
class = "Campaign"
n_arms = 1000
n_features = 10
"""
