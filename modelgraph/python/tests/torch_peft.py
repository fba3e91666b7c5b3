"""Modules with adapters of peft: the operations of the base model, adapters as layers of their own, bytes of all."""

import unittest

import devmap
import tiny
from peft import AdaLoraConfig, IA3Config, LoHaConfig, LoraConfig, PrefixTuningConfig, PromptTuningConfig, get_peft_model

ROLE = {"task_type": "CAUSAL_LM"}
ATTENTION = ["q_proj", "v_proj"]
CASES = {
    "attention": ("llama", LoraConfig(r=8, target_modules=ATTENTION)),
    "fused": ("gpt2", LoraConfig(r=8, target_modules=["c_attn"], fan_in_fan_out=True)),
    "encoder": ("bert", LoraConfig(r=8, target_modules=["query", "value"])),
    "all linear": ("llama", LoraConfig(r=8, lora_dropout=0.1, target_modules="all-linear", **ROLE)),
    "DoRA": ("llama", LoraConfig(r=8, use_dora=True, target_modules=[*ATTENTION, "up_proj"])),
    "IA3": ("llama", IA3Config(target_modules=["k_proj", "v_proj", "down_proj"], feedforward_modules=["down_proj"])),
    "LoHa": ("llama", LoHaConfig(r=4, target_modules=ATTENTION)),
    "AdaLoRA": ("bert", AdaLoraConfig(init_r=4, target_r=2, total_step=10, target_modules=["query", "value"])),
    "prompt": ("llama", PromptTuningConfig(num_virtual_tokens=8, **ROLE)),
    "prefix": ("llama", PrefixTuningConfig(num_virtual_tokens=8, **ROLE)),
    "saved": ("llama", LoraConfig(r=8, target_modules=ATTENTION, modules_to_save=["embed_tokens", "lm_head"])),
}


def exported(net):
    return {layer["name"]: layer for layer in devmap.export(net, steps=False)["layers"]}


def blocks(net):
    """The operations of attention and networks."""
    ops = [layer.get("op", {}) for layer in exported(net).values()]
    return [op for op in ops if op.get("kind") in ("attention", "mlp")]


class PeftTest(unittest.TestCase):
    def test_bytes(self):
        """Every parameter and buffer is on a GPU once, and the map runs."""
        for name, (kind, config) in CASES.items():
            with self.subTest(name):
                net = get_peft_model(tiny.build(kind), config)
                plan = devmap.plan(net, gpus=2, mode="train", batch=2, seq=16)
                want = sum(one.nbytes for one in [*net.parameters(), *net.buffers()])
                self.assertEqual(sum(device.predicted.params_bytes for device in plan.devices), want)
                self.assertEqual(set(plan.device_map.values()), {0, 1})
                self.assertFalse([said for said in plan.warnings if "was not tried" in said])

    def test_operations(self):
        """An adapter changes no operation of the base model."""
        for name in ("attention", "fused", "encoder", "all linear", "DoRA", "IA3"):
            kind, config = CASES[name]
            with self.subTest(name):
                plain, changed = tiny.build(kind), get_peft_model(tiny.build(kind), config)
                self.assertEqual(blocks(changed), blocks(plain))
        self.assertEqual(
            exported(get_peft_model(tiny.build("llama"), CASES["attention"][1]))[
                "base_model.model.model.layers.0.self_attn.q_proj.lora_A.default"
            ]["op"],
            {"kind": "linear", "in": 32, "out": 8},
        )

    def test_several_adapters(self):
        net = get_peft_model(tiny.build("llama"), CASES["attention"][1])
        net.add_adapter("second", LoraConfig(r=4, target_modules=["k_proj", "q_proj"]))
        model = devmap.export(net, steps=False)
        self.assertEqual(devmap.inspect(model).params, sum(one.numel() for one in net.parameters()))
        self.assertIn("lora_A.second", "\n".join(model["warnings"]))

    def test_prompt(self):
        """The prompt's table and that of the tokens are on one GPU: peft joins their results."""
        said = "\n".join(devmap.export(get_peft_model(tiny.build("llama"), CASES["prompt"][1]), steps=False)["warnings"])
        self.assertRegex(said, r"prompt_encoder.default.embedding, word_embeddings: peft_model\.py:\d+ \(cat")


if __name__ == "__main__":
    unittest.main()
