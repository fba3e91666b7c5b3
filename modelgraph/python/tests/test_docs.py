"""The examples of the documentation, and the types that users' code is checked with."""

import doctest
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

import devmap
import devmap._core.settings
import devmap._core.words

PUBLIC = ["DevmapError", "UsageError", "Infeasible", *(name for name in dir(devmap) if name[0].isalpha())]
WITHOUT_EXAMPLE = {"Record", "PlanFlags", "CheckFlags", "EstimateFlags", "InspectFlags", "Report", "callbacks", "Alive", "Measured", "MeasuredDevice"}

USE = """
from __future__ import annotations

import asyncio

import devmap
from devmap.callbacks import DevmapCallback, LightningCallback

flags: devmap.PlanFlags = {"gpus": 2, "gpu": "rtx-4090", "mode": "train", "batch": 4}
plan = devmap.plan("gpt2", **flags)
larger: devmap.PlanFlags = {**flags, "batch": 8}
print(devmap.plan("gpt2", **larger).table(), plan.fits, plan.verdict, plan.peaks, plan.device_map)
try:
    devmap.plan("llama-3.1-8b", **flags)
except devmap.Infeasible as error:
    print(error.missing_bytes, error.proved, error.remedies[0].text, error.remedies[0].plan().peaks)
    print(devmap.plan("llama-3.1-8b", **error.remedies[0].flags))
estimate = devmap.estimate("gpt2", gpus=4, mode="train")
for row in estimate.rows:
    print(row.strategy, row.fits, row.step_seconds, devmap.plan("gpt2", **row.keywords).strategy)
print(estimate.table(), estimate.plan().stages, plan.emit("accelerate").usage)
check = devmap.check("gpt2", plan, gpus=2)
print(bool(check), [fault.message for fault in check.faults], devmap.inspect("gpt2", seq=128).units[0].params)
print(devmap.Plan.read("plan.json") == plan, plan.devices[0].predicted.peak_allocated_bytes)
devmap.plan("gpt2", max_memory={0: "24GiB", 1: "24GiB"}, gradient_checkpointing=True)


async def main() -> devmap.Plan:
    return await devmap.aplan("gpt2", gpus=["24GiB", "24GiB"], timeout=30)


print(asyncio.run(main()), devmap.watch(plan, ["python", "train.py"]).verdict)
callbacks = (DevmapCallback(plan, steps=3), LightningCallback(plan, strict=True))
print(callbacks[0].verdict, callbacks[1].report)
"""
WRONG = """
import devmap

devmap.plan("gpt2", gpus=2, mode="trane")
devmap.plan("gpt2", gpus=2, batch="4")
devmap.plan("gpt2", num_gpus=3)
devmap.plan("gpt2", gpus=2).peak
"""


class DocumentsTest(unittest.TestCase):
    def test_docstrings(self):
        """Every public name has an example, and every example runs."""
        finder = doctest.DocTestFinder(exclude_empty=True)
        ran = 0
        modules = [devmap, devmap._core.settings, devmap._core.words]
        for name in dict.fromkeys(PUBLIC):
            found = getattr(devmap, name)
            tests = [test for test in finder.find(found, name, module=False, globs={}) if test.examples]
            if name not in WITHOUT_EXAMPLE and isinstance(found, (type, types.FunctionType)):
                self.assertTrue(tests, f"{name} has no example")
            for test in tests:
                ran += self.run_test(test)
        for module in modules:
            for test in finder.find(module, module.__name__):
                ran += self.run_test(test)
        self.assertGreater(ran, 50)

    def run_test(self, test):
        lines = []
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=lines.append)
        self.assertEqual(result.failed, 0, "".join(lines))
        return result.attempted

    def test_page(self):
        """The Python blocks of the page compile; those that need no other package run, one after another."""
        page = os.path.join(os.path.dirname(__file__), "..", "..", "..", "docs", "python.md")
        if not os.path.exists(page):
            self.skipTest("the pages are in a checkout")
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertLessEqual(len(text), 6000)
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        self.assertGreater(len(blocks), 5)
        names = {}
        with tempfile.TemporaryDirectory() as folder:
            was = os.getcwd()
            os.chdir(folder)
            try:
                for block in blocks:
                    code = compile(block, page, "exec")
                    if not re.search(
                        r"^(from|import) (torch|transformers|peft|lightning)|watch\(", block, re.MULTILINE
                    ):
                        lines = []
                        exec(code, {**names, "print": lambda *said: lines.append(" ".join(map(str, said)))}, names)
                        for want in re.findall(r"^# (.*)$", block, re.MULTILINE):
                            self.assertIn(want, "\n".join(lines), block)
            finally:
                os.chdir(was)


class TypesTest(unittest.TestCase):
    def check(self, tool, arguments):
        """Runs a type checker over users' code, wrong code and the package."""
        path = shutil.which(tool) or shutil.which(tool, path=os.path.dirname(sys.executable))
        if not path:
            self.skipTest(f"{tool} is not installed")
        package = os.path.dirname(os.path.dirname(devmap.__file__))
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("use.py", USE), ("wrong.py", WRONG)):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            os.symlink(package, os.path.join(folder, "package"))
            for name in ("use.py", "wrong.py", "package/devmap"):
                config = {"include": [name], "typeCheckingMode": "strict", "extraPaths": [package]}
                with open(os.path.join(folder, "pyrightconfig.json"), "w") as file:
                    json.dump(config, file)
                done = subprocess.run(
                    [path, *(word.replace("NAME", name) for word in arguments)],
                    capture_output=True, text=True, cwd=folder, env={**os.environ, "MYPYPATH": package},
                )  # fmt: skip
                if name != "wrong.py":
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    continue
                for line in range(4, 8):
                    self.assertRegex(done.stdout, rf"wrong.py:{line}:.*error")

    def test_mypy(self):
        self.check("mypy", ["--strict", "--ignore-missing-imports", "--no-incremental", "NAME"])

    def test_pyright(self):
        self.check("pyright", [])


if __name__ == "__main__":
    unittest.main()
