"""Times the kernels beside cuDNN's and flash's attention of torch, on a GPU: python speed.py

A line says the milliseconds, and TFLOP/s, of forward and backward: devmap's backward is
attention_delta and attention_backward. Work is counted for the pairs that see each
other: 2 products forward, 5 backward. torch gives a window to flash alone; cuDNN's comes by
its graph API where the package nvidia-cudnn-frontend is installed. A last line of each shape
has the times of cuDNN, or of flash without it, over devmap's. Every time is the median of
replays of a CUDA graph."""

import collections
import functools
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import driver

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "source"))
import launch

try:
    import cudnn
except ImportError:
    cudnn = None

library = functools.cache(lambda: driver.Library(HERE, "sm_90a"))
Shape = collections.namedtuple("Shape", "sequences seq heads kv dim causal window dtype", defaults=(True, 0, torch.bfloat16))

SHAPES = [Shape(*sizes, 32, 8, dim, window=window) for dim in (64, 128) for *sizes, wide in ((16, 512, 128), (4, 2048, 512), (1, 32768, 4096)) for window in (0, wide)]
SHAPES += [Shape(4, 2048, 32, 8, 64, causal=False), Shape(4, 2048, 32, 8, 128, causal=False), Shape(4, 2048, 16, 2, 128), Shape(4, 2048, 8, 4, 256), Shape(4, 2048, 32, 32, 80), Shape(4, 2048, 32, 32, 96)]
SHAPES += [Shape(1, 2048, 32, 8, 64, dtype=torch.float32), Shape(1, 2048, 16, 2, 128, dtype=torch.float32)]


def median(function, times=9):
    """Milliseconds of one call."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        function(), function()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    began = time.perf_counter()
    while time.perf_counter() < began + 0.03:  # so that clocks are those of this function, whatever ran before it
        graph.replay()
        torch.cuda.synchronize()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(times)]
    for before, after in events:
        before.record()
        graph.replay()
        after.record()
    torch.cuda.synchronize()
    return sorted(before.elapsed_time(after) for before, after in events)[times // 2]


def ours(shape, q, k, v, dy):
    """Forward's time, and those of backward's two calls."""
    rows = q.shape[0]
    y, gradient = torch.empty_like(dy), torch.empty(rows, q.shape[1] + 2 * k.shape[1], dtype=q.dtype, device="cuda")
    dq, dk, dv = gradient.split([q.shape[1], k.shape[1], k.shape[1]], 1)
    lse, delta = (torch.empty(rows, shape.heads, device="cuda") for _ in range(2))
    run = driver.Attention(library(), *shape[:7])
    forward = median(lambda: run.run("attention", q=q, k=k, v=v, y=y, lse=lse))
    sums = launch.Call("attention_delta", {"heads": shape.heads, "dim": shape.dim}, {"y": y, "dy": dy, "delta": delta})
    backward = [median(sums.run),
                median(lambda: run.run("attention_backward", q=q, k=k, v=v, dy=dy, lse=lse, delta=delta, dq=dq, dk=dk, dv=dv))]
    return forward, backward


def sdpa(shape, backend, q, k, v, dy):
    """torch's times by a backend that takes causal alone. A graph's backward has its own forward."""
    leaves = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
    with sdpa_kernel(backend):
        run = lambda: F.scaled_dot_product_attention(*leaves, is_causal=shape.causal, enable_gqa=shape.heads != shape.kv)
        forward = median(run)
        return forward, median(lambda: torch.autograd.grad(run(), leaves, dy)) - forward


def flash(shape, q, k, v, dy):
    """flash's times with a window, as aten has it."""
    q, k, v, dy = (tensor.transpose(1, 2) for tensor in (q, k, v, dy))
    sides = {"scale": shape.dim**-0.5, "window_size_left": shape.window - 1, "window_size_right": 0 if shape.causal else -1}
    run = lambda: torch.ops.aten._flash_attention_forward(q, k, v, None, None, shape.seq, shape.seq, 0.0, shape.causal, False, **sides)
    y, lse, seed, offset, _ = run()
    return median(run), median(lambda: torch.ops.aten._flash_attention_backward(dy, q, k, v, y, lse, None, None, shape.seq, shape.seq, 0.0, shape.causal, seed, offset, **sides))


def graphs(shape, q, k, v, dy):
    """cuDNN's times with a window, by its graph API."""
    handle = cudnn.create_handle()
    band = {"diagonal_band_left_bound": shape.window, "diagonal_band_right_bound": 0, "diagonal_alignment": cudnn.diagonal_alignment.TOP_LEFT, "attn_scale": shape.dim**-0.5}

    def prepared(name, given, made, **operands):
        """The operation as a function; made are its outputs in their order."""
        graph = cudnn.pygraph(io_data_type=cudnn.data_type.BFLOAT16, intermediate_data_type=cudnn.data_type.FLOAT, compute_data_type=cudnn.data_type.FLOAT, handle=handle)
        inputs = {role: graph.tensor_like(tensor) for role, tensor in given.items()}
        pack = {inputs[role]: tensor for role, tensor in given.items()}
        for output, tensor in zip(getattr(graph, name)(name=name, **inputs, **operands, **band), made):
            output.set_output(True).set_dim(list(tensor.shape)).set_stride(list(tensor.stride()))
            if tensor.dtype == torch.float32:
                output.set_data_type(cudnn.data_type.FLOAT)
            pack[output] = tensor
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A])
        graph.check_support()
        graph.build_plans()
        room = torch.empty(max(1, graph.get_workspace_size()), dtype=torch.uint8, device="cuda")

        def run():
            cudnn.set_stream(handle, torch.cuda.current_stream().cuda_stream)
            graph.execute(pack, room, handle=handle)

        return run

    like = lambda tensor: torch.empty_like(tensor.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)
    y, stats = like(dy), torch.empty(*q.shape[:3], 1, device="cuda")
    forward = prepared("sdpa", {"q": q, "k": k, "v": v}, [y, stats], generate_stats=True)
    forward()
    backward = prepared("sdpa_backward", {"q": q, "k": k, "v": v, "o": y, "dO": dy, "stats": stats}, [like(q), like(k), like(v)])
    return median(forward), median(backward)


def peers(shape):
    """The functions that time others, by name."""
    if shape.dtype == torch.float32:
        return {"efficient": lambda *all: sdpa(shape._replace(kv=shape.heads), SDPBackend.EFFICIENT_ATTENTION, *all)}
    if shape.window:
        return {"flash": lambda *all: flash(shape, *all)} | ({"cudnn": lambda *all: graphs(shape, *all)} if cudnn else {})
    return {name: lambda *all, backend=backend: sdpa(shape, backend, *all) for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION))}


def timed(shape):
    rows, wide, narrow = shape.sequences * shape.seq, shape.heads * shape.dim, shape.kv * shape.dim
    name = f"{'fp32' if shape.dtype == torch.float32 else 'bf16'} {shape.sequences}x{shape.seq} heads {shape.heads}/{shape.kv} x {shape.dim}{' causal' if shape.causal else ''}{f' window {shape.window}' if shape.window else ''}"
    reach = min(shape.window or shape.seq, shape.seq)
    pairs = reach * (reach + 1) // 2 + (shape.seq - reach) * reach if shape.causal else shape.seq**2
    product = 2 * shape.sequences * wide * pairs

    def said(label, forward, backward, *more):
        print(f"  {label:9s} forward {forward:7.3f} ({2 * product / forward / 1e9:4.0f})  backward {backward:7.3f} ({5 * product / backward / 1e9:4.0f})", *more, flush=True)

    print(name)
    q, k, v = torch.randn(rows, wide + 2 * narrow, dtype=shape.dtype, device="cuda").split([wide, narrow, narrow], 1)
    dy = torch.randn(rows, wide, dtype=shape.dtype, device="cuda")
    forward, parts = ours(shape, q, k, v, dy)
    said("devmap", forward, sum(parts), "delta {:.3f} gradients {:.3f}".format(*parts))
    split = [part.reshape(shape.sequences, shape.seq, -1, shape.dim).transpose(1, 2) for part in (q, k, v, dy)]
    if shape.dtype == torch.float32:  # its peer has no grouped heads
        split[1:3] = [part.repeat_interleave(shape.heads // shape.kv, 1) for part in split[1:3]]
    best = None
    for label, peer in peers(shape).items():
        try:
            times = peer(*split)
        except (RuntimeError, getattr(cudnn, "cudnnGraphNotSupportedError", RuntimeError)) as error:
            print(f"  {label:9s} does not run: {str(error)[:100]}")
            continue
        said(label, *times)
        best = label, *times
    if best:
        print(f"  ratio {name}, of {best[0]}: forward {best[1] / forward:.2f} backward {best[2] / sum(parts):.2f}", flush=True)


if __name__ == "__main__":
    print(torch.cuda.get_device_name(), torch.__version__, "cudnn", torch.backends.cudnn.version())
    for shape in SHAPES:
        timed(shape)
