"""Running the cells of a plan on the workers of a dask cluster."""

import pickle
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy
import scipy

import armful
from armful.cluster._dask_runner import DaskRunner, imported, other_version
from armful.experiments.plan import Cell
from armful.experiments.recipe import Recipe, find, module_name, source_digest
from armful.experiments.results import Result
from armful.experiments.running import Outcomes, Runner, run_cell


def connect_cluster(address: str) -> AbstractContextManager[Runner]:
    """Connect to a dask cluster whose workers are to run cells.

    Parameters
    ----------
    address : str
        Of the scheduler, like `"tcp://10.0.0.1:8786"`.

    Returns
    -------
    context manager
        Yields a `Runner` for `run_cells`, and closes the connection at the end.

    Raises
    ------
    ValueError
        If no dask scheduler answers at `address`.

    Notes
    -----
    Within `with connect_cluster("tcp://10.0.0.1:8786") as cluster:`, `run_cells(cells, folder, runner=cluster)` runs
    cells on the cluster. Every worker needs the same versions as this machine, and must see the same files.
    """
    return ClusterRunner.connected(address)


class ClusterRunner(DaskRunner):
    """Runs cells on the workers of a cluster; those of a worker that dies run again on another."""

    when_gone = "what is finished is kept and need not run again"

    def run(self, cells: Sequence[Cell], /) -> Outcomes:
        """Run all cells."""
        for kind in sorted({recipe.kind for cell in cells for recipe in cell.recipes}):
            find(kind)  # an error on this machine gets the same message as without a cluster
        versions = installed()
        # By name and in bytes: a worker that cannot unpickle a function or an object shuts down.
        call = f"__import__('{__name__}', fromlist=['run_on_worker']).run_on_worker(cell, key, versions)"
        calls = [(eval, call, {"cell": pickle.dumps(cell), "key": cell.key(), "versions": versions}) for cell in cells]
        yield from self.as_completed(calls, [str(cell) for cell in cells])


def installed() -> dict[str, str]:
    """Return the versions of what results depend on, and of what talks to the cluster."""
    return {
        "armful": armful.__version__,
        "the source of armful": source_digest()[:12],
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "distributed": imported("distributed").__version__,
        "Python": f"{sys.version_info.major}.{sys.version_info.minor}",
    }


def run_on_worker(pickled: bytes, key: str, versions: dict[str, str]) -> Result:
    """Run a cell on a worker, if the result is the same as on the machine that asks for it.

    key: of the cell, computed on that machine. versions: installed on that machine.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - of the same extra

    worker = imported("distributed").get_worker().address
    for (package, version), here in zip(versions.items(), installed().values(), strict=True):
        if here != version:
            raise ValueError(other_version(worker, package, here, version))
    cell: Cell = pickle.loads(pickled)
    with _LOADING:
        for recipe in cell.recipes:
            _load(recipe, worker)
    if cell.key() != key:
        raise ValueError(
            f"the worker at {worker} has another text in a file of the plan than this machine; {_SAME_FILES}"
        )
    threadpool_limits(limits=1)  # for good: the end of one cell must not give threads to another that is running
    return run_cell(cell)


_SAME_FILES = "on a cluster every worker must see the same files and modules"
_LOADING = threading.Lock()
_loaded: dict[str, str] = {}
"""By path: the digest of the user's file when it was loaded."""


def _load(recipe: Recipe, worker: str) -> None:
    """Load the user's file or module; reload a file that has changed, as workers outlive a run."""
    path = recipe.kind.rpartition(":")[0]
    try:
        digest = recipe.fingerprint()["file"]
        if digest is not None and _loaded.get(path) != digest:
            sys.modules.pop(module_name(Path(path)), None)
            _loaded[path] = digest
        find(recipe.kind)
    except FileNotFoundError:
        raise ValueError(f"the worker at {worker} does not see {path}; {_SAME_FILES}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"the worker at {worker}: {error}; {_SAME_FILES}") from None
