"""Settings as Hugging Face users write them, on stand-ins for the objects of their libraries."""

import asyncio
import os
import stat
import sys
import tempfile
import time
import types
import typing
import unittest
from unittest import mock

import devmap
import fake_torch
from devmap._core import settings, words
from devmap._core.answers import error_of


class LoraConfig(types.SimpleNamespace):
    """As PEFT has it, with what devmap reads."""

    def __init__(self, **fields):
        super().__init__(
            **{"peft_type": "LORA", "r": 8, "target_modules": {"v_proj", "q_proj"}, "bias": "none", **fields}
        )


def arguments(**fields):
    """A TrainingArguments with what devmap reads."""
    return types.SimpleNamespace(**{
        "per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "gradient_checkpointing": False,
        "optim": "adamw_torch_fused", "bf16": False, "fp16": False, "deepspeed": None, "fsdp": None, **fields,
    })  # fmt: skip


def translated(**flags):
    found = settings.Translated("plan", flags)
    return found.flags, found.autocast


class TranslatedTest(unittest.TestCase):
    def test_keywords(self):
        cases = (
            ({"dtype": "torch.float32"}, {"precision": "32-true"}),
            ({"torch_dtype": "bfloat16"}, {"precision": "bf16-true"}),
            ({"dtype": "auto"}, {}),
            ({"gradient_checkpointing": True}, {"recompute": "full"}),
            ({"peft_config": LoraConfig()}, {"lora_rank": 8, "lora_targets": ["q_proj", "v_proj"]}),
            ({"peft_config": LoraConfig(target_modules="all-linear")}, {"lora_rank": 8, "lora_targets": "all-linear"}),
            ({"quantization_config": {"load_in_8bit": True}}, {"quantize": "int8"}),
            ({"quantization_config": types.SimpleNamespace(load_in_4bit=True)}, {"quantize": "nf4"}),
            ({"max_memory": {0: "24GiB", 1: 1 << 34}}, {"gpus": ["24GiB", 1 << 34]}),
            ({"gpus": {0: "24GiB"}}, {"gpus": ["24GiB"]}),
            ({"gpu": "NVIDIA GeForce RTX 4090"}, {"gpu": "rtx-4090"}),
            ({"precision": None, "dtype": "float16"}, {"precision": "16-true"}),
        )
        for given, want in cases:
            self.assertEqual(translated(**given), (want, ""), given)

    def test_refused(self):
        cases = (
            ({"gpus": [24, 24]}, r"numbers in a list are bytes: write gpus=\['24GiB', '24GiB'\]"),
            ({"max_memory": {0: 24}}, "write gpus="),
            ({"max_memory": {1: "24GiB"}}, "number the GPUs from 0"),
            ({"max_memory": {0: "24GiB", "cpu": "1TiB"}}, r"max_memory\['cpu'\]"),
            ({"max_memory": {0: "24GiB"}, "gpus": 2}, "give one of them"),
            ({"max_memory": "24GiB"}, "write max_memory="),
            ({"dtype": "int8"}, "dtype=int8: devmap plans float32"),
            ({"dtype": "float32", "precision": "bf16-true"}, "dtype means precision='32-true'"),
            ({"peft_config": LoraConfig(use_dora=True)}, "use_dora, which devmap does not count"),
            ({"peft_config": LoraConfig(target_modules=".*proj")}, "the pattern target_modules"),
            ({"peft_config": LoraConfig(peft_type="IA3")}, "devmap counts LoraConfig"),
            ({"peft_config": LoraConfig(bias="all")}, "bias='all'"),
            ({"quantization_config": {"quant_method": "gptq"}}, "leave it out"),
            ({"gradient_checkpointing": "yes"}, "it is True or False"),
            ({"args": arguments(optim="lion_8bit")}, "optim='lion_8bit', which devmap does not count"),
            ({"architecture": 3}, "give a class, or its name"),
        )
        for given, said in cases:
            with self.assertRaisesRegex(devmap.UsageError, said):
                devmap.plan("gpt2", **given)

    def test_arguments(self):
        """A Trainer's arguments are keywords; keywords of the call win."""
        flags, autocast = translated(args=arguments(bf16=True, optim="sgd", gradient_checkpointing=True), batch=2)
        self.assertEqual(autocast, "bf16")
        want = {"mode": "train", "batch": 2, "micro_batches": 4, "optimizer": "sgd", "recompute": "full"}
        self.assertEqual(flags, want)
        self.assertEqual(translated(args=arguments(bf16=True), dtype="float32")[0]["precision"], "bf16-mixed")
        self.assertEqual(translated(args=arguments(bf16=True), dtype="bfloat16")[0]["precision"], "bf16-true")
        self.assertEqual(translated(args=arguments(fsdp="full_shard"))[0]["strategy"], "fsdp")
        for cast in ({"args": arguments(bf16=True, fsdp="full_shard")}, {"args": arguments(bf16=True), "lora_rank": 8}):
            self.assertEqual(translated(dtype="bfloat16", **cast)[0]["precision"], "bf16-mixed")
            flags = translated(dtype="bfloat16", preset="accelerate-loop", **cast)[0]
            self.assertEqual(flags["precision"], "bf16-true")
        self.assertEqual(translated(args=arguments(deepspeed="ds.json", bf16=True))[0]["ds_config"], "ds.json")
        self.assertEqual(translated(args=arguments(deepspeed="ds.json", bf16=True))[1], "")

    def test_planned(self):
        """The weights of the model decide what bf16=True means."""
        for model, precision in (("gpt2", "bf16-mixed"), ("llama-3.2-1b", "bf16-true")):
            work = devmap.plan(model, gpus=4, args=arguments(bf16=True)).workload
            self.assertEqual((work["precision"], work["batch"], work["micro_batches"]), (precision, 8, 4))
        args = arguments(bf16=True, fsdp="full_shard")
        work = devmap.plan("llama-3.2-1b", gpus=4, args=args).workload
        self.assertEqual((work["precision"], work["preset"]), ("bf16-mixed", "transformers"))
        self.assertNotIn("preset", devmap.plan("llama-3.2-1b", gpus=4, args=args, preset="accelerate-loop").workload)
        config = {"bf16": {"enabled": True}, "zero_optimization": {"stage": 2}}
        work = devmap.plan("gpt2", gpus=2, args=arguments(deepspeed=config, bf16=True)).workload
        self.assertEqual((work["strategy"], work["precision"]), ("zero2", "bf16-mixed"))
        noted = devmap.plan(
            "llama-3.2-1b", gpus=2, mode="train", quantization_config={"load_in_4bit": True}, peft_config=LoraConfig()
        )
        self.assertIn("bnb_4bit_use_double_quant", noted.warnings[0])

    def test_architecture(self):
        class BertForSequenceClassification:
            pass

        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w") as file:
                file.write('{"model_type": "bert", "num_hidden_layers": 2}')
            guessed = devmap.inspect(folder)
            named = devmap.inspect(folder, architecture=BertForSequenceClassification)
            self.assertNotEqual(guessed.params, named.params)
            self.assertTrue(
                any("BertForMaskedLM" in line for line in devmap.plan(folder, gpus=1, mode="load").warnings)
            )
        with self.assertRaisesRegex(devmap.UsageError, "AutoConfig.from_pretrained"):
            devmap.plan("gpt2", gpus=1, architecture="GPT2ForSequenceClassification")

    def test_download(self):
        """The config is fetched by huggingface_hub, and only if that is asked for."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w") as file:
                file.write('{"model_type": "gpt2", "n_layer": 3}')
            asked = []
            hub = types.ModuleType("huggingface_hub")
            hub.snapshot_download = lambda name, allow_patterns: asked.append((name, allow_patterns)) or folder
            with mock.patch.dict(sys.modules, huggingface_hub=hub):
                self.assertEqual(len(devmap.inspect("someone/some-model", download=True).units), 7)
                self.assertEqual(asked[0][0], "someone/some-model")
                self.assertIn("config.json", asked[0][1])
                hub.snapshot_download = mock.Mock(side_effect=OSError("no network"))
                with self.assertRaisesRegex(devmap.DevmapError, "someone/other could not be fetched.*no network"):
                    devmap.inspect("someone/other", download=True)
            with mock.patch.dict(sys.modules, huggingface_hub=None):
                with self.assertRaisesRegex(devmap.UsageError, "pip install huggingface_hub"):
                    devmap.inspect("someone/other", download=True)


class GPUTest(unittest.TestCase):
    def test_names(self):
        cases = {
            "NVIDIA A100-SXM4-80GB": "a100-80gb", "NVIDIA A100-SXM4-40GB": "a100-40gb",
            "NVIDIA H100 80GB HBM3": "h100-80gb", "NVIDIA H200": "h200-141gb", "NVIDIA A10G": "a10g-24gb",
            "NVIDIA L4": "l4-24gb", "NVIDIA L40S": "l40s-48gb", "NVIDIA B200": "b200-180gb",
            "NVIDIA GeForce RTX 3090": "rtx-3090", "NVIDIA GeForce RTX 4090": "rtx-4090", "h100-80gb": "h100-80gb",
            "NVIDIA GeForce RTX 4090 D": "NVIDIA GeForce RTX 4090 D", "NVIDIA TITAN V": "NVIDIA TITAN V",
            "h100": "h100",
        }  # fmt: skip
        for name, gpu in cases.items():
            self.assertEqual(settings.catalogue_gpu(name), gpu)
        with self.assertRaisesRegex(devmap.UsageError, "may be h100-80gb or h100-96gb"):
            settings.catalogue_gpu("NVIDIA H100 PCIe")
        self.assertEqual(settings.catalogue_gpu("NVIDIA H100 NVL", 100485038080), "h100-96gb")

    def test_auto(self):
        """The GPUs of this machine are those that torch sees."""
        was = sys.modules.get("torch")
        torch = fake_torch.install()
        try:
            with self.assertRaisesRegex(devmap.UsageError, "torch sees no GPU here"):
                devmap.plan("gpt2", gpus="auto")
            torch.cuda.figures = [(0, 0, 0)] * 2
            card = types.SimpleNamespace(name="NVIDIA A100-SXM4-80GB", total_memory=85899345920)
            torch.cuda.get_device_properties = lambda number: card
            plan = devmap.plan("gpt2", gpus="auto")
            self.assertEqual([device.capacity_bytes for device in plan.devices], [85899345920] * 2)
            self.assertEqual(plan.document["topology"]["devices"][0]["compute_capability"], "8.0")
        finally:
            del sys.modules["torch"]
            if was:
                sys.modules["torch"] = was


class MessageTest(unittest.TestCase):
    def test_keywords(self):
        cases = {
            "a count (--gpus 4), or --gpus 80GiB,24GiB": "a count (gpus=4), or gpus='80GiB,24GiB'",
            "--lora-targets: q need a rank: add --lora-rank 16": "lora_targets: q need a rank: add lora_rank=16",
            "--batch 4 --strategy ddp (accumulation)": "batch=4, strategy='ddp' (accumulation)",
            "--gpus gives capacities alone": "gpus gives capacities alone",
            "with --loss-only the same plan": "with loss_only=True the same plan",
            "--contiguous=false allows any": "contiguous=False allows any",
            "add --mode train.": "add mode='train'.",
            "--for accelerate and --unknown x stay": "--for accelerate and --unknown x stay",
        }
        for said, want in cases.items():
            self.assertEqual(words.keywords(said), want)

    def test_messages_have_keywords(self):
        for flags in ({"mode": "trane"}, {"lora_targets": "q"}, {"gpus": "24,24"}, {"gpu": "h100"}):
            with self.assertRaises(devmap.DevmapError) as raised:
                devmap.plan("gpt2", **{"gpus": 2, **flags})
            self.assertNotIn("--", str(raised.exception))
            self.assertIn(next(iter(flags)), str(raised.exception))

    def test_json_errors(self):
        """An error in its JSON form has the same parts as one in lines."""
        document = (
            '{"format_version": "devmap.error/v1", "error": "does not fit: add --gpus 3", "missing_bytes": 5, '
            '"proved": false, "remedies": [{"flags": ["--gpus", "3"], "text": "--gpus 3: fullest GPU 1 GiB, tight"}]}'
        )
        for stdout, stderr in ((document, ""), ("", document)):
            error = error_of(("devmap",), 3, stdout, stderr)
            self.assertEqual(str(error), "does not fit: add gpus=3\n  gpus=3: fullest GPU 1 GiB, tight")
            self.assertEqual((error.missing_bytes, error.proved), (5, False))
            self.assertEqual((dict(error.remedies[0]), error.remedies[0].verdict), ({"gpus": 3}, "tight"))
        plain = error_of(("devmap",), 3, "", "note: --seq is assumed\ndevmap: GPU 1 is 8.77 GiB short, not proved\n")
        self.assertEqual((plain.notes, plain.proved), (["seq is assumed"], False))
        self.assertEqual(plain.missing_bytes, int(8.77 * 2**30))

    def test_remedies_plan(self):
        """A remedy knows its call, the settings of other libraries too."""
        with self.assertRaises(devmap.Infeasible) as raised:
            devmap.plan("llama-3.1-8b", max_memory={0: "24GiB", 1: "24GiB"}, gradient_checkpointing=False, mode="train")
        error = raised.exception
        self.assertGreater(error.missing_bytes, 1 << 30)
        self.assertTrue(error.proved)
        for remedy in error.remedies:
            plan = remedy.plan()
            self.assertTrue(plan.fits)
            self.assertEqual(devmap.plan("llama-3.1-8b", **remedy.flags), plan)
            self.assertNotIn("--", remedy.text)


class ProgramTest(unittest.TestCase):
    def program(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "devmap")
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return mock.patch.dict(os.environ, DEVMAP_BINARY=path)

    def setUp(self):
        if os.name == "nt":
            self.skipTest("the programs here are scripts of sh")

    def test_versions(self):
        """A program of another version gives one clear error."""
        tells = 'if [ "$1" = version ]; then echo "devmap 9.8.7 linux/amd64"; exit; fi'
        with self.program(tells + '; echo "devmap: unknown flag: --batch" >&2; exit 2'):
            with mock.patch.object(devmap, "__version__", "0+unknown"):
                said = "is devmap 9.8.7, and this package is .*--batch: unset"
                with self.assertRaisesRegex(devmap.DevmapError, said):
                    devmap.plan("gpt2", gpus=1, batch=2)
            with mock.patch.object(devmap, "__version__", "9.8.6"):
                with self.assertRaisesRegex(devmap.DevmapError, "is devmap 9.8.7, and this package is 9.8.6: unset"):
                    devmap.plan("gpt2", gpus=1)
        with self.program("exit 0"), self.assertRaisesRegex(devmap.DevmapError, "is not devmap"):
            devmap.plan("gpt2", gpus=1)

    def test_cancelled(self):
        """Cancelling the task ends the program."""
        tells = 'if [ "$1" = version ]; then echo "devmap (devel)"; exit; fi'
        with tempfile.TemporaryDirectory() as folder:
            pid_file = os.path.join(folder, "pid")
            with self.program(f"{tells}; echo $$ > {pid_file}; exec sleep 60"):

                async def cancelled():
                    task = asyncio.ensure_future(devmap.aplan("gpt2", gpus=1))
                    for _ in range(1000):
                        if os.path.exists(pid_file) and os.path.getsize(pid_file):
                            break
                        await asyncio.sleep(0.02)
                    await asyncio.sleep(0.2)  # the task waits for the program's end
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await asyncio.wait_for(asyncio.shield(task), 20)

                asyncio.run(cancelled())
            with open(pid_file) as file:
                pid = int(file.read())
        self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_async(self):
        async def both():
            return await asyncio.gather(devmap.aplan("gpt2", gpus=2, timeout=30), devmap.aplan("gpt2", gpus=3))

        two, three = asyncio.run(both())
        self.assertEqual((two, len(three.peaks)), (devmap.plan("gpt2", gpus=2), 3))
        with self.assertRaises(devmap.Infeasible) as raised:
            asyncio.run(devmap.aplan("llama-3.1-8b", gpus=1, gpu="rtx-4090", mode="train"))
        self.assertTrue(raised.exception.remedies[0].plan().fits)

    def test_watch(self):
        report = '{"format_version": "devmap.report/v1", "verdict": "pass", "reasons": ["as planned"], "devices": []}'
        tells = 'if [ "$1" = version ]; then echo "devmap (devel)"; exit; fi'
        plan = devmap.plan("gpt2", gpus=1)
        with self.program(f"{tells}; echo \"$@\" >&2; cat <<'E'\n{report}\nE\nexit 3"):
            with mock.patch.object(sys, "stderr") as stderr:
                found = devmap.watch(plan, [sys.executable, "train.py"])
            said = "".join(call.args[0] for call in stderr.write.call_args_list)
            self.assertRegex(said, r"^watch --json \S+plan.json -- \S+ train.py\n$")
            self.assertEqual((found.verdict, found.exit_status, found.reasons), ("pass", 3, ["as planned"]))
            self.assertTrue(found)
        with self.program(f"{tells}; cat <<'E'\n{report.replace('pass', 'fail')}\nE\nexit 4"):
            with self.assertRaisesRegex(devmap.DevmapError, "the plan does not hold: as planned"):
                devmap.watch(plan, ["true"], strict=True)
        with self.assertRaisesRegex(devmap.UsageError, "give a list of words"):
            devmap.watch(plan, "python train.py")
        with self.assertRaisesRegex(devmap.UsageError, "or pid="):
            devmap.watch(plan)
        with self.assertRaises(devmap.DevmapError):
            devmap.watch("no-such-plan.json", ["true"])


class PlanTest(unittest.TestCase):
    def test_mapping(self):
        """A plan is the mapping that Accelerate takes, or tells why it is none."""
        plan = devmap.plan("gpt2", gpus=2)
        self.assertEqual(dict(plan), plan.device_map)
        self.assertEqual(set(plan.values()), {0, 1})
        self.assertEqual(plan, plan.device_map)
        self.assertEqual(len({plan, devmap.plan("gpt2", gpus=2)}), 1)
        self.assertNotEqual(plan, devmap.plan("gpt2", gpus=3))
        sharded = devmap.plan("gpt2", gpus=2, strategy="fsdp", mode="train")
        self.assertTrue(sharded)
        with self.assertRaisesRegex(devmap.DevmapError, "no device map: its strategy is fsdp"):
            sharded.values().__iter__().__next__()

    def test_verdict(self):
        plan = devmap.plan("gpt2", gpus=1)
        self.assertEqual(
            (plan.verdict, plan.fits, plan.peaks[0]), ("fits", True, plan.devices[0].predicted.peak_allocated_bytes)
        )
        for free, verdict in ((-1, "no"), (0, "tight"), (1 << 40, "fits")):
            plan.document.pop("verdict", None)
            plan.document["devices"][0].pop("verdict", None)
            plan.document["devices"][0]["headroom_bytes"] = free
            plan.document["devices"][0]["predicted"]["slack_bytes"] = [0, 1 << 30]
            self.assertEqual((plan.verdict, plan.fits), (verdict, verdict != "no"))
        plan.document["verdict"] = "tight"
        self.assertEqual(plan.verdict, "tight")

    def test_tables(self):
        """Tables are 100 columns wide at most, as text and as HTML, and outside text is escaped."""
        layers = [{"name": f"h.{i}", "params": [{"name": "w", "shape": [64, 64], "dtype": "bf16"}]} for i in range(4)]
        hostile = devmap.plan(
            {"format_version": "devmap.model/v1", "name": "<b>", "layers": layers}, gpus=2, mode="load"
        )
        self.assertNotIn("<b><b>", hostile._repr_html_())
        for made in (
            devmap.plan("gpt2", gpus=4, mode="train", batch=4),
            devmap.estimate("gpt2", gpus=4, mode="train"),
            devmap.check("gpt2", {"transformer": 0}, gpus=1),
            devmap.inspect("gpt2"),
            hostile,
        ):
            self.assertTrue(made._repr_html_().startswith("<b>"))
            rows = made.table().splitlines()
            self.assertGreater(len(rows), 2)
            for row in rows[1:]:
                if not row.startswith(("note: ", "pipeline")):
                    self.assertLessEqual(len(row), 100, row)

    def test_files(self):
        plan = devmap.plan("gpt2", gpus=1)
        with tempfile.TemporaryDirectory() as folder:
            for path in (os.path.join(folder, "no", "plan.json"), folder):
                self.assertRaises(devmap.DevmapError, plan.save, path)
                self.assertRaises(devmap.DevmapError, devmap.Plan.read, path)

    def test_time_limit(self):
        """A search that the limit ends has a plan, or tells that it is not proved."""
        begun = time.monotonic()
        try:
            devmap.plan("llama-3.1-8b", gpus=4, mode="train", time_limit=0.001)
        except devmap.Infeasible as error:
            self.assertFalse(error.proved, str(error))
        self.assertLess(time.monotonic() - begun, 5 * float(os.environ.get("DEVMAP_SLOW", "1")))


class HelpTest(unittest.TestCase):
    def test_hints(self):
        for name in dir(devmap):
            found = getattr(devmap, name)
            if isinstance(found, type) or isinstance(found, types.FunctionType):
                typing.get_type_hints(found)
        hints = typing.get_type_hints(devmap.PlanFlags)
        self.assertIn("train", str(hints["mode"]))
        self.assertIn("gpus", hints)
        self.assertTrue(hasattr(devmap, "export"))
        with self.assertRaisesRegex(devmap.DevmapError, "torch is not installed"):
            with mock.patch.dict(sys.modules, torch=None):
                sys.modules.pop("devmap._core.exporter", None)
                devmap.export(None)

    def test_help(self):
        """help(devmap) is short and has the public names alone."""
        import pydoc

        text = pydoc.plain(pydoc.render_doc(devmap))
        self.assertLess(text.count("\n"), 400)
        for name in devmap.__all__:
            self.assertIn(name, text)
        contents = text.partition("PACKAGE CONTENTS")[2].partition("CLASSES")[0].split()
        self.assertEqual(contents, ["__main__", "_core", "(package)", "callbacks"])


if __name__ == "__main__":
    unittest.main()
