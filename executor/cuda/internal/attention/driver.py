"""Loads the kernels of kernels.tsv through the driver, as the executor does, and
runs them on torch's tensors: what the tests and timings share."""

import collections
import ctypes
import os

import torch

cuda = ctypes.CDLL("libcuda.so.1")
NUMBERS = {"scale": ctypes.c_float, "cap": ctypes.c_float}
PLAIN, FAR = ("plain", "short"), 2048  # forms of kernels in CUDA C++, and the reach from which on forward takes no short one
SHARED, LOCAL = 8, 3  # CUfunction_attribute: most dynamic shared memory, bytes of local memory a thread

Kernel = collections.namedtuple("Kernel", "name dtype target width form rows threads shared registers file")


def check(status):
    if status:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(name))
        raise RuntimeError(f"the driver answers {name.value}")


class Library:
    """The kernels of a folder for a target. only: those of one form, where a test asks for it."""

    def __init__(self, folder, target, only=None):
        self.folder, self.target, self.only = folder, target, only
        self.arguments, self.kernels, self.loaded = {}, [], {}
        with open(os.path.join(folder, "kernels.tsv")) as table:
            for line in table:
                fields = line.rstrip("\n").split("\t")
                if fields[0] == "arguments":
                    self.arguments[fields[1]] = [argument.split(":") for argument in fields[2:]]
                elif fields[0] == "kernel":
                    name, dtype, target, width, form, rows, threads, shared, registers, file = fields[1:]
                    self.kernels.append(Kernel(name, dtype, target, int(width), form, int(rows), int(threads), int(shared), int(registers), file))

    def chosen(self, name, dtype, dim, aligned, capped=False, reach=1 << 30):
        """The first of the target's own, then of sm_80's, of the narrowest width:
        short, plain, exact, aligned, any."""
        best = None
        for kernel in self.kernels:
            if kernel.name != name or kernel.dtype != dtype or kernel.width < dim or kernel.target not in (self.target, "sm_80"):
                continue
            if self.only and kernel.form != self.only:
                continue
            if kernel.form in ("exact", *PLAIN) and not (aligned and dim == kernel.width) or kernel.form == "aligned" and not aligned or kernel.form in PLAIN and capped:
                continue
            if kernel.form == "short" and reach >= FAR:
                continue
            rank = (kernel.width, kernel.form == "any", kernel.target != self.target, kernel.form == "aligned")
            if best is None or rank < best[0]:
                best = rank, kernel
        return best and best[1]

    def function(self, kernel):
        if kernel.file not in self.loaded:
            module, function, local = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
            with open(os.path.join(self.folder, kernel.file), "rb") as file:
                check(cuda.cuModuleLoadData(ctypes.byref(module), file.read() + b"\0"))
            check(cuda.cuModuleGetFunction(ctypes.byref(function), module, kernel.name.encode()))
            check(cuda.cuFuncGetAttribute(ctypes.byref(local), LOCAL, function))
            if local.value:
                print(f"{kernel.file}: the driver's compiler spills: {local.value} bytes a thread")
            check(cuda.cuFuncSetAttribute(function, SHARED, kernel.shared))
            self.loaded[kernel.file] = function
        return self.loaded[kernel.file]

    def launch(self, kernel, grid, values):
        """Launches on torch's stream: values by argument name, tensors as their
        addresses. What is not given is null or 0."""
        arguments = []
        for name, kind in self.arguments[kernel.name + ".plain" if kernel.form in PLAIN else kernel.name]:
            value = values.get(name, 0)
            if kind == "map":
                arguments.append(tiles(value, kernel, name, values))
                continue
            if isinstance(value, torch.Tensor):
                value = value.data_ptr()
            arguments.append(NUMBERS.get(name, ctypes.c_void_p if kind.startswith("*") else ctypes.c_int32)(value))
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.byref(argument), ctypes.c_void_p) for argument in arguments])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if kernel.form in PLAIN:
            grid = min(grid, torch.cuda.get_device_properties(0).multi_processor_count)
        launched = self.function(kernel), grid, 1, 1, kernel.threads, 1, 1, kernel.shared, stream, pointers
        check(cuda.cuLaunchCooperativeKernel(*launched) if kernel.name == "attention_backward" else cuda.cuLaunchKernel(*launched, None))


def tiles(matrix, kernel, role, values):
    """What the copy engine reads of a matrix, as driver.Tiles of the executor."""
    room = ctypes.create_string_buffer(256)
    map = (ctypes.c_char * 128).from_buffer(room, -ctypes.addressof(room) % 64)
    if (role in ("k", "v")) == (kernel.name == "attention_backward"):
        box = kernel.rows
    else:
        box = (80 if kernel.width == 256 else 128) if role in ("k", "v") else queries(kernel.width)
    seq, row = values["seq"], 2 * matrix.stride(0)
    sizes = (ctypes.c_uint64 * 4)(kernel.width, seq, matrix.shape[1] // kernel.width, matrix.shape[0] // seq)
    strides = (ctypes.c_uint64 * 3)(row, 2 * kernel.width, row * seq)
    # bf16, no interleaving, swizzle of 128 bytes, L2 promotion to 128 bytes, zeros outside
    check(cuda.cuTensorMapEncodeTiled(map, 9, 4, ctypes.c_void_p(matrix.data_ptr()), sizes, strides, (ctypes.c_uint32 * 4)(64, box, 1, 1), (ctypes.c_uint32 * 4)(1, 1, 1, 1), 0, 3, 2, 0))
    return map


def queries(width):
    """The queries of a block that backward's kernel for Hopper goes through, as recipe.tiles."""
    return 128 if width == 64 else 64


def blocks(count, size):
    return (count + size - 1) // size


class Attention:
    """One shape's launches. q, k, v, …: matrices of a row a token, or columns of them."""

    def __init__(self, library, sequences, seq, heads, kv, dim, causal=True, window=0, cap=0.0, scale=None):
        self.parts = self.sums = None
        self.library, self.sequences, self.seq, self.heads, self.kv, self.dim = library, sequences, seq, heads, kv, dim
        self.values = {"seq": seq, "heads": heads, "group": heads // kv, "dim": dim, "causal": int(causal), "window": window,
                       "scale": dim**-0.5 if scale is None else scale, "cap": cap, "pairs": heads * sequences}

    def splits(self, kernel, room=32 << 20):
        """As Kernel.Splits of choose.go."""
        best, group = 1, self.heads // self.kv
        for splits in range(2, group + 1):
            if best * blocks(self.seq, kernel.rows) * self.kv * self.sequences < 256 and group % splits == 0 and splits * 8 * self.sequences * self.seq * self.kv * self.dim <= room:
                best = splits
        return best

    def run(self, name, splits=None, **tensors):
        """attention, or attention_backward in so many splits, or as many as the executor makes. It returns the kernels."""
        values, aligned, dtype = dict(self.values), self.dim % 8 == 0, "bf16"
        for role, tensor in tensors.items():
            values[role] = tensor
            if role not in ("lse", "delta"):
                values[role + "_stride"] = tensor.stride(0)
                aligned = aligned and tensor.data_ptr() % 16 == 0 and tensor.stride(0) % 8 == 0
                dtype = "fp32" if tensor.dtype == torch.float32 else "bf16"
        choose = lambda name: self.library.chosen(name, dtype, self.dim, aligned, self.values["cap"] > 0, min(self.seq, self.values["window"] or self.seq))
        kernels = [kernel for kernel in [choose(name)] if kernel] or [choose("attention_dkv"), choose("attention_dq")]
        for kernel in kernels:
            keys = kernel.name in ("attention_dkv", "attention_backward")
            grid = blocks(self.seq, kernel.rows) * self.sequences * (self.kv if keys else self.heads)
            if not keys:
                self.library.launch(kernel, grid, values)
                continue
            splits = splits or self.splits(kernel)
            rows, columns = self.sequences * self.seq, self.kv * self.dim
            values.update(splits=splits, rows=rows, columns=columns)
            if splits > 1:
                if self.parts is None or self.parts.numel() < splits * 2 * rows * columns:
                    self.parts = torch.full((splits * 2 * rows * columns,), float("nan"), device="cuda")
                values["parts"] = self.parts
            if kernel.name == "attention_backward":
                tile = queries(self.dim) * self.dim
                tiles = self.sequences * self.heads * blocks(self.seq, queries(self.dim))
                if self.sums is None:
                    self.sums = torch.full((tiles * (tile + 1),), float("nan"), device="cuda")
                self.sums[tiles * tile :].zero_()
                values["sums"] = self.sums
            self.library.launch(kernel, grid * splits, values)
            if splits > 1:
                join = choose("attention_dkv_join")
                self.library.launch(join, blocks(rows, join.rows) * blocks(columns, join.width), values)
        return kernels
