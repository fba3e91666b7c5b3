"""A part of a model that devmap has an operation for."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Part:
    """An operation, its steps, and its place in the module tree."""

    path: str  # the module that holds it, which gives the layer its name
    op: dict
    steps: set[int]
    params: set[str]  # full names of its parameters
    main: int  # the tensor that it transforms
    more: list[int] = dataclasses.field(default_factory=list)  # others that it reads: an encoder's output
    tokens: int = 0  # rows that it works on
    runs: int = 1  # how often the same parameters run
    shared: bool = False  # the rows are of one sequence, for all of the batch
