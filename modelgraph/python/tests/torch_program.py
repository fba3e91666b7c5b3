"""Programs of torch.export are described as the modules that they were made of."""

import os
import tempfile
import unittest

import devmap
import torch
import torch_verify


class ProgramTest(unittest.TestCase):
    def test_file(self):
        net, inputs = torch_verify.Residual(), (torch.zeros(2, 16),)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.pt2")
            torch.export.save(torch.export.export(net, inputs), path)
            found = devmap.export(path)
            plan = devmap.plan(path, gpus=2, mode="train", batch=2)
        module = devmap.export(net, inputs=inputs)
        self.assertEqual({one["name"]: one.get("op") for one in found["layers"]}, {one["name"]: one.get("op") for one in module["layers"]})
        self.assertEqual(found["joined"], module["joined"])
        self.assertEqual(found["name"], "Residual")
        self.assertRegex(" ".join(found["warnings"]), r"torch_verify.py:\d+ \(add")  # the line of the code, not of the program
        self.assertEqual(set(plan.device_map.values()), {0, 1})

    def test_broken(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.pt2")
            with open(path, "w") as file:
                file.write("no program")
            with self.assertRaisesRegex(devmap.DevmapError, "cannot read it as an exported program"):
                devmap.export(path)


if __name__ == "__main__":
    unittest.main()
