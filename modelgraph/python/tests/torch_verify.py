"""devmap.verify and the maps of modules whose own code joins what other modules made."""

import random
import unittest

import devmap
import tiny
import torch
from accelerate import dispatch_model
from devmap._core import verified
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Linear(16, 32), nn.Linear(32, 4)
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(8))

    def forward(self, x):
        x = self.emb(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.out(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2, self.m = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 32, 3, 2, 1), nn.Conv2d(32, 32, 3, 1, 1)
        self.u2, self.o = nn.ConvTranspose2d(32, 16, 2, 2), nn.Conv2d(32, 3, 3, 1, 1)

    def forward(self, x):
        skip = torch.relu(self.d1(x))
        m = torch.relu(self.m(torch.relu(self.d2(skip))))
        return self.o(torch.cat([self.u2(m), skip], 1))


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.body = nn.Embedding(100, 32), nn.Sequential(*(nn.Linear(32, 32) for _ in range(6)))

    def forward(self, ids):
        return F.linear(self.body(self.emb(ids)), self.emb.weight)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.head = nn.Parameter(torch.ones(32)), nn.Linear(32, 8)
        self.body = nn.Sequential(*(nn.Linear(32, 32) for _ in range(6)))

    def forward(self, x):
        return self.head(self.body(x) * self.scale)


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        for name in "abcd":
            self.register_buffer(name, torch.ones(32))

    def forward(self, x):
        return x * self.a + self.b * self.c - self.d


class InPlace(nn.Module):
    """Operations that are not run at all on tensors without data."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x):
        first = self.one(x)
        second = self.two(first)
        second.add_(first)
        return self.three(second)


class Long(nn.Module):
    """More parts than torch can number GPUs; the last meets the first of three."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(150))

    def forward(self, x):
        kept = None
        for index, layer in enumerate(self.layers):
            x = layer(x)
            kept = x if index == 147 else kept
        return x + kept


class Moving(nn.Module):
    """Code that moves tensors itself, and asks for their device."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        first = self.one(x)
        second = self.two(first)
        ramp = torch.arange(32, device=second.device) + torch.zeros(32, device=first.device).to(second.device)
        return second + first.to(second.device) + ramp


class Writes(nn.Module):
    """A layer that writes into its caller's tensor, or a caller that writes into its own."""

    def __init__(self, layer=None):
        super().__init__()
        self.layers, self.inner = nn.ModuleList(Writer(layer) for _ in range(3)), layer

    def forward(self, x):
        out = torch.zeros(3, *x.shape, device=x.device)
        for at, layer in enumerate(self.layers):
            x = layer(x, out, at)
            if self.inner is None:
                out[at] = x
        return out


class Writer(nn.Module):
    def __init__(self, write):
        super().__init__()
        self.linear, self.write = nn.Linear(32, 32), write

    def forward(self, x, out, at):
        made = self.linear(x)
        if self.write is not None:
            self.write(out, at, made)
        return made


def in_place(out, at, made):
    out[at].add_(made.detach())


def indexed(out, at, made):
    out[at] = made


IDS, ROWS, PIXELS = torch.zeros((2, 8), dtype=torch.int64), torch.zeros(2, 32), torch.zeros(1, 3, 16, 16)
MODULES = [
    (Residual, (torch.zeros(2, 16),)), (UNet, (PIXELS,)), (Shared, (IDS,)), (Scaled, (ROWS,)), (Buffers, (ROWS,)),
    (InPlace, (ROWS,)), (Moving, (ROWS,)),
]  # fmt: skip


def by_accelerate(module, places, inputs):
    """Whether the step runs under Accelerate's own dispatch_model, on GPUs that are not there."""

    def step(net, args):
        made = dispatch_model(net, places, force_hooks=True)(*args)
        if made.requires_grad:
            made.sum().backward()

    for name in places:  # as loaders put them: hooks leave a bare tensor where it is
        assert "." not in name or name in dict(module.named_modules())
    try:
        devmap.measure(step, module, inputs, gpus=4)
    except devmap.DevmapError as error:
        assert "same device" in str(error) or "two different devices" in str(error), error
        return False
    return True


class VerifyTest(unittest.TestCase):
    def test_as_accelerate(self):
        """The verdict of Accelerate's own hooks, for maps at random."""
        draw, verdicts = random.Random(5), []
        for kind, inputs in MODULES:
            module = kind()
            keys = [name for name, part in module.named_modules() if name and not list(part.children())]
            keys += [name for name, _ in [*module.named_parameters(), *module.named_buffers()] if "." not in name]
            for gpus in (2, 2, 3):
                places = {key: draw.randrange(gpus) for key in keys}
                mine = bool(devmap.verify(module, places, inputs=inputs))
                if kind is not InPlace:  # measure does not look at operations in place
                    self.assertEqual(mine, by_accelerate(module, places, inputs), f"{kind.__name__}: {places}")
                verdicts.append(mine)
        self.assertEqual(set(verdicts), {True, False})

    def test_offloaded(self):
        """A module on the CPU or the disk runs on the first GPU, and only it can read its weights there."""
        for device in ("cpu", "disk"):
            self.assertTrue(devmap.verify(Residual(), {"emb": 1, "layers": device, "out": 1}, inputs=(torch.zeros(2, 16),)))
            self.assertFalse(devmap.verify(Residual(), {"emb": 1, "layers": device, "out": 0}, inputs=(torch.zeros(2, 16),)))
            found = devmap.verify(Shared(), {"emb": device, "body": 0}, inputs=(IDS,))
            self.assertRegex(found.message, "mm at .* reads tensors on cuda:0 and cpu; an offloaded weight")

    def test_devices(self):
        self.assertFalse(devmap.verify(Residual(), {"": 0, "layers.3": "cuda:9"}, inputs=(torch.zeros(2, 16),)))
        for device in ("mps", "cuda:x", "first", -1, 126, True, None):
            with self.assertRaisesRegex(devmap.UsageError, rf"the map puts 'head' on {device!r}: name a GPU by its number"):
                devmap.verify(Scaled(), {"scale": 0, "body": 0, "head": device}, inputs=(ROWS,))
        with self.assertRaisesRegex(devmap.UsageError, "the map puts 'head' on 'cpu': name a stage"):
            devmap.verify(Scaled(), {"scale": 0, "body": 0, "head": "cpu"}, inputs=(ROWS,), engine="torch")

    def test_says_where(self):
        found = devmap.verify(UNet(), {"d1": 0, "d2": 0, "m": 1, "u2": 1, "o": 1}, inputs=(PIXELS,))
        self.assertFalse(found)
        self.assertEqual((found.operation, found.devices), ("cat", ("cuda:1", "cuda:0")))
        self.assertRegex(found.line, r"torch_verify\.py:\d+")
        self.assertIn("(UNet)", found.message)
        self.assertFalse(devmap.verify(InPlace(), {"one": 0, "two": 1, "three": 1}, inputs=(ROWS,)))

    def test_lost_writes(self):
        """What a layer writes into a copy that a hook made does not reach its caller; what the caller writes does."""
        places = {"layers.0": 0, "layers.1": 0, "layers.2": 1}
        for write in (in_place, indexed):
            found = devmap.verify(Writes(write), places, inputs=(ROWS,))
            self.assertFalse(found)
            self.assertRegex(found.message, r"into a hook's copy of an argument at torch_verify\.py:\d+ in layers.2 \(Writer\) writes on cuda:1, and the caller, who reads it later, has it on cuda:0")
            said = " ".join(devmap.export(Writes(write), inputs=(ROWS,), steps=False)["warnings"])
            self.assertRegex(said, r"one GPU must hold layers.0.*torch_verify\.py:\d+ .* would not reach the caller, who reads it later; .* until that line returns")
            self.assertEqual(set(devmap.plan(Writes(write), gpus=2, mode="load", inputs=(ROWS,)).device_map.values()), {0})
        self.assertTrue(devmap.verify(Writes(), places, inputs=(ROWS,)))
        replaced = nn.Sequential(nn.Linear(32, 32), nn.ReLU(inplace=True), nn.Linear(32, 32))
        self.assertTrue(devmap.verify(replaced, {"0": 0, "1": 1, "2": 0}, inputs=(ROWS,)), "no one reads what the ReLU wrote over")

    def test_changes_nothing(self):
        """The caller's module and its process stay as they are."""
        module, before = Scaled(), torch.accelerator.current_accelerator()
        places = {"scale": 0, "body": 0, "head": 1}
        devmap.verify(module, places, inputs=(ROWS,))
        self.assertEqual({one.device.type for one in module.parameters()}, {"cpu"})
        self.assertNotIn("forward", vars(module))
        self.assertEqual(torch.accelerator.current_accelerator(), before)

    def test_cannot(self):
        for words, call in {
            "verify: nosuch.json cannot be read as a map: No such file": lambda: devmap.verify(Scaled(), "nosuch.json", inputs=(ROWS,)),
            "verify: .*torch_verify.py cannot be read as a map: Extra data": lambda: devmap.verify(Scaled(), __file__, inputs=(ROWS,)),
            "verify: a NoneType is no map": lambda: devmap.verify(Scaled(), None, inputs=(ROWS,)),
            "check: a int is no map": lambda: devmap.check("gpt2", 5, gpus=2),
            "export: /nosuch/x.json cannot be written": lambda: devmap.export(Scaled(), "/nosuch/x.json", inputs=(ROWS,)),
            "no_split holds 3": lambda: devmap.export(Scaled(), no_split=[3], inputs=(ROWS,)),
            "values=5: give a dict": lambda: devmap.measure(Scaled, values=5),
            "no key of the map is above 'head.weight'": lambda: devmap.verify(Scaled(), {"scale": 0, "body": 1}, inputs=(ROWS,)),
            "pass inputs=": lambda: devmap.verify(Scaled(), {"": 0}),
            "the forward fails by itself: torch_verify.py": lambda: devmap.verify(Scaled(), {"": 0}, inputs=(IDS,)),
            "names no GPU": lambda: devmap.verify(Scaled(), {"": "cpu"}, inputs=(ROWS,)),
            "'int' is not a torch.nn.Module": lambda: devmap.verify(3, {}),
        }.items():
            with self.assertRaisesRegex(devmap.DevmapError, words):
                call()

    def test_families(self):
        for kind in ("llama", "gpt2", "gemma2", "mixtral", "bert", "t5"):
            with self.subTest(kind):
                module = tiny.build(kind)
                plan = devmap.plan(module, gpus=3, mode="train", batch=2, seq=16)
                self.assertEqual(set(plan.device_map.values()), {0, 1, 2})
                self.assertTrue(devmap.verify(module, plan))


class Alternating(nn.Module):
    """Shared modules in turn, and a whole number that an input gives."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, lengths):
        if int(lengths.max()) != 5:
            raise RuntimeError(f"the longest is {int(lengths.max())}")
        return self.b(self.a(self.b(self.a(x))))


class StagesTest(unittest.TestCase):
    """The engine "torch": tensors cross GPUs where a stage begins."""

    LENGTHS = (torch.zeros(2, 8), torch.tensor([3, 5]))

    def test_crossings(self):
        keys = ["emb", *(f"layers.{at}" for at in range(8)), "out"]
        places = {key: int(at >= 5) for at, key in enumerate(keys)}
        inputs = (torch.zeros(2, 16),)
        self.assertTrue(devmap.verify(Residual(), places, inputs=inputs, engine="torch"))
        self.assertFalse(devmap.verify(Residual(), places, inputs=inputs))
        self.assertTrue(devmap.verify(UNet(), {"d1": 0, "d2": 0, "m": 1, "u2": 1, "o": 2}, inputs=(PIXELS,), engine="torch"))

    def test_faults(self):
        for module, places, inputs, words in (
            (Alternating(), {"a": 0, "b": 1}, self.LENGTHS, r"the call of a \(stage 0\) at torch_verify.py:\d+ .* is of stage 0, and stage 1 runs"),
            (Shared(), {"emb": 0, "body": 1}, (IDS,), r"reading emb.weight at torch_verify.py:\d+"),
            (Scaled(), {"scale": 0, "body": 1, "head": 1}, (ROWS,), r"reading scale at"),
        ):
            found = devmap.verify(module, places, inputs=inputs, engine="torch")
            self.assertFalse(found)
            self.assertRegex(found.message, words)
        self.assertTrue(devmap.verify(Alternating(), {"a": 0, "b": 1}, inputs=self.LENGTHS))

    def test_hooks(self):
        """A hook that moves what a module reads ends torch's trace, which has one device; Accelerate's hooks move it back."""
        net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
        places, inputs = {"0": 0, "1": 1}, (torch.zeros(4, 8),)
        self.assertTrue(devmap.verify(net, places, inputs=inputs, engine="torch"))
        net[0].register_forward_pre_hook(lambda _, args: tuple(one.to("cuda:1") for one in args))
        found = devmap.verify(net, places, inputs=inputs, engine="torch")
        self.assertRegex(found.message, r"addmm at torch_verify.py:\d+ in 0 \(Linear\) reads tensors on cuda:1 and cuda:0|reads tensors on cuda:0 and cuda:1")
        self.assertTrue(devmap.verify(net, places, inputs=inputs))

    def test_ties(self):
        """Names of one parameter are on one device, for both engines, and one stage holds them."""
        net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8))
        net[2].weight = net[0].weight
        inputs = (torch.zeros(4, 8),)
        for engine, where in (("accelerate", "cuda:0 and cuda:1"), ("torch", "stage 0 and stage 1")):
            found = devmap.verify(net, {"0": 0, "1": 0, "2": 1}, inputs=inputs, engine=engine)
            self.assertEqual((bool(found), found.operation), (False, "ties-apart"))
            self.assertIn(f"0.weight and 2.weight are on {where}", found.message)
        self.assertTrue(devmap.verify(net, {"0": 0, "1": 1, "2": 0}, inputs=inputs))
        with self.assertRaisesRegex(devmap.DevmapError, "0.weight and 2.weight are one parameter"):
            devmap.plan(net, gpus=2, mode="train", batch=4, micro_batches=2, strategy="pipeline", inputs=inputs)

        net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)))
        net[1].weight = net[0].weight
        plan = devmap.plan(net, gpus=2, mode="train", batch=4, micro_batches=2, strategy="pipeline", inputs=inputs)
        self.assertEqual((plan.stages[0].units, "train apart unless" in " ".join(plan.warnings)), (["0", "1"], False))
        model = tiny.build("gpt2")  # torch copies it to the stages that read it
        plan = devmap.plan(model, gpus=2, mode="train", batch=4, seq=16, micro_batches=2, strategy="pipeline")
        self.assertIn("train apart unless", " ".join(plan.warnings))

    def test_in_turn(self):
        said = devmap.export(Alternating(), inputs=self.LENGTHS)["warnings"]
        self.assertIn("a and b are called in turn", " ".join(said))

    def test_plan(self):
        module = tiny.build("llama")
        plan = devmap.plan(module, gpus=2, mode="train", batch=4, seq=16, strategy="pipeline", micro_batches=2)
        self.assertTrue(devmap.verify(module, plan))
        with self.assertRaisesRegex(devmap.DevmapError, r"one stage must hold a and b: torch_verify\.py:\d+ calls a"):
            devmap.plan(Alternating(), gpus=2, mode="train", batch=2, micro_batches=2, strategy="pipeline", inputs=self.LENGTHS)
        with self.assertRaisesRegex(devmap.UsageError, "engine='fsdp'"):
            devmap.verify(Alternating(), {"": 0}, inputs=self.LENGTHS, engine="fsdp")


    def test_bound(self):
        """Stages hold what the forward reads or calls again, and layers have the order of their calls."""
        model = devmap.export(Residual(), inputs=(torch.zeros(2, 16),), steps=False)
        self.assertEqual([layer["name"] for layer in model["layers"]][-1], "out")
        self.assertNotIn("staged", model)
        model = devmap.export(Scaled(), inputs=(ROWS,), steps=False)
        self.assertEqual(model["staged"][0]["layers"], ["scale", *(f"body.{at}" for at in range(6))])
        self.assertRegex(model["staged"][0]["why"], r"scale and body.5 and the 5 between them: torch_verify\.py:\d+ reads scale")
        for module, inputs, most in ((Residual(), (torch.zeros(2, 16),), 4), (UNet(), (PIXELS,), 4), (Scaled(), (ROWS,), 2), (Shared(), (IDS,), 1)):
            model = devmap.export(module, inputs=inputs)
            for mode in ("load", "infer"):
                for gpus in (2, 4):
                    if gpus > most:
                        with self.assertRaisesRegex(devmap.DevmapError, r"more stages than units.*one stage must hold .*: torch_verify\.py:\d+ reads"):
                            devmap.plan(model, gpus=gpus, mode=mode, strategy="pipeline")
                        continue
                    plan = devmap.plan(model, gpus=gpus, mode=mode, strategy="pipeline")
                    self.assertEqual(len(plan.stages), gpus)
                    self.assertTrue(devmap.verify(module, plan, inputs=inputs), f"{type(module).__name__}: {plan.stages}")

    def test_recurrent(self):
        """Weights of an LSTM become one buffer while they are read: another tensor at their old place is no weight."""
        net = nn.Sequential(nn.Embedding(100, 64), nn.LSTM(64, 64, 2, batch_first=True), First(), nn.Linear(64, 9))
        self.assertTrue(devmap.verify(net, {"0": 0, "1": 0, "3": 1}, inputs=(IDS,), engine="torch"))


class First(nn.Module):
    def forward(self, found):
        return found[0]


class ConfigTest(unittest.TestCase):
    """What `devmap check --run` starts (_core/checked.py)."""

    def test_config(self):
        import json

        from devmap._core import checked

        config = tiny.build("llama").config.to_json_string()
        keys = ["model.embed_tokens", *(f"model.layers.{at}" for at in range(4)), "model.norm", "model.rotary_emb", "lm_head"]
        asked = {"config": config, "class": "LlamaForCausalLM", "engine": "accelerate", "map": {key: at % 2 for at, key in enumerate(keys)}}
        self.assertTrue(checked.checked(asked)["ok"])
        layer = "model.layers.0."
        split = {**asked["map"], layer + "self_attn": 0, layer + "mlp": 1, layer + "input_layernorm": 1, layer + "post_attention_layernorm": 1}
        del split["model.layers.0"]
        answer = checked.checked({**asked, "map": split})
        self.assertFalse(answer["ok"])
        self.assertRegex(answer["message"], r"add at modeling_llama.py:\d+ in model.layers.0 \(LlamaDecoderLayer\) reads tensors on")
        with self.assertRaisesRegex(devmap.DevmapError, "has no model class 'os'"):
            checked.checked({**asked, "class": "os"})
        with self.assertRaisesRegex(devmap.DevmapError, "has no model class"):
            checked.built({**json.loads(config), "architectures": ["HerOwnForCausalLM"]}, "")


    def test_kinds(self):
        """Types whose forward runs in fp32 alone, needs sound, or has a way that only data leads to."""
        import transformers
        from devmap._core import checked

        text = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
        sound = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
        for kind, name, settings in (
            ("fnet", "FNetForMaskedLM", text),
            ("xlnet", "XLNetLMHeadModel", {"n_layer": 2, "d_model": 32, "n_head": 4, "d_inner": 64}),
            ("longformer", "LongformerForMaskedLM", {**text, "attention_window": 8}),
            ("clap", "ClapModel", {"text_config": {**text, "max_position_embeddings": 64}}),
            ("speech_to_text", "Speech2TextForConditionalGeneration", sound),
        ):
            config = transformers.AutoConfig.for_model(kind, **settings).to_json_string()
            with self.subTest(kind):
                self.assertTrue(checked.checked({"config": config, "class": name, "engine": "accelerate", "map": {"": 0}})["ok"])
        wrong = transformers.AutoConfig.for_model("xlnet", n_layer=1, d_model=32, n_head=4, attn_type="none").to_json_string()
        with self.assertRaisesRegex(devmap.DevmapError, r"fails by itself: .* \(with input_ids \(2, 37\): in Python, devmap.verify"):
            checked.checked({"config": wrong, "class": "XLNetLMHeadModel", "engine": "accelerate", "map": {"": 0}})


class PlanTest(unittest.TestCase):
    def test_maps_run(self):
        for kind, inputs in MODULES:
            for gpus in (2, 3, 4):
                module = kind()
                plan = devmap.plan(module, gpus=gpus, mode="load", inputs=inputs)
                self.assertTrue(devmap.verify(module, plan, inputs=inputs), f"{kind.__name__}: {plan.device_map}")
                if kind is not Buffers:
                    self.assertEqual(len(set(plan.device_map.values())), 2 if kind in (Residual, InPlace, Moving) else min(gpus, 4), kind)

    def test_line(self):
        model = devmap.export(Residual(), inputs=(torch.zeros(2, 16),))
        self.assertEqual(model["joined"], [["emb", *(f"layers.{at}" for at in range(8))]])
        self.assertRegex("\n".join(model["warnings"]), r"emb, layers.0, layers.1 and 6 more: torch_verify\.py:\d+ \(add, .*Residual")
        said = devmap.export(Buffers(), inputs=(ROWS,))["warnings"]
        self.assertRegex(said[0], "one GPU must hold a, b, c and 1 more: .*the model's own")
        self.assertNotIn("joined", devmap.export(Moving(), inputs=(ROWS,)))

    def test_many_parts(self):
        model = devmap.export(Long(), inputs=(torch.zeros(2, 4),))
        self.assertEqual(model["joined"], [["layers.147", "layers.149"]])

    def test_refused(self):
        """A map that fails is no plan: as one that a pin forces."""
        with self.assertRaisesRegex(devmap.DevmapError, r"reads tensors on .*together="):
            verify = verified.verify
            try:
                verified.verify = lambda *_, **__: verify(UNet(), {"d1": 0, "d2": 0, "m": 1, "u2": 1, "o": 1}, (PIXELS,))
                devmap.plan(UNet(), gpus=2, mode="load", inputs=(PIXELS,))
            finally:
                verified.verify = verify


if __name__ == "__main__":
    unittest.main()
