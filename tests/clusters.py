"""Clusters for tests that kill workers."""

from contextlib import ExitStack

PATIENCE_SECONDS = 60


class RenewedCluster:
    """Something with workers that is started again if a killed worker does not come back.

    A nanny gives up for good if the worker that it starts again dies or is too slow to start, as on a busy machine.
    """

    def __init__(self, start, n_workers):
        self._start, self._n_workers = start, n_workers
        self._stack, self._started = ExitStack(), None

    def ready(self):
        """Return it with all its workers."""
        for attempt in range(3):
            if self._started is None:
                self._started = self._stack.enter_context(self._start())
            try:
                self._started.wait_for_workers(self._n_workers, timeout=PATIENCE_SECONDS)
            except TimeoutError:
                if attempt == 2:
                    raise
                self.close()
            else:
                break
        return self._started

    def close(self):
        self._stack.close()
        self._started = None
