"""All arms of a table as one `Arms`, for policies and constraints that need every score."""

from functools import cached_property
from typing import Any

import numpy as np

from armful.arms import Arms
from armful.checks import FloatArray, IntArray
from armful.model._blocks import BLOCK, row_norms
from armful.model.base import Model
from armful.scan._threads import in_threads
from armful.tables.rows import Rows


class WholeTable(Arms):
    """All arms of a table. Means and widths are held in memory; the features only if `X` is used."""

    def __init__(self, table: Rows, state: Model, caps: FloatArray | None = None) -> None:
        self.table, self.state, self.caps = table, state, caps
        self.arm_indices = np.arange(table.n_arms)
        self.some_of_many = table.n_arms > BLOCK

    @cached_property
    def X(self) -> FloatArray:  # type: ignore[override]
        return np.asarray(self.table.rows(0, self.table.n_arms), dtype=np.float64)

    @property
    def n_arms(self) -> int:
        return self.table.n_arms

    @cached_property
    def mean_and_width(self) -> tuple[FloatArray, FloatArray]:
        mean, width = np.empty(self.n_arms), np.empty(self.n_arms)

        def fill_in(block: slice) -> None:
            mean[block], width[block] = self._part(block).mean_and_width

        blocks = self.table.blocks
        for _ in in_threads(fill_in, blocks, len(blocks)):
            pass
        return mean, width

    @cached_property
    def norm(self) -> FloatArray:
        return np.concatenate([row_norms(np.asarray(self._rows(block))) for block in self.table.blocks])

    def project(self, theta: FloatArray) -> FloatArray:
        return np.concatenate([self._part(block).project(theta) for block in self.table.blocks])

    def ids_of(self, indices: IntArray) -> list[Any] | None:
        ids = self.table.ids_of(indices)
        return None if ids is None else ids.tolist()

    def rows(self, indices: IntArray) -> FloatArray:
        return self.table.take(indices)

    def _part(self, block: slice) -> Arms:
        return Arms(self._rows(block), self.state, arm_indices=self.arm_indices[block] if self.some_of_many else None)

    def _rows(self, block: slice) -> FloatArray:
        return np.asarray(self.table.rows(block.start, block.stop), dtype=np.float64)
