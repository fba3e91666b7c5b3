"""Launches the committed PTX through the driver, as launches.txt says.

What the executor's launcher does in Go, for the test beside this file: a
second reading of the table. Torch gives memory alone.
"""

import ctypes
import pathlib
import re
import struct
import torch

HERE = pathlib.Path(__file__).parent
SUFFIX = {torch.bfloat16: "bf16", torch.float32: "f32", torch.int32: "i32"}
cuda = ctypes.CDLL("libcuda.so.1")


def held(code):
    if code:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(code, ctypes.byref(name))
        raise RuntimeError(f"driver: {name.value.decode()}")


class Functions(dict):
    """Functions by name. A module is loaded when one of its functions is first asked for."""

    def __init__(self):
        super().__init__()
        torch.zeros(1, device="cuda")  # the primary context is current
        self.homes = {name: path for path in sorted(HERE.glob("*.ptx")) for name in re.findall(r"\.entry (\w+)", path.read_text())}

    def __missing__(self, name):
        path, module = self.homes[name], ctypes.c_void_p()
        held(cuda.cuModuleLoadData(ctypes.byref(module), path.read_bytes() + b"\0"))
        for other in (other for other, home in self.homes.items() if home == path):
            self[other] = ctypes.c_void_p()
            held(cuda.cuModuleGetFunction(ctypes.byref(self[other]), module, other.encode()))
        return self[name]


def table():
    """The lines of launches.txt by kernel."""
    lines = {}
    for line in (HERE / "launches.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            head, arguments = line.split(" : ")
            kernel, function, types, rule, *clear = head.split()
            lines.setdefault(kernel, []).append((function, types, rule, clear, arguments.split()))
    return lines


functions, lines = Functions(), table()
scratch = torch.zeros(1024, dtype=torch.float64, device="cuda")


def up(value, by):
    return (value + by - 1) // by


def place(past):
    """The address of how many tokens were generated, for as long as the process lives."""
    words.append(torch.tensor([past], dtype=torch.int32, device="cuda"))
    return words[-1].data_ptr()


words = []


class Call:
    """A kernel with its dims, a dict, and operands, a dict of matrices by role."""

    def __init__(self, kernel, dims, operands, begins=True, past=0, turn=None, settings=None, uses=None, found=None):
        self.kernel, self.dims, self.operands, self.begins, self.past = kernel, dims, operands, begins, past
        self.turn, self.settings, self.uses, self.found, self.grid = turn, settings, uses, found, 0
        self.plan = [self.prepare(*line) for line in lines[kernel]]

    def matrix(self, role):
        found = self.operands.get(role.rstrip("?"))
        if found is None and not role.endswith("?"):
            raise KeyError(f"{self.kernel} has no operand {role}")
        return found

    def size(self, text):
        if "@" in text:
            what, role = text.split("@")
            matrix = self.matrix(role)
            rows, columns = (0, 0) if matrix is None else matrix.shape
            return {"rows": rows, "columns": columns, "values": rows * columns, "each": rows // self.dims.get("sequences", 1)}[what]
        return int(self.dims[text])

    def argument(self, text):
        if text == "!adds":
            return struct.pack("q", not self.begins)
        if text == "!past":
            since = place(self.past) if "past" in self.dims else 0
            return struct.pack("qQ", self.dims.get("past", -1), since)
        if text == "!turn":
            inverse, factor = self.turn if self.turn else ([], 1)
            return struct.pack("qd128f", len(inverse), factor, *inverse, *[0] * (128 - len(inverse)))
        if text == "!settings":
            return struct.pack("9d", *self.settings)
        if text == "!parts":
            return struct.pack("Q", scratch.data_ptr())
        if text == "!grid":
            return struct.pack("q", self.grid)
        if text == "!areas":
            packed = [struct.pack("Qqqqq", area.data_ptr(), *area.shape, area.stride(0), 2 + (area.dtype == torch.float32)) for area in self.operands.values()]
            return struct.pack("qQ", len(packed), 0) + b"".join(packed).ljust(32 * 40, b"\0")
        if text == "!found":
            return struct.pack("Q", self.found.data_ptr())
        if text[0] == "#":
            name, _, rest = text[1:].partition("=")
            less = name.endswith("-1")
            return struct.pack("q", int(self.dims.get(name.removesuffix("-1"), rest or 0)) - less)
        if text[0] == "~":
            name, _, rest = text[1:].partition("=")
            return struct.pack("d", float(self.dims.get(name, rest or 0)))
        if text[0] == "&":
            matrix = self.matrix(text[1:])
            return struct.pack("Q", 0 if matrix is None else matrix.data_ptr())
        if text[0] == "*":
            uses = self.uses or [self.matrix(text[1:])]
            return struct.pack("q15Qq", len(uses), *[use.data_ptr() for use in uses], *[0] * (15 - len(uses)), uses[0].stride(0))
        if "@" in text:
            return struct.pack("q", self.size(text))
        if ":" in text:
            name, words = text.split(":")
            return struct.pack("q", words.split(",").index(self.dims[name]))
        if text.isdigit():
            return struct.pack("q", int(text))
        matrix = self.matrix(text)
        return struct.pack("Qq", 0, 0) if matrix is None else struct.pack("Qq", matrix.data_ptr(), matrix.stride(0))

    def shape(self, rule):
        name, arguments = re.fullmatch(r"(\w+)\((.*)\)", rule).groups()
        sizes = [self.size(argument) for argument in arguments.split(",") if argument]
        if name == "eights":
            return (up(sizes[0] * up(sizes[1], 8), 256),), 256
        if name in ("row", "row4"):
            return (sizes[0],), min(1024, max(32, up(sizes[1], 512 if name == "row" else 1024) * 32))
        if name == "rows":
            return (sizes[0],), 256
        if name == "warps":
            return (up(sizes[0], 8),), 256
        if name == "norms":
            threads = min(1024, up(sizes[1], 256) * 32)
            return (sizes[0],), threads * min(8, 1024 // threads)
        if name == "columns":
            return (up(sizes[0], 256), sizes[1]), 256
        if name == "each":
            return (up(sizes[0], 128),), 128
        if name == "tokens":
            return (up(sizes[0], 32),), 256
        if name == "places":
            return (up(sizes[0] if self.matrix("order?") is not None else int(self.dims["seq"]), 4),), 256
        if name == "parts":
            return (sizes[0],), 512
        if name == "areas":
            chunks = sum(area.shape[0] * up(area.shape[1] * area.element_size(), 16) for area in self.operands.values())
            return (min(1024, max(1, up(chunks, 1024))),), 256
        if name in ("one", "logits"):
            return (sizes[0] if sizes else 1,), 1024
        if name in ("squares", "join"):
            self.grid = min(512, up(sizes[0] * up(sizes[1], 8), 2048))
            return (self.grid if name == "squares" else self.grid > 1,), 256
        if name == "bytes":
            return (min(64, up(sizes[0], 65536)),), 256
        if name == "decode":
            return (up(sizes[0], sizes[1]), self.dims["kv"] * up(self.dims["heads"] // self.dims["kv"], 8), self.dims["sequences"]), 128
        raise KeyError(rule)

    def prepare(self, function, types, rule, clear, arguments):
        if types != "-":
            function += "".join("_" + SUFFIX[self.matrix(role).dtype] for role in types.split(","))
        grid, block = self.shape(rule)
        packed = b"".join(self.argument(argument) for argument in arguments)
        buffer, size = ctypes.create_string_buffer(packed, len(packed)), ctypes.c_size_t(len(packed))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
        return functions[function], (*grid, 1, 1)[:3], block, clear, extra, buffer, size

    def run(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        for function, grid, block, clear, extra, *_ in self.plan:
            if clear and self.begins:
                self.operands["d"].zero_()
            if min(grid) > 0:
                held(cuda.cuLaunchKernel(function, *grid, block, 1, 1, 0, stream, None, extra))
