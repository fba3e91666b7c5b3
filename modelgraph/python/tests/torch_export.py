"""devmap.export: what one forward without memory shows, and what is said of what it does not."""

import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import tempfile
import types
import unittest
import warnings

import devmap
import torch
from torch import nn

WIDTH = 32
IDS = torch.zeros((2, 16), dtype=torch.int64)


class Mix(nn.Module):
    """No operation that devmap knows."""

    def __init__(self):
        super().__init__()
        self.scale, self.never = nn.Parameter(torch.ones(WIDTH)), nn.Conv1d(WIDTH, WIDTH, 3)

    def forward(self, hidden):
        spectrum = torch.fft.rfft(hidden.float(), dim=1) * torch.sigmoid(self.scale.mean())
        return torch.tanh(torch.fft.irfft(spectrum, n=hidden.shape[1], dim=1)).to(hidden.dtype) * self.scale


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden):
        query, key, value = self.qkv(hidden).split([WIDTH, WIDTH // 2, WIDTH // 2], -1)
        query, key, value = (one.unflatten(-1, (-1, 8)).transpose(1, 2) for one in (query, key, value))
        key, value = key.repeat_interleave(2, 1), value.repeat_interleave(2, 1)
        made = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(made.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, mixer):
        super().__init__()
        self.norm1, self.mixer, self.norm2 = nn.LayerNorm(WIDTH), mixer, nn.RMSNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)

    def forward(self, hidden):
        hidden = hidden + self.mixer(self.norm1(hidden))
        return hidden + self.down(nn.functional.silu(self.up(self.norm2(hidden))))


class Net(nn.Module):
    def __init__(self, *mixers):
        super().__init__()
        self.embed, self.head = nn.Embedding(50, WIDTH), nn.Linear(WIDTH, 50, bias=False)
        self.blocks, self.norm = nn.ModuleList(Block(mixer) for mixer in mixers), nn.LayerNorm(WIDTH)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        hidden = self.embed(ids)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))


def layers(model):
    return {layer["name"]: layer for layer in model["layers"]}


def said(model):
    return "\n".join(model.get("warnings", []))


class OperationsTest(unittest.TestCase):
    def test_operations(self):
        found = layers(devmap.export(Net(Attend()), inputs=(IDS,)))
        attention = found["blocks.0.mixer"]
        self.assertEqual(
            attention["op"],
            {"kind": "attention", "dim": WIDTH, "heads": 4, "kv_heads": 2, "head_dim": 8, "fused": True},
        )
        self.assertEqual(attention["inputs"], ["blocks.0.norm1", "embed"])
        self.assertEqual(
            [one["name"] for one in attention["params"]], ["qkv.weight", "qkv.bias", "out.weight", "out.bias"]
        )
        self.assertEqual(found["blocks.0"]["op"], {"kind": "mlp", "dim": WIDTH, "hidden": 64, "activation": "silu"})
        self.assertEqual(found["blocks.0"]["inputs"], ["blocks.0.norm2", "blocks.0.mixer"])
        self.assertEqual(found["blocks.0.norm2"]["op"]["style"], "rms")
        self.assertEqual(found["head"]["op"], {"kind": "head", "dim": WIDTH, "vocab": 50})
        self.assertEqual({layer.get("unit") for layer in found.values()}, {None, "blocks.0"})

    def test_rows(self):
        """A table of which a forward reads some rows."""

        class Positions(Net):
            def __init__(self):
                super().__init__(Attend())
                self.pos = nn.Parameter(torch.zeros(64, WIDTH))

            def forward(self, ids):
                hidden = self.embed(ids) + self.pos[: ids.shape[1]]
                return self.head(self.norm(self.blocks[0](hidden)))

        model = devmap.export(Positions(), inputs=(IDS,), steps=False)
        self.assertEqual(layers(model)["pos"]["op"]["vocab"], 64)
        self.assertTrue(devmap.inspect(model).params)

    def test_multihead(self):
        """torch.nn's own blocks, whose attention is one function."""
        net = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True), 2)
        found = layers(devmap.export(net, inputs=(torch.zeros(2, 16, WIDTH),)))
        self.assertEqual(
            found["layers.1.self_attn"]["op"],
            {
                "kind": "attention",
                "dim": WIDTH,
                "heads": 4,
                "kv_heads": 4,
                "head_dim": 8,
                "bidirectional": True,
                "fused": True,
            },
        )
        self.assertEqual(found["layers.1"]["op"], {"kind": "mlp", "dim": WIDTH, "hidden": 64, "activation": "relu"})

    def test_runs(self):
        """A module that is called three times, under two names."""
        net = Net(Attend(), Attend(), Attend())
        net.blocks[2] = net.blocks[0]
        model = devmap.export(net, inputs=(IDS,))
        found = layers(model)
        self.assertEqual(found["blocks.0.mixer"]["repeat"], 2)
        self.assertNotIn("repeat", found["blocks.1.mixer"])
        self.assertIn(["blocks.0.mixer.qkv.weight", "blocks.2.mixer.qkv.weight"], model["ties"])
        self.assertEqual(devmap.inspect(model).params, sum(one.numel() for one in net.parameters()))

    def test_bytes(self):
        """What is declared is what torch keeps, at other sizes than those of the export too."""
        net = Net(Mix())
        mix = layers(devmap.export(net, inputs=(IDS,)))["blocks.0.mixer"]["declared"]
        growth = mix["growth"]["activation_bytes"]
        parameters = {one.untyped_storage().data_ptr() for one in net.parameters()}
        for batch, seq in ((2, 16), (5, 16), (3, 40)):
            kept = {}

            def pack(tensor, kept=kept):
                storage = tensor.untyped_storage()
                if storage.data_ptr() not in parameters:
                    kept[storage.data_ptr()] = (storage.nbytes(), tensor)
                return tensor

            hidden = torch.randn(batch, seq, WIDTH, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                out = net.blocks[0].mixer(hidden)
            want = sum(size for size, _ in kept.values())
            have = mix["activation_bytes"] + growth.get("sequence", 0) * batch + growth.get("token", 0) * batch * seq
            self.assertEqual(have, want, f"{batch} × {seq}: {growth}")
            del out

    def test_plan(self):
        """A plan of another batch than that of the export counts its bytes, and tells what was not seen."""
        model = devmap.export(Net(Mix(), Attend()), inputs=(IDS,))
        plans = [devmap.plan(model, gpus=["80GiB"], mode="train", batch=batch, seq=64) for batch in (2, 20, 200)]
        kept = [plan.devices[0].predicted.activations_bytes for plan in plans]
        self.assertAlmostEqual((kept[2] - kept[1]) / (kept[1] - kept[0]), 10, 2)  # what is fixed is cuBLASLt's workspace
        self.assertIn("blocks.0.mixer.never: not called in this forward", "\n".join(plans[0].warnings))


class UnseenTest(unittest.TestCase):
    """Each is exported as far as it can be seen, says what was not, and is planned."""

    def unseen(self, module, words, inputs=(IDS,), **more):
        model = devmap.export(module, inputs=inputs, **more)
        self.assertIn(words, said(model))
        noted = devmap.plan(model, gpus=2, mode="load").document["warnings"]
        self.assertEqual(noted[: len(model["warnings"])], model["warnings"])
        return model

    def test_condition(self):
        class Either(Net):
            def forward(self, ids):
                hidden = self.embed(ids)
                return self.head(hidden) if hidden.sum() > 0 else self.head(self.norm(hidden))

        found = said(self.unseen(Either(), "asks whether values that depend on the data are so"))
        self.assertIn("norm: not called", found)
        line = re.search(r"with values={'(.*)': False}", found)[1]
        self.assertNotIn("norm", said(devmap.export(Either(), inputs=(IDS,), values={line: False})))

    def test_loop(self):
        class Loop(Net):
            def forward(self, ids):
                hidden = self.embed(ids)
                for _ in range(int(hidden.argmax())):
                    hidden = self.norm(hidden)
                return self.head(hidden)

        self.unseen(Loop(), "the forward stopped before its end (Unseen: ")

    def test_inner_loop(self):
        """What fails inside a block does not hide the rest."""

        class Chosen(Mix):
            def forward(self, hidden):
                return hidden * hidden.argmax().item()

        model = self.unseen(Net(Chosen(), Attend()), "blocks.0.mixer: its forward could not be followed")
        self.assertEqual(layers(model)["blocks.1.mixer"]["op"]["kind"], "attention")

    def test_values_of_inputs(self):
        """Values that follow from the inputs alone are known."""

        class Lengths(Net):
            def forward(self, ids, lengths):
                hidden = self.embed(ids)[:, : int(lengths.max())]
                return self.head(self.norm(hidden)) if bool((lengths > 3).all()) else hidden

        model = devmap.export(Lengths(), inputs={"ids": IDS, "lengths": torch.tensor([5, 9])})
        self.assertEqual(layers(model)["head"]["op"]["kind"], "head")
        self.assertNotIn("asks", said(model))

    def test_made_in_forward(self):
        class Made(Net):
            def forward(self, ids):
                self.late = nn.Parameter(torch.ones(WIDTH))
                return self.head(self.embed(ids) * self.late)

        module = Made()
        self.unseen(module, "late: made in the forward")
        self.assertNotIn("late", dict(module.named_parameters()), "the export changed the module")

        class Table(Net):
            def forward(self, ids):
                self.register_buffer("table", torch.ones(WIDTH))
                return self.head(self.embed(ids) * self.table)

        self.unseen(Table(), "table: made in the forward")

    def test_hooks(self):
        net = Net(Attend())
        net.norm.register_forward_hook(lambda *_: 1 / 0)
        self.unseen(net, "hooks of norm were not run")

    def test_hook_calls(self):
        """A hook that is a closure over another module of the model: its copy runs."""
        net = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(4)))
        other = net[3]
        net[0].register_forward_hook(lambda _, __, result: result + other(result))
        plan = devmap.plan(net, gpus=2, mode="train", batch=4, inputs=(torch.zeros(4, WIDTH),))
        self.assertEqual((plan.device_map["0"], len(set(plan.device_map.values()))), (plan.device_map["3"], 2))
        self.assertRegex(" ".join(plan.warnings), r"one GPU must hold 0, 3: torch_export\.py:\d+ \(add")

    def test_one_memory(self):
        """Two parameters on one memory are two: each has a gradient, and its own memory on a GPU."""
        net = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3)))
        net[2].weight = nn.Parameter(net[0].weight.data)
        model = self.unseen(net, "0.weight and 2.weight are 2 parameters on one memory", (torch.zeros(4, WIDTH),))
        self.assertNotIn("ties", model)
        self.assertEqual(devmap.inspect(model).params, 3 * WIDTH * WIDTH)

    def test_vmap(self):
        """A forward inside torch.vmap, and a module whose parameters a caller replaces."""

        class Ensemble(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.body = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
                self.weights, self.biases = nn.Parameter(torch.zeros(5, WIDTH, WIDTH)), nn.Parameter(torch.zeros(5, WIDTH))

            def forward(self, x):
                x = torch.vmap(self.one)(x)
                run = lambda weight, bias: torch.func.functional_call(self.body, {"weight": weight, "bias": bias}, (x,))  # noqa: E731
                return torch.vmap(run)(self.weights, self.biases).mean(0)

        def step(net, x):
            net = net.cuda()
            optimizer = torch.optim.AdamW(net.parameters(), fused=True)
            for _ in range(2):
                batch = x.cuda()
                result = net(batch)
                result.float().mean().backward()
                del result
                optimizer.step()
                optimizer.zero_grad()

        for dtype in (torch.float32, torch.bfloat16):
            net, rows = Ensemble().to(dtype), torch.zeros(4096, WIDTH, dtype=dtype)
            plan = devmap.plan(net, gpus=1, gpu="h200-141gb", mode="train", preset="accelerate-loop", batch=4096, inputs=(rows,))
            self.assertIn("body.weight, body.bias: not called in this forward", " ".join(plan.warnings))
            self.assertNotIn("weights,", " ".join(plan.warnings).partition("not called")[0])
            self.assertAlmostEqual(plan.peaks[0] / devmap.measure(step, net, rows).peaks[0], 1, delta=0.003)

    def test_frozen_and_quantised(self):
        net = Net(Attend())
        net.requires_grad_(False)
        net.blocks[0].up.weight = nn.Parameter(torch.zeros(64 * WIDTH // 2, 1, dtype=torch.uint8), requires_grad=False)
        model = self.unseen(net, "parameters take no gradient")
        self.assertIn("stored quantised (blocks.0.up.weight)", said(model))
        self.assertEqual(
            layers(model)["blocks.0"]["params"][0], {"name": "up.weight", "shape": [1024, 1], "dtype": "u8"}
        )

    def test_plain_list(self):
        """Modules that torch does not know of: the forward is seen to its end, and no map of it is taken for one that runs."""

        class Hidden(Net):
            def __init__(self):
                super().__init__()
                self.more = [nn.Linear(WIDTH, WIDTH) for _ in range(2)]

            def forward(self, ids):
                hidden = self.embed(ids)
                for layer in self.more:
                    hidden = layer(hidden)
                return self.head(self.norm(hidden))

        model = self.unseen(Hidden(), "more is a plain list with 2 modules of 2,112 parameters")
        self.assertEqual(layers(model)["head"]["op"]["kind"], "head")
        self.assertNotIn("stopped before its end", said(model))
        with self.assertRaisesRegex(devmap.DevmapError, r"torch_export\.py:\d+ in Linear reads tensors on cuda:\d and cpu"):
            devmap.plan(Hidden(), gpus=2, mode="load", inputs=(IDS,))

    def test_chosen_rows(self):
        """Experts that take the rows which a router chose: all, as none says how many."""

        class Mixture(nn.Module):
            def __init__(self):
                super().__init__()
                self.gate, self.experts = nn.Linear(WIDTH, 3), nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

            def forward(self, hidden):
                rows = hidden.flatten(0, -2)
                weights, chosen = torch.topk(self.gate(rows).softmax(-1), 2)
                out = torch.zeros_like(rows)
                for index, expert in enumerate(self.experts):
                    row, place = torch.nonzero(chosen == index, as_tuple=True)
                    out[row] += expert(rows[row]) * weights[row, place].unsqueeze(-1)
                return out.view_as(hidden)

        model = self.unseen(Net(Mixture()), "how many elements nonzero finds depends on the data")
        self.assertNotIn("not called", said(model))
        self.assertNotIn("stopped", said(model))

    def test_incomplete(self):
        """A forward that was not seen to its end counts nothing but weights."""

        class Loop(Net):
            def forward(self, ids):
                return self.head(self.embed(ids)[:, : int(self.embed(ids).argmax())])

        with self.assertRaisesRegex(devmap.UsageError, "stopped before its end .*mode='load'"):
            devmap.plan(Loop(), gpus=2, mode="train", inputs=(IDS,))

    def test_complex(self):
        class Waves(Mix):
            def __init__(self):
                super().__init__()
                self.filter = nn.Parameter(torch.ones(9, 1, dtype=torch.complex64))

            def forward(self, hidden):
                return torch.fft.irfft(torch.fft.rfft(hidden, dim=1) * self.filter, n=hidden.shape[1], dim=1)

        model = devmap.export(Net(Waves()), inputs=(IDS,))
        self.assertNotIn("quantised", said(model))
        self.assertIn({"name": "filter", "shape": [9, 1], "dtype": "c64"}, layers(model)["blocks.0.mixer"]["params"])

    def test_weight_norm(self):
        """A weight that is made of others is one part with its module."""

        class Chain(nn.Module):
            def forward(self, x):
                return self.two(self.one(x))

        norms = nn.utils.parametrizations
        for norm in (norms.weight_norm, norms.spectral_norm, nn.utils.weight_norm, nn.utils.spectral_norm):
            net = Chain()
            net.one, net.two = norm(nn.Linear(WIDTH, WIDTH)), nn.Linear(WIDTH, WIDTH)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                plan = devmap.plan(net, gpus=2, mode="load", inputs=(torch.zeros(2, WIDTH),))
            self.assertEqual(dict(plan), {"one": 0, "two": 1}, norm)
            self.assertNotIn("attribute", "".join(plan.warnings))

    def test_plain_tensor(self):
        net = Net(Attend())
        net.table = torch.zeros(8, 8)
        self.unseen(net, "table is a tensor in a plain attribute, 256 bytes")

    def test_no_inputs(self):
        self.unseen(Net(Attend()), "inputs was not given", inputs=None)

    def test_compiled(self):
        model = self.unseen(torch.compile(Net(Attend())), "the module was wrapped in OptimizedModule")
        self.assertIn("blocks.0.mixer", layers(model))

    def test_refused(self):
        for words, call in {
            "'0.weight' has no shape yet": lambda: devmap.export(
                nn.Sequential(nn.LazyLinear(4)), inputs=(torch.zeros(2, 3),)
            ),
            "'int' is not a torch.nn.Module": lambda: devmap.export(3),
            "no module is a 'Blok'": lambda: devmap.export(Net(), no_split=["Blok"]),
            "there is nothing to place": lambda: devmap.export(nn.ReLU()),
            "inputs holds no tensor": lambda: devmap.export(Net(), inputs=(3,)),
            "inputs is a 'int'": lambda: devmap.export(Net(), inputs=3),
        }.items():
            with self.assertRaisesRegex(devmap.DevmapError, words):
                call()


class ConvolutionTest(unittest.TestCase):
    def test_bytes(self):
        """What is kept of convolutions with strides, at edges, transposed and with activations is what torch keeps."""
        conv, up = nn.Conv2d, nn.ConvTranspose2d
        for name, net in {
            "stride, batch norm": nn.Sequential(conv(3, 8, 3, 2, 1), nn.BatchNorm2d(8), conv(8, 4, 3, 2, 1)),
            "stride, activations": nn.Sequential(
                conv(3, 8, 3, 2, 1), nn.ReLU(), conv(8, 16, 3, 2, 1), nn.GELU(), conv(16, 4, 3, 2, 1)
            ),
            "edge": nn.Sequential(conv(3, 8, 3), nn.Sigmoid(), conv(8, 16, 3)),
            "transposed": nn.Sequential(up(3, 8, 2, 2), nn.Sigmoid(), up(8, 4, 4, 2, 1)),
            "patches": nn.Sequential(conv(3, 8, 4, 4), nn.Sigmoid(), conv(8, 4, 4, 4)),
        }.items():
            model = devmap.export(net, inputs=(torch.zeros(2, 3, 32, 32),), steps=False)
            for batch in (2, 4):
                seen = devmap.inspect(model, mode="train", batch=batch, seq=1, precision="32-true")
                kept = self.kept(net, torch.zeros(batch, 3, 32, 32))
                self.assertEqual(sum(unit.activation_bytes for unit in seen.units), kept, f"{name}, {batch}")

    def test_made(self):
        """Kernels that are made of parameters, by a norm of weights."""
        norms = nn.utils.parametrizations
        net = nn.Sequential(norms.weight_norm(nn.Conv2d(3, 8, 3)), norms.spectral_norm(nn.Conv2d(8, 4, 3)))
        model = devmap.export(net, inputs=(torch.zeros(2, 3, 32, 32),))
        self.assertEqual(devmap.inspect(model).params, sum(one.numel() for one in net.parameters()))
        self.assertTrue(devmap.plan(model, gpus=2, mode="train", batch=2).device_map)

    def kept(self, net, pixels):
        own = {one.untyped_storage().data_ptr() for one in (*net.parameters(), *net.buffers())}
        found = {}

        def pack(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                found[storage.data_ptr()] = (storage.nbytes(), tensor)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            net(pixels)
        return sum(size for size, _ in found.values())


class WrappedTest(unittest.TestCase):
    """Modules as frameworks for training wrap them, in a group of four processes; only this one is real."""

    @classmethod
    def setUpClass(cls):
        from torch.testing._internal.distributed.fake_pg import FakeStore

        torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
        cls.addClassCleanup(torch.distributed.destroy_process_group)
        cls.bare = devmap.export(Net(Attend()), inputs=(IDS,))

    def test_ddp(self):
        model = devmap.export(nn.parallel.DistributedDataParallel(Net(Attend())), inputs=(IDS,))
        self.assertEqual(model["warnings"][1:], self.bare["warnings"])
        self.assertIn("wrapped in DistributedDataParallel", model["warnings"][0])
        self.assertEqual({**model, "warnings": 0}, {**self.bare, "warnings": 0})

    def test_fsdp2(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        net, mesh = Net(Attend()), init_device_mesh("cpu", (4,))
        for part in (*net.blocks, net):
            fully_shard(part, mesh=mesh)
        model = devmap.export(net, inputs=(IDS,), no_split=["Block"])
        self.assertIn("cannot be copied", said(model))
        self.assertIn("only weights are known", said(model))
        self.assertIn("by their own sizes alone", model["unknown"][0])
        for asked in (devmap.inspect, lambda one: devmap.plan(one, gpus=2, mode="load")):
            asked(model)
        self.assertEqual(devmap.inspect(model).params, devmap.inspect(self.bare).params)
        self.assertEqual(layers(model)["blocks.0.up"]["params"], [
            {"name": "weight", "shape": [64, WIDTH], "dtype": "f32"}, {"name": "bias", "shape": [64], "dtype": "f32"},
        ])  # fmt: skip
        with self.assertRaisesRegex(devmap.UsageError, "cannot be copied.*mode='load'"):
            devmap.plan(net, gpus=2, mode="train", inputs=(IDS,))

    def test_pieces(self):
        """Parameters that are this process's pieces are refused, under whatever names."""
        from torch.distributed.fsdp import FullyShardedDataParallel

        cpu = torch.device("cpu")
        for names in (False, True):
            inner = Net(Attend())
            inner.blocks[0] = FullyShardedDataParallel(inner.blocks[0], use_orig_params=names, device_id=cpu)
            whole = FullyShardedDataParallel(Net(Attend()), use_orig_params=names, device_id=cpu)
            for net, place in ((whole, "the module"), (inner, "blocks.0")):
                with self.assertRaisesRegex(devmap.DevmapError, f"'{place}' is a FullyShardedDataParallel"):
                    devmap.export(net, inputs=(IDS,))
        net = Net(Attend())
        net.norm.weight = nn.Parameter(torch.empty(0))
        net.norm.weight.ds_shape = torch.Size([WIDTH])
        with self.assertRaisesRegex(devmap.DevmapError, "'norm.weight' is partitioned by ZeRO-3"):
            devmap.export(net, inputs=(IDS,))

    def test_followed(self):
        """A list of matrices is no linear layer; a cell runs, and a loop on data ends."""

        class Listed(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.ParameterList(nn.Parameter(torch.zeros(16, 16)) for _ in range(3))
                self.cell = nn.GRUCell(16, 16)

            def forward(self, x):
                for w in self.w:
                    x = torch.relu(x @ w)
                return self.cell(x)

        class Loops(nn.Sequential):
            def forward(self, x):
                while x.norm() > 1:
                    x = super().forward(x)
                return x

        model = devmap.export(Listed(), inputs=(torch.zeros(4, 16),))
        self.assertEqual({layer["name"] for layer in model["layers"] if "train" in layer.get("tape", {})}, {"w", "cell"})
        self.assertTrue(devmap.plan(model, gpus=1, mode="train", batch=4, precision="32-true").fits)
        self.assertIn("a tensor (bool)", said(devmap.export(Loops(nn.Linear(8, 8)), inputs=(torch.zeros(2, 8),))))

    @unittest.skipUnless(importlib.util.find_spec("peft"), "peft is not there")
    def test_peft(self):
        import peft

        net = peft.get_peft_model(Net(Attend()), peft.LoraConfig(r=4, target_modules=["up", "down"]))
        model = devmap.export(net, inputs=(IDS,))
        self.assertIn("not by their formulas", model["unknown"][0])
        marked = {f"{layer['name']}.{one['name']}".strip(".") for layer in model["layers"] for one in layer.get("params", ()) if one.get("frozen")}
        self.assertEqual(marked, {name for name, one in net.named_parameters() if not one.requires_grad})
        plan = devmap.plan(model, gpus=2, mode="train", batch=IDS.shape[0], seq=IDS.shape[1], precision="32-true")
        self.assertEqual(plan.document["model"]["params"], sum(one.numel() for one in net.parameters()))
        trained = sum(one.nbytes for one in net.parameters() if one.requires_grad)
        self.assertEqual(sum(one["predicted"]["optimizer_state_bytes"] for one in plan.document["devices"]), 2 * trained)
        model = devmap.export(net, inputs=(IDS,), steps=False)
        self.assertRegex(said(model), r"\d+ of \d+ parameters take no gradient .*an upper bound \(lora_rank")


@dataclasses.dataclass
class Found:
    hidden: torch.Tensor


class Odd(torch.nn.Module):
    """Layers of given types around a forward of its own."""

    def __init__(self, forward, *layers):
        super().__init__()
        self.layers, self.run = torch.nn.ModuleList(layers), forward

    def forward(self, x):
        return self.run(self, x)


def chain(net, x):
    for layer in net.layers:
        x = torch.relu(layer(x.to(layer.weight.dtype))) if not x.is_complex() else layer(x)
    return x


class OddModulesTest(unittest.TestCase):
    """Modules that a review found wrong, with exit status 0."""

    ROWS = (torch.zeros(16, 32),)

    def plan(self, net, mode="train", gpus=1, inputs=ROWS, **more):
        return devmap.plan(net, gpus=gpus, mode=mode, gpu="h200-141gb", batch=16, inputs=inputs, **more)

    def test_own_types(self):
        """Each parameter's gradient and states have its own type, complex ones too."""
        line = lambda dtype: torch.nn.Linear(32, 32, dtype=dtype)  # noqa: E731
        to_complex = lambda net, x: chain(net, torch.complex(x, x)).abs()  # noqa: E731
        for net in (Odd(chain, line(torch.float32), line(torch.bfloat16), line(torch.bfloat16)), Odd(to_complex, line(torch.complex64))):
            found = self.plan(net).devices[0].predicted
            held = sum(one.nbytes for one in net.parameters())
            self.assertEqual((found.params_bytes, found.grads_bytes or held, found.optimizer_state_bytes), (held, held, 2 * held))

    def test_results(self):
        """A result in a dataclass, an object or a generator has a backward; one without a gradient has a warning."""
        plain = lambda: [torch.nn.Linear(32, 32) for _ in range(3)]  # noqa: E731
        want = self.plan(Odd(chain, *plain())).peaks
        for wrap in (Found, lambda x: types.SimpleNamespace(inner=Found(x)), lambda x: iter([x])):
            self.assertEqual(self.plan(Odd(lambda net, x, wrap=wrap: wrap(chain(net, x)), *plain())).peaks, want)
        self.assertIn("takes a gradient, so that no backward runs", said(devmap.export(Odd(lambda net, x: chain(net, x).detach(), *plain()), inputs=self.ROWS)))

    def test_called_twice(self):
        net = torch.nn.Linear(32, 32)
        model = devmap.export(Odd(lambda odd, x: odd.layers[1](torch.tanh(odd.layers[0](torch.tanh(odd.layers[0](x))))), net, torch.nn.Linear(32, 32)), inputs=self.ROWS)
        self.assertEqual({layer["op"]["kind"] for layer in model["layers"]}, {"linear", "head"})
        self.plan(model, inputs=None)

    def test_unused(self):
        net = Odd(lambda odd, x: odd.layers[0](x), torch.nn.Linear(32, 32), torch.nn.Linear(32, 320))
        self.assertEqual(self.plan(net).devices[0].predicted.optimizer_state_bytes, 2 * sum(one.nbytes for one in net.layers[0].parameters()))

    def test_buffers(self):
        """A sparse buffer is its parts; a module of buffers alone has the memory of its steps, from a file too."""
        net = Odd(lambda odd, x: x @ odd.table)
        net.register_buffer("table", torch.zeros(32, 32))
        self.assertEqual(self.plan(net, "infer").peaks, self.plan(devmap.export(net, inputs=self.ROWS), "infer", inputs=None).peaks)
        self.assertGreater(self.plan(net, "infer").peaks[0], 32 * 32 * 4 + 2 * 16 * 32 * 4 - 1)
        for sparse in (torch.eye(64).to_sparse(), torch.eye(64).to_sparse_csr()):
            net.register_buffer("table", sparse)
            model = devmap.export(net)
            parts = [one["shape"] for layer in model["layers"] for one in layer["buffers"]]
            self.assertEqual(parts, [[64], [2, 64]] if sparse.layout == torch.sparse_coo else [[64], [65], [64]])

    def test_stopped(self):
        """A forward that stops is refused from the file too; an answer lets it run on."""
        net = Odd(lambda odd, x: odd.layers[1](odd.layers[0](x).repeat(int(odd.times.item()), 1)), torch.nn.Linear(32, 32), torch.nn.Linear(32, 32))
        net.register_buffer("times", torch.tensor(3))
        model = devmap.export(net, inputs=self.ROWS)
        with self.assertRaisesRegex(devmap.DevmapError, "the forward stopped before its end"):
            self.plan(model, inputs=None)
        devmap.plan(model, gpus=1, mode="load", gpu="h200-141gb")
        line = re.search(r"torch_export\.py:\d+", said(model)).group()
        for answer in (3, lambda _: 3):
            self.assertNotIn("stopped", said(devmap.export(net, inputs=self.ROWS, values={line: answer})))


class Drawn(nn.Module):
    """A small part on the first GPU, whose result is as large as what the second computes."""

    def __init__(self):
        super().__init__()
        self.place, self.paint = nn.Linear(256, 256), nn.Linear(256, 1024)

    def forward(self, rows):
        return torch.relu(self.paint(torch.relu(self.place(rows))))


class Read(nn.Module):
    """Two modules of the last GPU keep one tensor of the first."""

    def __init__(self):
        super().__init__()
        self.make, self.key, self.value = nn.Linear(256, 1024), nn.Linear(1024, 256), nn.Linear(1024, 256)

    def forward(self, rows):
        made = self.make(rows)
        return (self.key(made) * self.value(made)).mean()


class Chunks(nn.Module):
    """Modules that are called in turn; what one call makes for the other GPU is gone in the next."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(256, 1024), nn.Linear(1280, 256)

    def forward(self, rows):
        return sum(self.last(torch.cat([torch.relu(self.first(one)), one], -1)).mean() for one in rows.chunk(4))


class SeveralTest(unittest.TestCase):
    """Peaks on two GPUs are those of devmap.measure."""

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "needs accelerate")
    def test_peaks(self):
        import accelerate

        def step(make, places):
            model = accelerate.dispatch_model(make(), device_map=places, force_hooks=True)
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)
            for number in range(2):
                result = model(torch.zeros(8192, 256, device="cuda"))
                result.mean().backward()
                optimizer.step()
                optimizer.zero_grad()
                del result
                if number == 0:
                    torch.cuda.reset_peak_memory_stats(0), torch.cuda.reset_peak_memory_stats(1)

        workload = {"gpus": 2, "gpu": "h200-141gb", "mode": "train", "batch": 8192, "precision": "32-true", "preset": "accelerate-loop"}
        for make, places in ((Drawn, {"place": 0, "paint": 1}), (Read, {"make": 0, "key": 1, "value": 1}), (Chunks, {"first": 0, "last": 1})):
            with self.subTest(make.__name__):
                peaks = [one.predicted.peak_allocated_bytes for one in devmap.check(make(), places, inputs=(torch.zeros(8192, 256),), **workload).devices]
                for have, want in zip(peaks, devmap.measure(step, make, places, gpu="h200", gpus=2).peaks):
                    self.assertLess(abs(have / want - 1), 0.01, f"{have} for {want}")


class AgreedTest(unittest.TestCase):
    def test_other_weights(self):
        """An operation whose layer has other weights too is none: devmap reads what export writes."""

        class Placed(Attend):
            def __init__(self):
                super().__init__()
                self.places = nn.Parameter(torch.zeros(16, 8))

            def forward(self, hidden):
                query, key, value = self.qkv(hidden).split([WIDTH, WIDTH // 2, WIDTH // 2], -1)
                query, key, value = (one.unflatten(-1, (-1, 8)).transpose(1, 2) for one in (query, key, value))
                made = nn.functional.scaled_dot_product_attention(query + self.places, key.repeat_interleave(2, 1), value.repeat_interleave(2, 1))
                return self.out(made.transpose(1, 2).flatten(2))

        model = devmap.export(Net(Placed()), inputs=(IDS,))
        self.assertEqual(sum(p["shape"] == [16, 8] for layer in model["layers"] for p in layer.get("params", ())), 1)
        self.assertEqual(devmap.inspect(model).params, sum(one.numel() for one in Net(Placed()).parameters()))

    def test_repeated(self):
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.make, self.mix = nn.Linear(8, 8), nn.ModuleList([nn.MultiheadAttention(8, 2)])

            def forward(self, rows):
                made = self.make(rows)
                return self.mix[0](made, made, made)[0]

        said = devmap.export(Twice(), inputs=(torch.zeros(2, 4, 8),), steps=False)["warnings"]
        self.assertTrue(any(one.startswith("mix.0: called with one tensor twice") for one in said), said)

    def test_stray(self):
        class Stray(nn.Module):
            def __init__(self):
                super().__init__()
                self.own = nn.Linear(8, 8)

            def forward(self, rows):
                return self.own(rows) @ nn.Parameter(torch.zeros(8, 8, device=rows.device))

        said = devmap.export(Stray(), inputs=(torch.zeros(2, 8),), steps=False)["warnings"]
        self.assertTrue(any(re.match(r"torch_export.py:\d+ reads a parameter \[8, 8\] that the forward makes", one) for one in said), said)


class DocumentTest(unittest.TestCase):
    def test_as_written(self):
        """The example of docs/own-engine.md, and the layer that it shows."""
        text = pathlib.Path(__file__).resolve().parents[3].joinpath("docs", "own-engine.md").read_text()
        text = text[text.index("## Export a module") :]
        code, shown = (re.search(f"```{kind}\n(.*?)```", text, re.S).group(1) for kind in ("python", "json"))
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                exec(compile(code, "own-engine.md", "exec"), {"print": lambda *_: None})  # noqa: S102
                written = layers(json.loads(pathlib.Path("net.json").read_text()))
            finally:
                os.chdir(before)
        shown = json.loads(shown)
        self.assertEqual({**written[shown["name"]], "tape": ...}, {**shown, "tape": ...})


if __name__ == "__main__":
    unittest.main()
