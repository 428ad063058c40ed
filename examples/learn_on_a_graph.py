"""Find the fastest way through a town whose travel times are not known: networkx has the map, armful learns the times.

Needs networkx, the extra [graphs].
"""

import networkx as nx
import numpy as np

import armful

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
for day in range(1, 41):
    choice = policy.choose(X, route)
    taken = minutes[choice.indices] * rng.uniform(0.5, 1.5, len(choice))
    policy.learn(choice, -taken)
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
