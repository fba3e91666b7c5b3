import os

from torch import _C
from torch.cuda import memory  # noqa: F401
from torch.cuda.memory import reset_peak_memory_stats  # noqa: F401

began = []  # the process that initialised CUDA, which those that it forks cannot use


def is_initialized():
    return began == [os.getpid()]


def init():
    if not is_initialized():
        _C._cuda_init()
        began[:] = [os.getpid()]


def device_count():
    return 2


class _Properties:
    def __init__(self, device):
        self.uuid = "00000000-0000-0000-0000-00000000000%d" % device


get_device_properties = _Properties
