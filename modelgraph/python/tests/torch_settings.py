"""Objects of Transformers and PEFT as keywords, and plans as maps of Accelerate."""

import importlib.util
import json
import tempfile
import unittest

import devmap
import tiny
import torch
from accelerate import dispatch_model
from accelerate.utils import check_device_map
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    BertForSequenceClassification,
    BitsAndBytesConfig,
    CLIPConfig,
    CLIPModel,
    TrainingArguments,
)

PEFT = importlib.util.find_spec("peft")


class SettingsTest(unittest.TestCase):
    def setUp(self):
        self.config = tiny.build("llama").config

    def test_dtype(self):
        for dtype, precision in ((torch.float32, "32-true"), (torch.bfloat16, "bf16-true"), ("float16", "16-true")):
            self.assertEqual(devmap.plan(self.config, gpus=1, dtype=dtype).workload["precision"], precision)

    def test_training_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            args = TrainingArguments(
                folder, use_cpu=True, report_to=[], bf16=True, optim="sgd", gradient_checkpointing=True,
                per_device_train_batch_size=2, gradient_accumulation_steps=4,
            )  # fmt: skip
        work = devmap.plan(self.config, gpus=2, seq=16, args=args).workload
        want = {"mode": "train", "batch": 8, "micro_batches": 4, "optimizer": "sgd", "recompute": "full"}
        self.assertEqual({name: work[name] for name in want}, want)
        self.assertEqual(work["precision"], "bf16-mixed")  # the weights are fp32
        self.assertEqual(devmap.plan(self.config, gpus=2, seq=16, args=args, batch=4).workload["batch"], 4)

    @unittest.skipUnless(PEFT, "peft is not installed")
    def test_peft(self):
        from peft import LoraConfig

        lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"])
        bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True, bnb_4bit_quant_type="nf4")
        plan = devmap.plan(
            "llama-3.2-1b", gpus=1, gpu="rtx-4090", mode="train", peft_config=lora, quantization_config=bits
        )
        same = devmap.plan(
            "llama-3.2-1b", gpus=1, gpu="rtx-4090", mode="train", lora_rank=4, lora_targets=["q_proj", "v_proj"],
            quantize="nf4",
        )  # fmt: skip
        self.assertEqual(plan, same)

    def test_architecture(self):
        plan = devmap.plan(
            BertConfig(num_hidden_layers=2), gpus=1, mode="load", architecture=BertForSequenceClassification
        )
        self.assertIn("classifier", plan.device_map)

    def test_modules(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.table = torch.nn.Linear(8, 8), torch.nn.Module()
                self.table.register_buffer("rows", torch.zeros(3))

            def forward(self, rows):
                return self.linear(rows)

        small = {"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
        clip = CLIPModel(CLIPConfig(text_config=small, vision_config=small))
        with self.assertRaisesRegex(devmap.UsageError, r"pass inputs=\(…\)"):
            devmap.plan(Net(), gpus=1, mode="train")
        for module in (Net(), clip):
            self.assertTrue(devmap.plan(module, gpus=1, mode="load").fits)
        self.assertTrue(devmap.plan(clip, gpus=1, mode="train", batch=2, seq=16).fits)
        self.assertTrue(devmap.plan(Net(), gpus=1, mode="train", inputs=(torch.zeros(2, 8),)).fits)
        with self.assertRaisesRegex(devmap.UsageError, "pass the module that was scripted"):
            devmap.plan(torch.jit.script(torch.nn.Linear(4, 4)), gpus=1, mode="load")


class MapTest(unittest.TestCase):
    def test_plan_as_map(self):
        """Accelerate and Transformers take the plan itself; one without a map says what to do."""
        with tempfile.TemporaryDirectory() as folder:
            model, path = tiny.saved("llama", folder)
            plan = devmap.plan(path, gpus=1, mode="load")
            check_device_map(model, plan)
            plan = devmap.Plan(json.dumps({**plan.document, "device_map": dict.fromkeys(plan, "cpu")}))
            loaded = AutoModelForCausalLM.from_pretrained(path, device_map=plan)
            self.assertEqual(next(loaded.parameters()).device.type, "cpu")
            dispatch_model(tiny.build("llama"), plan, main_device="cpu", force_hooks=True)
            sharded = devmap.plan(path, gpus=2, strategy="fsdp", mode="train", seq=16)
            with self.assertRaisesRegex(devmap.DevmapError, "no device map: its strategy is fsdp"):
                AutoModelForCausalLM.from_pretrained(path, device_map=sharded)


if __name__ == "__main__":
    unittest.main()
