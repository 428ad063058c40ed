"""Clusters of dask on this machine, patient enough for a busy one."""

import logging
from contextlib import contextmanager

import pytest

distributed = pytest.importorskip("distributed")


class PatientNanny(distributed.Nanny):
    """Gives its worker a minute to stop. By default dask 2024.8 raises if a killed process takes more than a second."""

    async def close(self, timeout=60, reason="nanny-close"):
        return await super().close(timeout=timeout, reason=reason)


@contextmanager
def local_cluster(folder, *, n_workers=2, threads_per_worker=1, env=None):
    """A quiet cluster of worker processes whose files stay in `folder`; a killed worker is started again."""
    with distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads_per_worker,
        processes=True,
        worker_class=PatientNanny,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        local_directory=str(folder),
        env=env,
    ) as cluster:
        yield cluster
