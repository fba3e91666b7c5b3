"""Compiles attention.py, and Hopper's sources in CUDA C++, to PTX, ahead of time and with
no GPU, and writes the table of launches beside it: python build.py FOLDER

Triton's own ptxas then assembles each kernel, which fails the build where a
register is spilled: what the driver makes of the PTX is no worse."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # the PTX does not name the folder that it was made in
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import compiler
from triton.compiler import ASTSource

import attention
import tiles

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "source"))
import compile as cuda

# The PTX of sm_80 is for drivers from CUDA 11.8 on, that of sm_90a for those of 12.
ISA = {"sm_80": 78, "sm_90a": 80}
INTEGERS = ("seq", "heads", "group", "dim", "splits", "rows", "columns", "causal", "window")


def kind(name, dtype):
    """The type of an argument, as Triton names it."""
    if name.isupper():
        return "constexpr"
    if name in ("scale", "cap"):
        return "fp32"
    if name in INTEGERS or name.endswith("_stride"):
        return "i32"
    return "*fp32" if name in ("lse", "delta", "parts") else "*" + dtype


def compiled(row):
    """The PTX of a row of the table of tiles, and the shared memory it asks for."""
    function = getattr(attention, row.kernel)
    names = function.arg_names
    signature = {name: kind(name, row.dtype) for name in names}
    values = {"WIDTH": row.width, "EXACT": row.form == "exact", "QUERIES": row.queries, "KEYS": row.keys}
    # As many columns as leave no thread without a value: see load_line.
    values["COLUMNS"] = max(1, 32 * row.warps // row.queries)
    hints = {}
    if row.form != "any":
        for i, name in enumerate(names):
            if signature[name] == "*" + row.dtype or name == "parts":
                hints[(i,)] = [["tt.divisibility", 16]]
            elif name in ("dim", "columns") or name.endswith("_stride"):
                hints[(i,)] = [["tt.divisibility", 8]]
    source = ASTSource(function, signature=signature, constexprs={(i,): values[name] for i, name in enumerate(names) if name.isupper()}, attrs=hints)
    kernel = triton.compile(source, target=GPUTarget("cuda", int(re.sub(r"\D", "", row.target)), 32),
                            options={"num_warps": row.warps, "num_stages": row.stages, "ptx_version": ISA[row.target],
                                     # Without a word, ptxas gives some that are long and straight 64 registers.
                                     "maxnreg": 255 if row.dtype == "fp32" else None})
    if kernel.metadata.global_scratch_size or kernel.metadata.profile_scratch_size or kernel.metadata.num_warps != row.warps:
        sys.exit(f"{row}: it asks for scratch memory or other warps")
    return uncommented(kernel.asm["ptx"]), kernel.metadata.shared


def compiled_plain(row):
    """As compiled: the source says in a constant how much shared memory it takes. NVRTC 11.8 does not
    know sm_90a, whose instructions are inline assembly."""
    ptx = cuda.compile(cuda.library(), HERE / f"{row.kernel}_90.cu", *(f"-D{name}={value}" for name, value in row.macros.items()))
    ptx = ptx.replace(".version 8.0\n.target sm_90\n", ".version 8.1\n.target sm_90a\n", 1)  # 8.1: red of four numbers
    ptx = re.sub(r"\.maxntid (\d+), 1, 1", r".reqntid \1", ptx)
    return uncommented(ptx), int(re.search(r"SHARED = (\d+);", ptx)[1])


def uncommented(ptx):
    ptx = re.sub(r"(?m)^\s*//.*\n", "", ptx)
    return re.sub(r"(?m)[ \t]*//.*$", "", ptx).strip() + "\n"


def assembled(ptx, target):
    """Registers a thread, and bytes spilled, by Triton's ptxas."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "w") as file:
            file.write(ptx)
        told = subprocess.run([compiler.get_ptxas(80).path, "-v", "--gpu-name=" + target, path, "-o", path + ".cubin"], capture_output=True, text=True)
    if told.returncode:
        sys.exit(told.stderr)
    return int(re.search(r"Used (\d+) registers", told.stderr)[1]), int(re.search(r"(\d+) bytes stack frame", told.stderr)[1])


def made(row):
    """A row with all that is told of it. Rows are made side by side: each is a process' own affair."""
    compiler.CUDABackend.make_cubin = lambda self, source, metadata, options, capability: b""
    ptx, shared = compiled_plain(row) if isinstance(row, tiles.Plain) else compiled(row)
    return row, ptx, shared, *assembled(ptx, row.target)


def main(folder, rows):
    lines = ["# Made by build.py. Below, by kernel, its arguments in their order; then the kernels, as",
             "# kernel type target width form rows threads shared registers file"]
    for name in dict.fromkeys(row.kernel for row in rows if not isinstance(row, tiles.Plain)):
        arguments = [f"{argument}:{kind(argument, 'value')}" for argument in getattr(attention, name).arg_names if not argument.isupper()]
        lines.append("\t".join(["arguments", name, *arguments, "scratch:*", "profile:*"]))
    for name, row in {row.kernel: row for row in rows if isinstance(row, tiles.Plain)}.items():
        lines.append("\t".join(["arguments", name + ".plain", *row.arguments]))
    spilled = []
    for row, ptx, shared, registers, stack in concurrent.futures.ProcessPoolExecutor().map(made, rows):
        if stack > tiles.SPILLED.get(row.file, 0):
            spilled.append(f"{row}: {stack} bytes of {registers} registers a thread spilled")
        with open(os.path.join(folder, row.file), "w") as file:
            file.write(ptx)
        lines.append("\t".join(map(str, ["kernel", row.kernel, row.dtype, row.target, row.width, row.form, row.rows, 32 * row.warps, shared, registers, row.file])))
        print(lines[-1], len(ptx), flush=True)
    with open(os.path.join(folder, "kernels.tsv"), "w") as file:
        file.write("\n".join(lines) + "\n")
    if spilled:
        sys.exit("\n".join(spilled))


if __name__ == "__main__":
    main(sys.argv[1], tiles.ROWS)
