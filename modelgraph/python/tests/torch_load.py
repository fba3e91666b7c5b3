"""Models are loaded, run and trained under planned maps, by Transformers and Accelerate as they are."""

import tempfile
import unittest

import tiny
import torch
from accelerate import dispatch_model, init_empty_weights
from accelerate.utils import check_device_map
from transformers import AutoConfig

import devmap

KINDS = [*tiny.CAUSAL, *tiny.OTHERS]


def on(plan, **devices):
    """The planned map with other devices in the places of the GPUs."""
    return {module: devices[f"gpu{device}"] for module, device in plan.device_map.items()}


class LoadTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.models = {kind: tiny.saved(kind, cls.folder.name) for kind in KINDS}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_maps(self):
        """Accelerate takes every map, and no tied parameter is in two places."""
        for kind, (model, path) in self.models.items():
            for flags in ({"mode": "load"}, {"mode": "infer", "seq": 16}, {"mode": "train", "seq": 16, "batch": 2}):
                with self.subTest(kind, **flags):
                    plan = devmap.plan(path, gpus=2, **flags)
                    with init_empty_weights():
                        empty = type(model)(AutoConfig.from_pretrained(path))
                    empty.tie_weights()
                    check_device_map(empty, plan.device_map)
                    self.assertEqual(set(plan.device_map.values()), {0, 1})
                    places = {}
                    for name, tensor in model.named_parameters(remove_duplicate=False):
                        places.setdefault(tensor.data_ptr(), set()).add(place(plan.device_map, name))
                    self.assertTrue(all(len(where) == 1 for where in places.values()), places)

    def test_forward_and_step(self):
        """Under the map, with the hooks that dispatch adds, a model computes what it computes whole, and trains."""
        for kind, (model, path) in self.models.items():
            with self.subTest(kind):
                plan = devmap.plan(path, gpus=2, mode="train", seq=16, batch=2)
                loaded = type(model).from_pretrained(path, device_map=on(plan, gpu0="cpu", gpu1="cpu"))
                hooked = dispatch_model(loaded, on(plan, gpu0="cpu", gpu1="cpu"), main_device="cpu", force_hooks=True)
                hooks = {name for name, module in hooked.named_modules() if hasattr(module, "_hf_hook")}
                parameters = {name for name, _ in hooked.named_parameters()}  # a map may name one that no module has
                self.assertEqual(set(plan.device_map) - parameters - hooks, set())
                inputs = tiny.batch(kind)
                with torch.no_grad():
                    whole, split = model(**inputs), hooked.eval()(**inputs)
                torch.testing.assert_close(split.logits, whole.logits, rtol=0, atol=0)
                before = [parameter.detach().clone() for parameter in hooked.parameters()]
                optimizer = torch.optim.AdamW(hooked.parameters(), lr=0.01)
                hooked.train()(**inputs).loss.backward()
                optimizer.step()
                changed = [not torch.equal(was, now) for was, now in zip(before, hooked.parameters())]
                self.assertGreater(sum(changed), 0.9 * len(changed))

    def test_crossing(self):
        """What runs on the second GPU gets its inputs there: the logits are where the plan has the head."""
        # Meta frees nothing, so that what comes first has to be on the first.
        first = ["model.embed_tokens", "model.rotary_emb", "model.layers.0", "model.layers.1"]
        pins = {**dict.fromkeys(first, 0), "model.layers.2": 1, "model.layers.3": 1, "model.norm": 1, "lm_head": 1}
        path = self.models["llama"][1]
        plan = devmap.plan(path, gpus=2, mode="infer", seq=16, contiguous=False, pin=pins)
        self.assertEqual(plan.device_map, {name: pins[name] for name in plan.device_map})
        places = on(plan, gpu0="cpu", gpu1="meta")
        hooked = dispatch_model(tiny.build("llama"), places, main_device="cpu", force_hooks=True)
        with torch.no_grad():
            hidden = hooked.model(input_ids=tiny.batch("llama")["input_ids"], use_cache=False).last_hidden_state
            logits = hooked.lm_head(hidden)
        self.assertEqual(hooked.model.layers[3].mlp.up_proj.weight.device.type, "meta")
        self.assertEqual(hooked.model.layers[0].mlp.up_proj.weight.device.type, "cpu")
        self.assertEqual((logits.device.type, logits.shape), ("meta", (2, 16, 96)))

    def test_meta_step(self):
        """A training step under the map on meta: no value, every shape."""
        plan = devmap.plan(self.models["qwen2"][1], gpus=2, mode="train", seq=16, batch=2)
        with torch.device("meta"):
            model = tiny.build("qwen2").train()
        hooked = dispatch_model(model, on(plan, gpu0="meta", gpu1="meta"), main_device="meta", force_hooks=True)
        optimizer = torch.optim.AdamW(hooked.parameters())
        hooked(**{name: tensor.to("meta") for name, tensor in tiny.batch("qwen2").items()}).loss.backward()
        optimizer.step()
        self.assertTrue(all(parameter.grad is not None for parameter in hooked.parameters()))

    def test_config(self):
        """A config object is planned as its folder is."""
        for kind, (model, path) in self.models.items():
            with self.subTest(kind):
                by_object = devmap.plan(model.config, gpus=2, mode="train", seq=16, batch=2)
                by_folder = devmap.plan(path, gpus=2, mode="train", seq=16, batch=2)
                self.assertEqual(by_object.device_map, by_folder.device_map)
                self.assertEqual(by_object.document["model"]["digest"], by_folder.document["model"]["digest"])


def place(device_map, name):
    """Where a map has a parameter: at the longest prefix of its name."""
    while name not in device_map:
        name = name.rpartition(".")[0]
    return device_map[name]


if __name__ == "__main__":
    unittest.main()
