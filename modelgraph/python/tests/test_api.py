"""The package against the program that DEVMAP_BINARY names, with nothing but the standard library."""

import json
import os
import pickle
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

import devmap
from devmap._core import answers, binary, words
from devmap._core.flags import COMMANDS

TRAIN = {"gpus": 2, "gpu": "rtx-4090", "mode": "train", "batch": 4}


def planned(**flags):
    return devmap.plan("gpt2", **{"gpus": 2, **flags})


class PlanTest(unittest.TestCase):
    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            planned(report=page)
            with open(page, encoding="utf-8") as written:
                self.assertIn('"verdict":"fits"', written.read())
            with self.assertRaises(devmap.Infeasible):
                devmap.plan("llama-3.1-8b", **TRAIN, report=page)
            with open(page, encoding="utf-8") as written:
                self.assertIn('"verdict":"no"', written.read())
            other = os.path.join(folder, "other.html")
            with open(other, "w", encoding="utf-8") as mine:
                mine.write("mine")
            with self.assertRaisesRegex(devmap.DevmapError, "force=True replaces it"):
                planned().report(other)
            self.assertIn("<!DOCTYPE html>", planned().report(other, force=True))

    def test_plan(self):
        plan = planned()
        self.assertEqual(plan.model, "gpt2")
        self.assertEqual(set(plan.device_map.values()), {0, 1})
        self.assertEqual([device.device for device in plan.devices], [0, 1])
        predicted = plan.devices[0].predicted
        self.assertGreater(predicted.peak_allocated_bytes, predicted.params_bytes)
        low, high = predicted.peak_range_bytes
        self.assertEqual((low, high), (predicted.peak_allocated_bytes, predicted.peak_allocated_bytes))
        self.assertEqual({stage.device for stage in plan.stages}, {0, 1})
        self.assertGreater(plan.step_seconds, 0)
        banded = devmap.plan("opt-13b", gpus=2)
        low, high = banded.devices[0].predicted.peak_range_bytes
        self.assertLess(low, banded.devices[0].predicted.peak_allocated_bytes)
        self.assertLess(banded.devices[0].predicted.peak_allocated_bytes, high)
        self.assertRegex(" ".join(banded.warnings), "opt.*peaks are ±1.5%")
        self.assertEqual(plan.objective["status"], "optimal")
        self.assertIn("gpt2 · inference, batch 1 × 1024", plan.table())
        self.assertIn("device-map on 2 GPUs", repr(plan))
        self.assertIsNone(planned(mode="load").step_seconds)

    def test_same_as_the_command_line(self):
        words = ["plan", "gpt2", "--gpus", "2", "--mode", "train", "--batch", "2"]
        said = subprocess.run([binary.find(), *words], capture_output=True, check=True).stdout
        self.assertEqual(planned(mode="train", batch=2).document, json.loads(said))

    def test_saved(self):
        plan = planned()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            plan.save(path)
            self.assertEqual(os.listdir(folder), ["plan.json"])
            again = devmap.Plan.read(path)
            self.assertEqual(again.document, plan.document)
            self.assertEqual(again, plan)
            self.assertEqual(again.table(), plan.table())
            self.assertIn("GPU  Layers", again.table())
            with open(path, "w") as file:
                file.write('{"format_version": "devmap.front/v1"}')
            self.assertRaisesRegex(devmap.DevmapError, "'devmap.front/v1'", devmap.Plan.read, path)
            self.assertRaisesRegex(devmap.DevmapError, "exists, and is no plan", plan.save, path)
            again.save(os.path.join(folder, "again.json"))
            plan.save(os.path.join(folder, "again.json"))

    def test_emit(self):
        plan = planned()
        emitted = plan.emit("accelerate")
        self.assertEqual(json.loads(emitted), plan.device_map)
        self.assertIn("from_pretrained", emitted.usage)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "map.json")
            self.assertEqual(plan.emit("accelerate", path), emitted)
            with open(path) as file:
                self.assertEqual(file.read(), emitted)
        self.assertRaisesRegex(devmap.UsageError, "unknown engine", plan.emit, "accelerator")

    def test_strategies(self):
        for strategy in ("ddp", "fsdp", "pipeline"):
            plan = planned(strategy=strategy, mode="train", batch=2, micro_batches=2)
            self.assertEqual(len(plan.devices), 2)
            with self.assertRaisesRegex(devmap.DevmapError, f"its strategy is {strategy}"):
                _ = plan.device_map

    def test_record(self):
        device = planned().devices[0]
        self.assertEqual(pickle.loads(pickle.dumps(device)), device)
        with self.assertRaisesRegex(AttributeError, "read-only"):
            device.device = 3
        with self.assertRaisesRegex(AttributeError, "it has device, "):
            _ = device.devise


class ModelTest(unittest.TestCase):
    def test_memory(self):
        layers = [
            {"name": f"h.{i}", "params": [{"name": "weight", "shape": [512, 512], "dtype": "bf16"}]} for i in range(4)
        ]
        model = {"format_version": "devmap.model/v1", "name": "to/y", "layers": layers}
        plan = devmap.plan(model, gpus=2, mode="load")
        self.assertEqual(plan.device_map, {"h.0": 0, "h.1": 0, "h.2": 1, "h.3": 1})
        self.assertTrue(os.path.exists(plan.document["model"]["source"]))
        source = plan.document["model"]["source"]
        del plan
        self.assertFalse(os.path.exists(source))

    def test_config(self):
        class Config:
            model_type, name_or_path = "gpt2", "some/where/tiny-gpt2"

            def to_json_string(self):
                return json.dumps({"model_type": "gpt2", "n_layer": 3, "n_embd": 64, "n_head": 4, "vocab_size": 100})

        plan = devmap.plan(Config(), gpus=1)
        self.assertEqual(plan.model, "tiny-gpt2")
        self.assertEqual(len(devmap.inspect(Config()).units), 7)

    def test_no_model(self):
        self.assertRaisesRegex(devmap.UsageError, "a builtins.int is no model", devmap.plan, 3, gpus=2)
        with self.assertRaisesRegex(devmap.DevmapError, "no such file") as raised:
            devmap.plan("-o", gpus=2)
        self.assertEqual(raised.exception.status, 1)


class FlagsTest(unittest.TestCase):
    def test_words(self):
        cases = {
            "--gpus=4": {"gpus": 4},
            "--gpus=24GiB,85899345920B": {"gpus": ["24GiB", 85899345920]},
            "--contiguous=false": {"contiguous": False},
            "--pin=lm_head=3 --pin=model.layers.*=0": {"pin": {"lm_head": 3, "model.layers.*": 0}},
            "--pin=lm_head=3": {"pin": "lm_head=3"},
            "--together=a,b": {"together": ["a", "b"]},
            "--together=a,b --together=c,d": {"together": [["a", "b"], "c,d"]},
            "--reserve=1GiB,2B": {"reserve": ["1GiB", 2]},
            "--lora-targets=q_proj,v_proj": {"lora_targets": ["q_proj", "v_proj"]},
            "--time-limit=2.5s": {"time_limit": 2.5},
            "": {"schedule": None},
        }
        for typed, flags in cases.items():
            self.assertEqual(" ".join(words.words("plan", flags)), typed)
        self.assertGreater(len(COMMANDS["plan"]), 30)

    def test_refused(self):
        cases = {
            "devmap.plan takes no 'num_gpus': did you mean gpus": {"num_gpus": 2},
            "devmap.plan takes no 'micro_batch': did you mean micro_batches": {"micro_batch": 2},
            "known: attention, batch": {"xyzzy": 2},
            "mode=True: it takes a value, not True": {"mode": True},
            "contiguous='no': it is True or False": {"contiguous": "no"},
            "batch={}: it takes no dict": {"batch": {}},
            "gpus=\\[\\]: it is empty": {"gpus": []},
            "did you mean h100-80gb or h100-96gb": {"gpu": "h100"},
            "objective='front' has several plans": {"objective": "front"},
        }
        for said, flags in cases.items():
            with self.assertRaisesRegex(devmap.UsageError, said) as raised:
                planned(**flags)
            self.assertEqual(raised.exception.status, 2)
            self.assertIsInstance(raised.exception, ValueError)

    def test_infeasible(self):
        with self.assertRaisesRegex(devmap.Infeasible, "does not fit on 2 GPUs") as raised:
            devmap.plan("llama-3.1-8b", **TRAIN)
        self.assertEqual(raised.exception.status, 3)
        self.assertGreater(len(raised.exception.remedies), 1)
        for remedy in raised.exception.remedies:
            plan = devmap.plan("llama-3.1-8b", **{**TRAIN, **remedy})
            self.assertGreaterEqual(min(device.headroom_bytes for device in plan.devices), 0)
            self.assertIn("\n  " + remedy.text, str(raised.exception))

    def test_infeasible_notes(self):
        with self.assertRaisesRegex(devmap.Infeasible, "band of ±1% includes a fit") as raised:
            devmap.plan("opt-13b", gpus="24.7GiB", batch=1, seq=256)
        self.assertRegex("\n".join(raised.exception.notes), "opt.*peaks are ±1%")
        with self.assertRaises(devmap.Infeasible) as raised:
            devmap.plan("llama-3.1-8b", gpus=1, gpu="rtx-4090", optimizer="adamw")
        self.assertEqual(devmap.plan("gpt2", gpus=1, optimizer="adamw").document["workload"]["mode"], "train")

    def test_remedies(self):
        cases = {
            "--gpus 5: fullest GPU 23.39 GiB of 23.58 GiB, fits": {"gpus": 5},
            "--batch 4 --strategy ddp (gradient accumulation) (without --schedule --virtual-stages): fullest GPU 1 B": {
                "schedule": None, "virtual_stages": None, "batch": 4, "strategy": "ddp",
            },
            "--loss-only --contiguous=false (the loss's (own) word): fullest GPU 1 B": {
                "loss_only": True, "contiguous": False,
            },
            "--pin 'a b'\\''c=1' --ema: fullest GPU 1 B": {"pin": "a b'c=1", "ema": True},
        }  # fmt: skip
        for text, flags in cases.items():
            self.assertEqual(answers.remedy(text), flags)


    def test_any_line(self):
        """Whatever a line is, it is read: its flags, or none."""
        draw = random.Random(5)
        parts = ["--gpus", "--ema", "--pin", "=", " ", "'", "'\\''", "(", ")", "(without ", ": fullest GPU "]
        parts += ["4", "a b", "–"]
        for _ in range(3000):
            text = "".join(draw.choices(parts, k=draw.randrange(12)))
            remedy = answers.remedy(text)
            self.assertEqual(remedy.line, text)
            self.assertTrue(all(name and "-" not in name for name in remedy), remedy)


class CommandsTest(unittest.TestCase):
    def test_check(self):
        plan = planned()
        self.assertTrue(devmap.check("gpt2", plan))
        self.assertTrue(devmap.check("gpt2", plan.device_map, gpus=2))
        wrong = devmap.check("gpt2", {**plan.device_map, "transformer.h.99": 0}, gpus=2)
        self.assertFalse(wrong)
        self.assertEqual([fault.module for fault in wrong.faults], ["transformer.h.99"])
        self.assertIn("unknown-module", repr(wrong))

    def test_estimate(self):
        estimate = devmap.estimate("gpt2", gpus=2, mode="train")
        self.assertTrue(estimate.rows[0].fits)
        self.assertEqual(estimate.remedies, [])
        self.assertIn(estimate.rows[0].strategy, repr(estimate))
        tight = devmap.estimate("llama-3.1-8b", gpus=2, gpu="rtx-4090", mode="train")
        self.assertEqual(tight.fits, [])
        self.assertTrue(tight.remedies)
        self.assertRaises(devmap.DevmapError, devmap.estimate, "no-such-model", gpus=2)

    def test_inspect(self):
        inspection = devmap.inspect("gpt2", mode="train")
        self.assertEqual(inspection.params, 124439808)
        self.assertEqual(inspection.units[2].name, "transformer.h.0")


class ProcessTest(unittest.TestCase):
    def python(self, *words, **more):
        environment = {**os.environ, **more.pop("environment", {})}
        return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, **more)

    def test_command_line(self):
        done = self.python("-m", "devmap", "version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^devmap \S+ \w+/\w+ go")
        self.assertEqual(self.python("-m", "devmap", "plan", "gpt2").returncode, 2)

    def test_no_documents(self):
        """What is no plan, or no argument of a program, is refused with a message."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a b\nü.json")
            for text in (b"{", b"[]", b"\xff\x00"):
                with open(path, "wb") as file:
                    file.write(text)
                with self.assertRaisesRegex(devmap.DevmapError, r"a b\nü.json: no plan: "):
                    devmap.Plan.read(path)
        for model in ("a\0b", {"name": object()}):
            with self.assertRaisesRegex(devmap.UsageError, "zero byte|no JSON document"):
                devmap.plan(model, gpus=1)
        self.assertIn("ended by signal 9", str(binary.Ran(["devmap"], -9, "", "").error()))

    def test_signals(self):
        """What Python ignores is not ignored in what the program starts."""
        if os.name == "nt" or not os.path.exists("/proc/self/status"):
            self.skipTest("no /proc to read signals from")
        script = (
            "import os, devmap._core.binary as b; b._default_signals();"
            "os.execvp('grep', ['grep', 'SigIgn', '/proc/self/status'])"
        )
        ignored = int(self.python("-c", script).stdout.split()[1], 16)
        self.assertEqual([name for name in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> (name - 1) & 1], [])

    def test_spawned(self):
        """Where exec is not what it is elsewhere, the program is waited for, and Ctrl-C is the program's to end by."""
        if os.name == "nt":
            self.skipTest("os.kill ends a process there")
        child = "import os, signal, sys, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(0.1); sys.exit(7)"
        script = f"import sys, devmap._core.binary as b; sys.exit(b._spawn([sys.executable, '-c', {child!r}]) + 1)"
        done = self.python("-c", script)
        self.assertEqual((done.returncode, done.stderr), (8, ""))

    def test_cannot_start(self):
        with tempfile.TemporaryDirectory() as folder:
            wrong = os.path.join(folder, "devmap")
            with open(wrong, "wb") as file:
                file.write(b"\x7fELF" + bytes(100))
            for mode, words in ((0o755, "another system or processor"), (0o644, "may not be executed")):
                os.chmod(wrong, mode)
                if os.name == "nt":
                    continue
                for call in (("-m", "devmap", "version"), ("-c", "import devmap; devmap.plan('gpt2', gpus=1)")):
                    done = self.python(*call, environment={"DEVMAP_BINARY": wrong})
                    self.assertIn(words, done.stderr)
                    self.assertNotEqual(done.returncode, 0)
        gone = self.python("-m", "devmap", environment={"DEVMAP_BINARY": wrong})
        self.assertEqual(gone.returncode, 126)
        self.assertIn("it is not there", gone.stderr)
        bare = self.python("-m", "devmap", environment={"DEVMAP_BINARY": ""})
        if bare.returncode:  # a checkout's copy has no program
            self.assertIn("install its wheel", bare.stderr)

    def test_light(self):
        """Nothing but the package's first file is imported; all names are there when they are asked for."""
        script = (
            "import sys; before = set(sys.modules); import devmap; new = {name.partition('.')[0] for name in "
            "set(sys.modules) - before} - {'__future__', 'devmap'}; assert not new, new;"
            "names = set(devmap.__all__) - {'export'}; assert all(getattr(devmap, name) for name in names);"
            "assert 'torch' not in sys.modules and set(devmap.__all__) < set(dir(devmap)); print(devmap.__version__)"
        )
        done = self.python("-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRaises(AttributeError, getattr, devmap, "plans")

    def test_fast(self):
        """A plan takes a process and little more: 100 ms after import."""
        seconds = []
        for _ in range(9):
            begin = time.perf_counter()
            planned(mode="train")
            seconds.append(time.perf_counter() - begin)
        self.assertLess(statistics.median(seconds), 0.1 * float(os.environ.get("DEVMAP_SLOW", "1")))


if __name__ == "__main__":
    unittest.main()
