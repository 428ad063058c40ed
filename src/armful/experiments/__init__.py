"""Plans, running them in parallel, results, figures and reports; needs `pip install 'armful[experiments]'`."""

from armful.experiments._cluster import connect_cluster
from armful.experiments.plan import Cell, Plan, read_plan
from armful.experiments.recipe import Recipe
from armful.experiments.results import Result
from armful.experiments.running import Runner, run_cells

__all__ = ["Cell", "Plan", "Recipe", "Result", "Runner", "connect_cluster", "read_plan", "run_cells"]
