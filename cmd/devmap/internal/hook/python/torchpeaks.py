"""Of `devmap watch`: what torch's allocator held of each GPU in one process, in a file of JSON.

The figures are torch's own (torch.cuda.memory_stats), which keeps a peak at every allocation: no spike is too short for
them. Nothing here makes a CUDA context, and nothing is read before torch initialised CUDA. The file is written when the
process ends, when an allocation fails, and while it runs, at most every EVERY seconds and where a peak rose: what a
process that is killed leaves behind is that old.
"""

import _thread
import functools
import json
import os
import sys
import time

EVERY = 0.5
ENTRIES = 100000  # of torch's history of allocations: some hundred bytes each, a few kB where stacks are deep
sleep = time.sleep  # as it is now: gevent and others replace it


def begin(torch, folder, snapshot):
    peaks = Peaks(torch, folder, snapshot)
    os.register_at_fork(after_in_child=peaks.forked)
    os._exit = peaks.leaving(os._exit)  # which multiprocessing ends forked processes by; atexit does not run there
    # What torch.cuda calls by these names when it is called: the module's own functions stay as they are, and every
    # name that a program imported them by goes this way.
    for name, wrapped in (("_cuda_init", peaks.after_init), ("_cuda_resetPeakMemoryStats", peaks.before_reset), ("_accelerator_resetPeakStats", peaks.before_reset)):
        if hasattr(torch._C, name):
            setattr(torch._C, name, wrapped(getattr(torch._C, name)))
    if torch.cuda.is_initialized():
        peaks.initialized()
    return peaks


def quietly(method):
    """Whatever goes wrong here is none of the program's."""

    @functools.wraps(method)
    def call(*args):
        try:
            return method(*args)
        except Exception:
            return None

    return call


class Peaks:
    def __init__(self, torch, folder, snapshot):
        self.torch, self.folder, self.snapshot = torch, folder, snapshot
        self.fresh(forked=False)

    def fresh(self, forked):
        """Of this process nothing is known yet."""
        self.child, self.running, self.over = forked, False, False
        self.uuids, self.begun, self.visible = {}, None, None
        self.before = {}  # peaks that were reset: by GPU, allocated and reserved
        self.failed = None  # the last allocation that failed
        self.written = None
        self.wrong = ""  # why there is no snapshot
        self.lock = _thread.allocate_lock()
        self.name = os.path.join(self.folder, "%d-%d.json" % (os.getpid(), time.time_ns()))

    def forked(self):
        self.fresh(forked=True)

    def after_init(self, init):
        @functools.wraps(init)
        def call(*args, **named):
            result = init(*args, **named)
            self.initialized()
            return result

        return call

    @quietly
    def initialized(self):
        """CUDA was initialised: allocators are there, and no context yet."""
        if self.running:
            return
        self.running, self.begun, self.visible = True, time.time(), os.environ.get("CUDA_VISIBLE_DEVICES")
        observe = getattr(self.torch._C, "_cuda_attach_out_of_memory_observer", None)
        if observe:
            observe(self.out_of_memory)
        if self.snapshot:
            try:
                self.torch.cuda.memory._record_memory_history(max_entries=ENTRIES, stacks="python")
            except Exception as err:
                self.wrong = "%s: %s" % (type(err).__name__, err)
        _thread.start_new_thread(self.look, (os.getpid(),))

    def before_reset(self, reset):
        """Keeps the peaks that a program resets. What other threads allocate between both calls is in neither."""

        @functools.wraps(reset)
        def call(*args, **named):
            self.keep()
            return reset(*args, **named)

        return call

    @quietly
    def keep(self):
        for row in self.rows():
            self.before[row["index"]] = row["allocated_peak_bytes"], row["reserved_peak_bytes"]

    def rows(self):
        """Each GPU that torch sees, by its index there; none where this process did not initialise CUDA."""
        if not self.torch.cuda.is_initialized():
            return []
        rows = []
        for index in range(self.torch.cuda.device_count()):
            stats = self.torch.cuda.memory.memory_stats_as_nested_dict(index)
            allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
            before = self.before.get(index, (0, 0))
            rows.append({
                "index": index, "uuid": self.uuid(index),
                "allocated_peak_bytes": max(before[0], allocated["peak"]), "reserved_peak_bytes": max(before[1], reserved["peak"]),
                "allocated_bytes": allocated["current"], "reserved_bytes": reserved["current"],
                "out_of_memory": stats.get("num_ooms", 0), "retries": stats.get("num_alloc_retries", 0),
            })  # fmt: skip
        return rows

    def uuid(self, index):
        """As the driver's other libraries print it; empty: this torch does not tell."""
        if index not in self.uuids:
            found = getattr(self.torch.cuda.get_device_properties(index), "uuid", None)
            self.uuids[index] = "GPU-%s" % found if found else ""
        return self.uuids[index]

    @quietly
    def out_of_memory(self, device, wanted, total, free):
        """Called by the allocator, without its lock, before it raises."""
        self.failed = {"index": device, "wanted_bytes": wanted, "free_bytes": free}
        self.write("running")
        self.dump(".oom")

    def look(self, pid):
        while not self.over and os.getpid() == pid:
            sleep(EVERY)
            self.write("running")

    def leaving(self, really):
        @functools.wraps(really)
        def call(*args, **named):
            self.end()
            really(*args, **named)

        return call

    @quietly
    def end(self):
        if self.over:
            return
        self.over = True
        if self.child and not self.torch.cuda.is_initialized():
            return  # a worker that loads data
        self.dump("")
        self.write("out of memory" if self.broke() else "exit")

    def broke(self):
        """Whether the error that the interpreter ended with is of a GPU's memory, or came of one."""
        kind = getattr(self.torch, "OutOfMemoryError", None) or getattr(self.torch.cuda, "OutOfMemoryError", ())
        err = getattr(sys, "last_value", None)
        for _ in range(8):
            if isinstance(err, kind):
                return True
            err = getattr(err, "__cause__", None) or getattr(err, "__context__", None)
        return False

    @quietly
    def write(self, at):
        if at == "running" and self.over or not self.lock.acquire(timeout=2):
            return
        try:
            try:
                rows = self.rows()
            except Exception:
                rows = []  # an allocator of somebody else's, which counts nothing
            rising = [(row["allocated_peak_bytes"], row["reserved_peak_bytes"], row["out_of_memory"], row["retries"]) for row in rows]
            if at == "running" and rising == self.written:
                return
            self.written = rising
            arguments = getattr(sys, "orig_argv", None) or [sys.executable, *getattr(sys, "argv", [])]
            told = {
                "pid": os.getpid(), "parent": os.getppid(), "arguments": [word[:1000] for word in arguments[:100]], "at": at, "begun_seconds": self.begun, "written_seconds": time.time(),
                "torch": str(self.torch.__version__), "allocator": self.allocator(), "visible": self.visible,
                "gpus": rows, "failed": self.failed, "snapshot_error": self.wrong,
            }  # fmt: skip
            with open(self.name + ".new", "w") as file:
                json.dump(told, file)
            os.replace(self.name + ".new", self.name)
        finally:
            self.lock.release()

    def allocator(self):
        found = getattr(self.torch.cuda, "get_allocator_backend", None)
        return found() if found else "native"

    def dump(self, what):
        """torch's own snapshot, a file a process: name.PID.pickle."""
        if not self.snapshot or self.wrong or not self.torch.cuda.is_initialized():
            return
        stem, dot = os.path.splitext(self.snapshot)
        try:
            self.torch.cuda.memory._dump_snapshot("%s.%d%s%s" % (stem, os.getpid(), what, dot))
        except Exception as err:
            self.wrong = "%s: %s" % (type(err).__name__, err)
