"""Find the fastest way through a town whose travel times are not known: networkx has the map, armful learns the times.

Needs networkx, the extra [graphs].
"""

import argparse

import networkx as nx
import numpy as np

import armful

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--figure", metavar="PATH", help="draw a figure there too; needs matplotlib")
options = parser.parse_args()

rng = np.random.default_rng(0)

# The map: crossings A1 to F6, and a street each way between neighbours.
grid = nx.grid_2d_graph(6, 6).to_directed()
town = nx.relabel_nodes(grid, {(i, j): f"{'ABCDEF'[i]}{j + 1}" for i, j in grid.nodes})
streets = list(town.edges)  # street i is arm i

# What is known of a street: a 1, and how much it has of shops, lights, slope, and bus lane.
X = np.column_stack([np.ones(len(streets)), rng.uniform(0, 1, (len(streets), 4))])
minutes = X @ [1.0, 3.0, 2.0, 1.0, -0.5]  # what armful does not know

route = armful.Path(town, "A1", "E4", costs=True)  # rewards are minus a cost
fastest = -route.best(-minutes).value

policy = armful.CappedC2UCB(n_features=5, cap=0.0, seed=0)  # no street takes less than no time
ways = []  # the streets taken each day
for day in range(1, 41):
    choice = policy.choose(X, route)
    taken = minutes[choice.indices] * rng.uniform(0.5, 1.5, len(choice))
    policy.learn(choice, -taken)
    ways.append(choice.indices)
    if day in (1, 2, 5, 10, 20, 40):
        expected = minutes[choice.indices].sum()
        print(f"day {day:2}: {len(choice):2} streets, {expected:.1f} minutes expected, {fastest:.1f} possible")

print("\nwhy the first streets of the last way, and which come in if one is closed, at what loss:")
print(choice.explain(most=3))

first = choice.indices[0]
detour = policy.choose(X, armful.Excluding(route, [first]))
print(f"\nwith {route.arm_names([first])[0]} closed: {minutes[detour.indices].sum():.1f} minutes expected")

# The same map and what was learned, another question: the quickest streets that connect every crossing.
tree = policy.choose(X, armful.SpanningTree(town))
print(f"{len(tree)} of {len(streets)} streets connect every crossing: {minutes[tree.indices].sum():.0f} minutes in all")

if options.figure:
    from matplotlib.figure import Figure

    def line(street: int) -> tuple[list[int], list[int]]:
        """The two ends of a street on the map: letters to the right, numbers upwards."""
        return [ord(crossing[0]) - ord("A") for crossing in streets[street]], [int(end[1]) for end in streets[street]]

    figure = Figure(figsize=(8, 4), layout="constrained")
    town_map, days = figure.subplots(1, 2)
    for street in range(len(streets)):
        town_map.plot(*line(street), color="0.85", linewidth=1, zorder=0)
    for way, color, width, label in [(ways[0], "C1", 6, "day 1"), (ways[-1], "C0", 2.5, "day 40")]:
        for i, street in enumerate(way):
            town_map.plot(*line(street), color=color, linewidth=width, label=label if i == 0 else None)
    town_map.set(xticks=range(6), xticklabels="ABCDEF", yticks=range(1, 7), aspect="equal", title="from A1 to E4")
    town_map.legend(frameon=True, loc="upper left")
    days.axhline(fastest, color="0.6", label="the fastest way")
    days.plot(range(1, 41), [minutes[way].sum() for way in ways], label="the way taken")
    days.set(xlabel="day", ylabel="expected minutes")
    days.legend(frameon=False)
    figure.savefig(options.figure)
