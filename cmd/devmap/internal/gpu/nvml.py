"""What NVML says that a GPU holds: a judge beside devmap's own reading, by the driver's library alone."""

import ctypes
import threading
import time


class _Memory(ctypes.Structure):
    """nvmlMemory_v2_t (NVML API reference): bytes held by the driver for itself are not in `used`."""

    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t: usedGpuMemory is all ones where the driver does not tell."""

    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)]


class Gauge:
    """Bytes used of the first GPU, now, and the most while something runs; processes on it."""

    def __init__(self, index=0):
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        self.held(self._library.nvmlInit_v2())
        self._gpu = ctypes.c_void_p()
        self.held(self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(self._gpu)))

    @staticmethod
    def held(status):
        if status:
            raise OSError(f"NVML: status {status}")

    def used(self):
        memory = _Memory(version=ctypes.sizeof(_Memory) | 2 << 24)
        self.held(self._library.nvmlDeviceGetMemoryInfo_v2(self._gpu, ctypes.byref(memory)))
        return memory.used

    def processes(self, most=256):
        """Numbers of the processes that the driver shows on the GPU: in a container they may be the host's."""
        count, found = ctypes.c_uint(most), (_Process * most)()
        self.held(self._library.nvmlDeviceGetComputeRunningProcesses_v3(self._gpu, ctypes.byref(count), found))
        return {found[i].pid for i in range(count.value)}

    def during(self, call, every=0.02):
        """What a call returns, and the most that was used meanwhile."""
        most, ended = [self.used()], threading.Event()

        def look():
            while not ended.wait(every):
                most[0] = max(most[0], self.used())

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            return call(), most[0]
        finally:
            ended.set()
            watcher.join()

    def settled(self, want, seconds=3.0):
        """What is used once it is no more than wanted, or after some seconds: a driver gives memory back a moment
        after a process ended."""
        begun = time.monotonic()
        while (used := self.used()) > want and time.monotonic() - begun < seconds:
            time.sleep(0.02)
        return used


def count():
    """GPUs that the driver shows."""
    library, found = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint()
    Gauge.held(library.nvmlInit_v2())
    Gauge.held(library.nvmlDeviceGetCount_v2(ctypes.byref(found)))
    return found.value


class Nothing(Gauge):
    """What is read where there is no GPU."""

    def __init__(self):
        pass

    def used(self):
        return 0

    def processes(self, _most=0):
        return set()
