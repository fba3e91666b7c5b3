"""A stub of torch: what the callbacks read of it, with figures that a test sets."""

from __future__ import annotations

import sys
import types


class Cuda(types.SimpleNamespace):
    """torch.cuda of a machine with as many GPUs as there are figures: allocated, reserved, failed allocations."""

    def __init__(self) -> None:
        super().__init__(figures=[], current=0)

    def is_available(self):
        return bool(self.figures)

    is_initialized = is_available

    def device_count(self):
        return len(self.figures)

    def current_device(self):
        return self.current

    def memory_stats(self, index):
        allocated, reserved, failed = self.figures[index]
        return {"allocated_bytes.all.peak": allocated, "reserved_bytes.all.peak": reserved, "num_ooms": failed}


class Distributed(types.SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(place=None)

    def is_available(self):
        return True

    def is_initialized(self):
        return self.place is not None

    def get_rank(self):
        return self.place[0]

    def get_world_size(self):
        return self.place[1]


class Module:
    pass


def install():
    """Puts it where `import torch` finds it, and returns it; the test removes it."""
    torch = types.ModuleType("torch")
    torch.cuda, torch.distributed = Cuda(), Distributed()
    torch.nn = types.SimpleNamespace(Module=Module)
    sys.modules["torch"] = torch
    return torch
