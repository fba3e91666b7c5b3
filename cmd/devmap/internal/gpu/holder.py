"""holder.py BYTES [--on-line] [--seconds N] [--told FILE]: holds memory of the first GPU, by the driver's library alone.

Below zero BYTES are those that it leaves free. It says "ready" once it has a context, then takes the memory, with
--on-line when it reads a line; says "held", and holds it until its input ends, or for some seconds. FILE gets the
process's number then.
"""

import argparse
import ctypes
import os
import sys
import time


class _Location(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("number", ctypes.c_int)]


class _Kind(ctypes.Structure):
    """CUmemAllocationProp (CUDA driver API): pinned memory (1) of a device (1)."""

    _fields_ = [
        ("kind", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", _Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class GPU:
    """The first one, with a context of this process. While somebody has all that is free (a certificate's refill) there is
    no room for one, nor for what is to be taken: both are asked for until there is, for some seconds."""

    MEMORY, PATIENCE = 2, 20.0  # CUDA_ERROR_OUT_OF_MEMORY; seconds

    def __init__(self):
        self._driver, self._context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        self._done("cuInit", 0)
        self._done("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), 0, patience=self.PATIENCE)
        self._done("cuCtxSetCurrent", self._context)
        self._kind, self._granule = _Kind(1, 0, _Location(1, 0)), ctypes.c_size_t()
        self._done("cuMemGetAllocationGranularity", ctypes.byref(self._granule), ctypes.byref(self._kind), 0)

    def _done(self, call, *words, patience=0.0):
        ends = time.monotonic() + patience
        while (status := getattr(self._driver, call)(*words)) == self.MEMORY and time.monotonic() < ends:
            time.sleep(0.01)
        if status:
            raise OSError(f"{call}: status {status}")

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._done("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def take(self, size):
        """Memory in whole granules, at no address."""
        size -= size % self._granule.value
        self._done("cuMemCreate", ctypes.byref(ctypes.c_ulonglong()), ctypes.c_size_t(size), ctypes.byref(self._kind), ctypes.c_ulonglong(0), patience=self.PATIENCE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bytes", type=int)
    parser.add_argument("--on-line", action="store_true")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--told", default="")
    args = parser.parse_args()
    gpu = GPU()
    print("ready", flush=True)
    if args.on_line:
        sys.stdin.readline()
    gpu.take(args.bytes if args.bytes > 0 else gpu.free() + args.bytes)
    print("held", flush=True)
    if args.told:
        with open(args.told + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.replace(args.told + ".new", args.told)
    if args.seconds:
        time.sleep(args.seconds)
    else:
        sys.stdin.read()


if __name__ == "__main__":
    main()
