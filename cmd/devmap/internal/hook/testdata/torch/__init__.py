"""A torch that is none: as much of its allocator's bookkeeping as the hook sees of it, for tests without a GPU."""

__version__ = "0.0+fake"


class OutOfMemoryError(RuntimeError):
    pass


from torch import _C, cuda  # noqa: E402, F401
