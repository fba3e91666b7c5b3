import pickle

from torch import _C


def memory_stats_as_nested_dict(device):
    return _C.stats[device]


def max_memory_allocated(device=0):
    return _C.stats[device]["allocated_bytes"]["all"]["peak"]


def reset_peak_memory_stats(device=0):
    return _C._cuda_resetPeakMemoryStats(device)


recorded = []


def _record_memory_history(enabled="all", stacks="all", max_entries=0):
    recorded.append((stacks, max_entries))


def _dump_snapshot(filename):
    with open(filename, "wb") as file:
        pickle.dump(recorded, file)
