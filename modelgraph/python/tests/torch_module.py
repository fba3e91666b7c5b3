"""Any torch.nn.Module: exported, planned, and its map taken by Accelerate."""

import unittest

import tiny
import torch
from accelerate import dispatch_model
from accelerate.utils import check_device_map

import devmap


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(32), torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)

    def forward(self, hidden):
        return hidden + self.down(torch.relu(self.up(self.norm(hidden))))


class Model(torch.nn.Module):
    _no_split_modules = ("Block",)

    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(50, 32), torch.nn.Linear(32, 50, bias=False)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(6))
        self.head.weight = self.embed.weight

    def forward(self, ids):
        hidden = self.embed(ids)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


class ModuleTest(unittest.TestCase):
    def test_module(self):
        torch.manual_seed(3)
        model = Model()
        plan = devmap.plan(model, gpus=2, mode="load")
        places = plan.device_map
        check_device_map(model, places)
        self.assertEqual(set(places.values()), {0, 1})
        self.assertEqual(places["embed"], places["head"])
        ids = torch.arange(20).reshape(2, 10)
        with torch.no_grad():
            whole = model(ids)
            hooked = dispatch_model(model, dict.fromkeys(places, "cpu"), main_device="cpu", force_hooks=True)
            torch.testing.assert_close(hooked(ids), whole, rtol=0, atol=0)

    def test_inputs(self):
        """What a forward takes makes steps countable; without it the words say what to pass."""
        model, ids = Model(), torch.zeros(2, 16, dtype=torch.long)
        plan = devmap.plan(model, gpus=2, mode="train", batch=2, seq=16, inputs=(ids,), no_split=["Block"])
        self.assertGreater(plan.devices[0].predicted.activations_bytes, 0)
        self.assertTrue(devmap.check(model, plan, gpus=2, mode="train", batch=2, seq=16, inputs=(ids,)))
        self.assertTrue(devmap.estimate(model, gpus=2, mode="train", batch=2, seq=16, inputs=(ids,)).rows)
        self.assertTrue(any(unit.flops for unit in devmap.inspect(model, seq=16, inputs=(ids,)).units))
        with self.assertRaisesRegex(devmap.UsageError, r"pass inputs=\(…\).*or mode='load'"):
            devmap.plan(model, gpus=2, mode="train")
        with self.assertRaisesRegex(devmap.UsageError, "inputs is for a torch.nn.Module"):
            devmap.plan("gpt2", gpus=2, inputs=(ids,))

    def test_meta(self):
        """On the meta device it is the same model."""
        with torch.device("meta"):
            empty = Model()
            empty.head.weight = empty.embed.weight
        self.assertEqual(
            devmap.plan(empty, gpus=2, mode="load").device_map, devmap.plan(Model(), gpus=2, mode="load").device_map
        )

    def test_exported(self):
        """What export returned is planned as the module is."""
        model = tiny.build("llama")
        plan = devmap.plan(devmap.export(model), gpus=2, mode="load")
        self.assertEqual(plan.device_map, devmap.plan(model, gpus=2, mode="load").device_map)
        check_device_map(model, plan.device_map)
        self.assertEqual(devmap.inspect(model).params, devmap.inspect(model.config).params)


if __name__ == "__main__":
    unittest.main()
