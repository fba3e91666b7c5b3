"""devmap.measure: sizes that can be counted by hand, the kernels of attention, questions about data."""

import json
import unittest
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import devmap
from devmap._core.measure import attention, machine

MIB = 1 << 20


def line_of(error):
    return str(error.exception)


class Sizes(unittest.TestCase):
    def test_a_product(self):
        """Weights 64 MiB and their gradient, input and output 16 MiB each, and two workspaces of 32 MiB."""

        def step():
            layer = nn.Linear(4096, 4096, bias=False, device="cuda")
            layer(torch.randn(1024, 4096, device="cuda")).sum().backward()

        device = devmap.measure(step, gpu="h200").devices[0]
        self.assertEqual(device.peak - (64 + 64 + 16 + 32 + 32) * MIB, 2 * 512)  # the loss and its gradient
        self.assertEqual(sum(one.bytes for one in device.alive if one.operation == "cuBLAS workspace"), 64 * MIB)
        self.assertEqual(device.line.partition(":")[0], "torch_measure.py")
        small = devmap.measure(step, gpu="a100-80gb").devices[0]
        self.assertLess(small.peak, device.peak)  # workspaces of 8 MiB

    def test_the_module_of_a_tensor(self):
        def step():
            net = nn.Sequential(nn.Linear(256, 256), nn.GELU()).to("cuda")
            net(torch.zeros(4096, 256, device="cuda")).sum().backward()

        alive = devmap.measure(step).devices[0].alive
        self.assertIn("1 (GELU)", [one.module for one in alive])

    def test_a_list_as_an_index(self):
        """x, the zeros that the column's gradient is put into, and the gradient of x are 64 MiB each."""

        def step():
            x = torch.randn(4, 1 << 22, device="cuda", requires_grad=True)
            (x * 2)[:, [-2]].sum().backward()

        self.assertEqual(devmap.measure(step).peaks[0] // MIB, 192)

    def test_two_replicas_of_four_shards(self):
        """HSDP without a mesh of its own, and with one: its all-reduce asks a stream for its event, and its backward for
        the current stream. Weight, gradient and the states of AdamW are 4 MiB whole."""
        from torch import distributed
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.testing._internal.distributed.fake_pg import FakeStore

        def step(replicas):
            distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
            mesh = init_device_mesh("cuda", (replicas, 8 // replicas), mesh_dim_names=("replicas", "shards")) if replicas > 1 else None
            layer = nn.Linear(1024, 1024, bias=False, device="cuda")
            fully_shard(layer, mesh=mesh)
            optimizer = torch.optim.AdamW(layer.parameters(), fused=True)
            for _ in range(2):
                layer(torch.randn(8, 1024, device="cuda")).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            distributed.destroy_process_group()
            return layer, optimizer

        ends = [devmap.measure(step, replicas).devices[0].end for replicas in (1, 2)]
        kept = [3 * 4 * MIB // shards for shards in (8, 4)]  # the weight and two states
        self.assertEqual(ends[1] - ends[0], kept[1] - kept[0])

    def test_the_range_of_reserved_memory(self):
        """The sum of the softmax's backward is inside a kernel: 512 MiB that a segment of its own holds."""

        def step():
            x = torch.randn(1 << 27, device="cuda", requires_grad=True).view(1 << 17, 1 << 10)
            torch._softmax(x, -1, False).backward(torch.empty_like(x))

        low, high = devmap.measure(step).devices[0].reserved
        self.assertEqual(high - low, 512 * MIB)

    def test_two_gpus(self):
        def step():
            first, second = nn.Linear(512, 512).to("cuda:0"), nn.Linear(512, 512).to("cuda:1")
            second(first(torch.randn(2048, 512, device="cuda:0")).to("cuda:1")).sum().backward()
            self.assertEqual((first.weight.grad.device.index, second.weight.grad.device.index), (0, 1))

        first, second = devmap.measure(step, gpus=2).peaks
        self.assertGreater(min(first, second), 64 * MIB)
        with self.assertRaisesRegex(devmap.DevmapError, "cuda:1"):
            devmap.measure(step, gpus=1)

    def test_a_storage_that_is_freed_and_allocated_again(self):
        """As FSDP does it: x and y are 64 MiB each, and never there at once."""

        def step():
            x = torch.empty(1 << 24, device="cuda")
            x.untyped_storage().resize_(0)
            y = torch.empty(1 << 24, device="cuda")
            del y
            x.untyped_storage().resize_(1 << 26)

        device = devmap.measure(step).devices[0]
        self.assertEqual(device.peak, 64 * MIB)

    def test_a_storage_that_grows(self):
        """The old memory is there until the new one has its data (Resize.cpp). An empty storage has none."""

        def of_storage(count):
            torch.empty(count, device="cuda").untyped_storage().resize_(64 * MIB)

        def of_tensor(count):
            torch.empty(count, device="cuda").resize_(16 * MIB)

        for count, peak in ((4 * MIB, 16 + 64), (0, 64)):
            for step in (of_storage, of_tensor):
                device = devmap.measure(step, count).devices[0]
                self.assertEqual((device.peak, device.end), (peak * MIB, 0))

    def test_fsdp(self):
        """Four GPUs share 8 layers of 4 MiB. A rank has its parts, with gradients, and two whole layers at most."""
        from torch import distributed
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.testing._internal.distributed.fake_pg import FakeStore

        def step():
            mesh = init_device_mesh("cuda", (4,))
            with torch.device("meta"):
                net = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(8)))
            for layer in net:
                fully_shard(layer, mesh=mesh)
            fully_shard(net, mesh=mesh).to_empty(device="cuda")
            torch.cuda.empty_cache()
            for _ in range(2):
                net(torch.randn(8, 1024, device="cuda")).sum().backward()

        distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
        try:
            measured = devmap.measure(step)
        finally:
            distributed.destroy_process_group()
        self.assertEqual((measured.exact, measured.unfollowed), (True, []))
        parts, workspaces = 2 * 8 * MIB, 64 * MIB
        self.assertLess(measured.peaks[0] - parts - workspaces, 8 * 4 * MIB)

    def test_tied_parameters_and_arguments(self):
        net = nn.ModuleList([nn.Embedding(1000, 256), nn.Linear(256, 1000, bias=False)])
        net[1].weight = net[0].weight

        def step(net):
            net = net.cuda()
            self.assertIs(net[1].weight, net[0].weight)
            return net

        self.assertLess(devmap.measure(step, net).peaks[0], 2 * 1000 * 256 * 4)
        self.assertEqual(net[0].weight.device.type, "cpu")

    def test_autocast_and_optimizers(self):
        def step(foreach, autocast):
            net = nn.Linear(4096, 4096, device="cuda")
            optimizer = torch.optim.AdamW(net.parameters(), foreach=foreach, fused=not foreach)
            x = torch.randn(64, 4096, device="cuda")
            with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
                out = net(x)
            self.assertEqual(out.dtype, torch.bfloat16 if autocast else torch.float32)
            out.sum().backward()
            optimizer.step()

        fused, foreach = (devmap.measure(step, how, False).peaks[0] for how in (False, True))
        self.assertEqual((foreach - fused) // (64 * MIB), 1)  # a list of square roots
        devmap.measure(step, False, True)


class Attention(unittest.TestCase):
    def choice(self, gpu, dtype=torch.bfloat16, keys=8, width=64, mask=False, **more):
        q = torch.empty(2, 8, 128, width, dtype=dtype, device="meta", requires_grad=True)
        k = torch.empty(2, keys, 128, width, dtype=dtype, device="meta")
        if mask:
            more["attn_mask"] = torch.empty(128, 128, dtype=dtype, device="meta")
        return attention.choose(attention.Asked(q, k, k, **more), machine.Machine(gpu, 1))

    def test_by_gpu(self):
        for gpu, dtype, want in (
            ("h200", torch.bfloat16, "cudnn"),
            ("a100-80gb", torch.bfloat16, "flash"),
            ("v100-32gb", torch.float16, "efficient"),
            ("v100-32gb", torch.bfloat16, "math"),
            ("h200", torch.float32, "efficient"),
        ):
            self.assertEqual(self.choice(gpu, dtype), want, gpu)

    def test_by_call(self):
        self.assertEqual(self.choice("h200", keys=2), "math")
        self.assertEqual(self.choice("h200", keys=2, enable_gqa=True), "cudnn")
        self.assertEqual(self.choice("h200", dropout_p=0.1), "cudnn")
        self.assertEqual(self.choice("h200", width=256, mask=True), "cudnn")
        self.assertEqual(self.choice("b200-180gb", width=256), "flash")
        self.assertEqual(self.choice("b200-180gb", width=256, mask=True), "efficient")
        self.assertEqual(self.choice("h200", width=60, mask=True), "math")

    def test_as_an_h200_chooses(self):
        """Every kind of call of fixtures/measured/peaks_h200.jsonl."""
        path = Path(__file__).parents[3] / "fixtures" / "measured" / "peaks_h200.jsonl"
        calls = next(row["kernels"] for row in map(json.loads, path.read_text().splitlines()) if "kernels" in row)
        gpu = machine.Machine("h200", 1)
        self.assertGreater(len(calls), 300)
        for dtype, heads, keys, queries, length, width, values, mask, grouped, kernel in calls:
            kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[dtype]
            q, k, v = (torch.empty(2, *shape, dtype=kind, device="meta") for shape in ((heads, queries, width), (keys, length, width), (keys, length, values)))
            bias = None if mask is None else torch.empty(2, 1, queries, length, dtype=kind, device="meta")
            asked = attention.Asked(q, k, v, bias, is_causal=mask is None and queries > 1 and length > 1, enable_gqa=bool(grouped))
            with self.subTest(call=(dtype, heads, keys, queries, length, width, values, mask, grouped)):
                self.assertEqual(attention.choose(asked, gpu), kernel)

    def test_autocast_lowers_before_the_choice(self):
        """q of fp32 (rotary embeddings) and v of 16 bits are both lowered first: ATen/autocast_mode.h."""

        def step():
            q, v = torch.randn(2, 8, 128, 64, device="cuda"), torch.randn(2, 2, 128, 64, device="cuda", dtype=torch.bfloat16)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                out = torch.nn.functional.scaled_dot_product_attention(q, v.float(), v, is_causal=True, enable_gqa=True)
            self.assertEqual(out.dtype, torch.bfloat16)

        self.assertEqual(dict(devmap.measure(step, gpu="h200").kernels), {"cudnn": 1})

    def test_gradients_are_added_in_place(self):
        """Three slices' gradients: the sum, and the one that is added (input_buffer.cpp)."""

        def step():
            x = torch.zeros(4, 1 << 20, device="cuda", requires_grad=True)
            y = x * 1
            (y[0].sum() + y[1].sum() + y[2].sum()).backward()

        self.assertLess(devmap.measure(step).peaks[0], 70 << 20)  # 64 MiB, out of place 80

    def test_derivatives_that_scatter(self):
        """gather's and index_select's gradients are zeros that are written in place (FunctionsManual.cpp, gather_backward)."""
        for read in (lambda x, i: x.gather(1, i), lambda x, i: x.index_select(1, i[0])):

            def step():
                x = torch.zeros(4, 1 << 20, device="cuda", requires_grad=True)
                read(x, torch.zeros(4, 1, dtype=torch.long, device="cuda")).sum().backward()

            self.assertLess(devmap.measure(step).peaks[0], 40 << 20)  # 32 MiB, out of place 48

    def test_in_a_step(self):
        def step():
            q = torch.randn(2, 8, 512, 64, device="cuda", dtype=torch.bfloat16)
            F.scaled_dot_product_attention(q, q, q, is_causal=True)

        self.assertEqual(devmap.measure(step).kernels, {"cudnn": 1})


class Data(unittest.TestCase):
    def test_a_fraction_is_assumed(self):
        found = devmap.measure(lambda: torch.zeros(3, device="cuda").sum().item())
        self.assertRegex(found.assumed[0], r"torch_measure.py:\d+ reads a value from the GPU: 1.0 was assumed")

    def test_scaled_gradients_are_finite(self):
        """GradScaler skips a step with infinite gradients, which makes no states."""

        def step():
            weight = torch.nn.Parameter(torch.zeros(8, device="cuda"))
            scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.AdamW([weight])
            scaler.scale(weight.sum()).backward()
            scaler.step(optimizer)
            states.update(optimizer.state)

        states = {}
        devmap.measure(step)
        self.assertTrue(states)

    def test_a_count_is_asked_for(self):
        def step():
            return torch.zeros(1000, device="cuda").nonzero()

        with self.assertRaises(devmap.DevmapError) as error:
            devmap.measure(step)
        line = line_of(error).split(" at ")[1].split(" ")[0]
        found = devmap.measure(step, values={line: 100})
        self.assertEqual(found.devices[0].end, 1024)  # 100 whole numbers of 8 bytes, which the step returns
        with self.assertRaisesRegex(devmap.UsageError, "no question"):
            devmap.measure(step, values={line: 100, "other.py:1": 2})

    def test_a_whole_number_is_asked_for(self):
        with self.assertRaisesRegex(devmap.DevmapError, r"torch_measure.py:\d+ reads a whole number"):
            devmap.measure(lambda: torch.zeros(3, device="cuda", dtype=torch.long).max().item())

    def test_memory_that_is_not_followed(self):
        def step():
            torch.compile(nn.Conv2d(3, 8, 3).cuda())(torch.randn(1, 3, 32, 32, device="cuda"))

        found = devmap.measure(step, gpu="a100-80gb")  # cuDNN has no description of it here
        self.assertEqual((found.exact, found.fits, len(found.unfollowed)), (False, None, 2))
        self.assertRegex(found.table(), r"not followed: torch_measure.py:\d+")
        with self.assertRaisesRegex(devmap.DevmapError, r"torch_measure.py:\d+.*numpy"):
            devmap.measure(lambda: torch.zeros(99, device="cuda").numpy())

    def test_an_extension_without_a_fake(self):
        @torch.library.custom_op("devmap_test::opaque", mutates_args=())
        def opaque(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        with self.assertRaisesRegex(devmap.DevmapError, r"torch_measure.py:\d+.*devmap_test.*opaque.*register_fake"):
            devmap.measure(lambda: opaque(torch.zeros(9, device="cuda")))

    def test_a_tensor_of_the_cpu_as_a_script_logs_it(self):
        """Images made of random numbers, format() of a loss, torch.save."""

        def step():
            with torch.inference_mode():
                torch.tensor(5, device=torch.device("cuda", 0))
            torch.save(torch.zeros(999, device="cuda"), "/nowhere/model.pt")
            return torch.randn(99).numpy().shape, f"{torch.ones((), device='cuda'):.1f}"

        said = []
        devmap.measure(lambda: said.extend(step()))
        self.assertEqual(said, [(99,), "1.0"])

    @unittest.skipUnless(torch.version.cuda and torch.backends.cudnn.version(), "cuDNN is part of torch for CUDA")
    def test_the_workspace_of_a_convolution(self):
        """NCHW in 16 bits: cuDNN lays the input and the output out anew, at least."""

        def step():
            conv, x = nn.Conv2d(128, 128, 3, padding=1).cuda().bfloat16(), torch.randn(8, 128, 64, 64, device="cuda", dtype=torch.bfloat16)
            conv(x)

        found = devmap.measure(step).devices[0]
        inside = [one.bytes for one in found.alive if one.operation == "inside convolution"]
        self.assertEqual(len(inside), 1)
        self.assertGreater(inside[0], 8 * 128 * 64 * 64 * 2)

    def test_an_encoder_layer_without_gradients(self):
        """The input, the sum ahead of the network, its hidden tensor of four and the result: 7 · 16 MiB, as an H200 has (ViT infer
        of fixtures/measured/exported_h200.jsonl). With a mask torch's other code runs, with ReLU's result: 10 · 16 MiB or more."""

        def peak(**masks):
            def step():
                layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="cuda").eval()
                rows = torch.zeros(16, 512, 512, device="cuda")
                with torch.no_grad():
                    layer(rows, **{name: one.to("cuda") for name, one in masks.items()})

            return devmap.measure(step, gpu="h200").peaks[0] // MIB

        rest = 12 + 32 + 1  # weights, cuBLAS's workspaces
        self.assertEqual(peak(), 7 * 16 + rest)
        self.assertGreaterEqual(peak(src_mask=torch.zeros(512, 512)), 10 * 16 + rest)

    def test_a_recurrent_layer(self):
        """Four gates and a cell of each step in fp32, which is what backward needs, and the weights in one buffer."""
        kept = {}

        def step(steps):
            lstm = nn.LSTM(64, 256).cuda()
            out = lstm(torch.randn(steps, 32, 64, device="cuda"))
            kept[steps] = torch.cuda.memory_allocated()
            out[0].sum().backward()
            return [one.grad for one in lstm.parameters()]

        first, second = devmap.measure(step, 10), devmap.measure(step, 20)
        self.assertEqual(kept[20] - kept[10], 10 * 32 * 4 * (5 * 256 + 256 + 64))  # what is saved, the output, the input
        self.assertEqual(first.devices[0].end, second.devices[0].end)  # the gradients and the workspaces of cuBLAS

    def test_types_of_cuda(self):
        """torch.cuda.FloatTensor makes a tensor of data or of a size, and .type() with it moves one."""

        def step():
            kind = torch.cuda.FloatTensor
            kept = [kind([[1.0] * 1024] * 1024), kind(1024, 1024), torch.zeros(1024, 1024).type(kind), torch.zeros(1024, 1024).type("torch.cuda.HalfTensor")]
            return kept, torch.cuda.LongTensor([1, 2]).dtype, kept[1].type(torch.float64).dtype

        found = devmap.measure(step)
        self.assertEqual(found.devices[0].end, 14 * MIB)
        self.assertEqual(found.peaks[0], 22 * MIB)

    def test_a_function_of_other_operations(self):
        """logsumexp subtracts and exponentiates: two more tensors of 64 MiB. Inference mode leaves no operation whole."""

        def step(mode):
            with mode():
                x = torch.randn(16, 1 << 20, device="cuda")
                x.logsumexp(1)
                F.cross_entropy(x.view(1 << 20, 16), torch.zeros(1 << 20, device="cuda", dtype=torch.long))

        plain, inference = (devmap.measure(step, mode) for mode in (torch.no_grad, torch.inference_mode))
        self.assertGreater(plain.peaks[0], 128 * MIB)
        self.assertEqual(plain.peaks, inference.peaks)
        found = devmap.measure(lambda: torch.randn(16, 1 << 20, device="cuda").logsumexp(1))
        self.assertGreaterEqual(found.peaks[0], 128 * MIB)
        self.assertTrue(found.exact)

    def test_a_loss_that_keeps_the_size_of_its_input(self):
        def step():
            x = torch.rand(1 << 20, device="cuda")
            return F.binary_cross_entropy(x, x)

        self.assertEqual(devmap.measure(step).devices[0].end, 4 * MIB)

    def test_memory_inside_a_kernel(self):
        def step(later):
            torch.randn(1 << 20, device="cuda").sort()
            return torch.empty(later, dtype=torch.uint8, device="cuda")

        found = devmap.measure(step, 1)
        self.assertFalse(found.exact)
        self.assertRegex(found.unfollowed[0], r"torch_measure.py:\d+ \(no module\).*\(sort\)")
        self.assertTrue(devmap.measure(step, 256 * MIB).exact)  # the bound of sort stays below this peak

    def test_an_extension(self):
        @torch.library.custom_op("devmap_test::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        twice.register_fake(torch.empty_like)
        found = devmap.measure(lambda: twice(torch.zeros(9, device="cuda")))
        self.assertFalse(found.exact)
        self.assertIn("devmap_test::twice", found.unfollowed[0])

    def test_what_transformers_asks(self):
        """is_fake_tensor of transformers/utils/import_utils.py, also in a module that the step imports."""

        def asks(name):
            module = {"__name__": name}
            exec("def ask(x): import torch; return isinstance(x, getattr(torch, '_subclasses').FakeTensor)", module)
            return module["ask"]

        def step():
            x = torch.zeros(9, device="cuda")
            return asks("transformers.utils.import_utils")(x), asks("other")(x)

        said = []
        devmap.measure(lambda: said.extend(step()))
        self.assertEqual(said, [False, True])

    def test_wrong_calls(self):
        for keywords in ({"gpu": "h300"}, {"gpu": "mi300x-192gb"}, {"gpus": 0}):
            with self.assertRaises(devmap.UsageError):
                devmap.measure(print, **keywords)

    def test_torch_is_as_before(self):
        devmap.measure(lambda: torch.zeros(3, device="cuda"))
        self.assertFalse(torch.cuda.is_available())
        self.assertEqual(torch.zeros(100).sum().item(), 0)


if __name__ == "__main__":
    unittest.main()
