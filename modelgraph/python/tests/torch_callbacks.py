"""The callbacks under the real Trainers, on the CPU, where nothing is to hold; and with figures that are set."""

import importlib.util
import tempfile
import unittest
from unittest import mock

import tiny
import torch
from transformers import Trainer, TrainingArguments

import devmap
from devmap._core import held
from devmap.callbacks import DevmapCallback

LIGHTNING = any(importlib.util.find_spec(name) for name in ("lightning", "pytorch_lightning"))


def planned(**flags):
    config = tiny.build("llama").config
    return devmap.plan(
        config,
        **{"gpus": 1, "mode": "train", "seq": 16, "batch": 4, "micro_batches": 2, "precision": "32-true", **flags},
    )


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return {name: tensor[0] for name, tensor in tiny.batch("llama", rows=1).items()}


def trainer(callback, folder, **more):
    settings = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "max_steps": 5, **more}
    arguments = TrainingArguments(folder, use_cpu=True, report_to=[], disable_tqdm=True, save_strategy="no", **settings)
    return Trainer(tiny.build("llama"), arguments, train_dataset=Rows(), callbacks=[callback])


class Figures:
    """torch.cuda as of a machine with one GPU, for what the callbacks ask of it."""

    def __init__(self, peak):
        self.peak = peak

    def __enter__(self):
        stats = {"allocated_bytes.all.peak": self.peak, "reserved_bytes.all.peak": self.peak, "num_ooms": 0}
        real = held.Watch._judge

        def judge(watch, ended):
            with mock.patch.multiple(
                torch.cuda, is_available=lambda: True, device_count=lambda: 1, memory_stats=lambda _: stats
            ):
                real(watch, ended)

        self.patch = mock.patch.object(held.Watch, "_judge", judge)
        self.patch.start()

    def __exit__(self, *_):
        self.patch.stop()


class TrainerTest(unittest.TestCase):
    def setUp(self):
        self.lines = []
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_nothing_to_hold(self):
        callback = DevmapCallback(planned(), log=self.lines.append)
        self.assertEqual(trainer(callback, self.folder).train().global_step, 5)
        self.assertEqual((callback.verdict, callback.report), ("inconclusive", []))
        self.assertEqual(
            self.lines, ["devmap: there is nothing to hold: torch sees no GPU here, and the plan is for 1 GPU"]
        )

    def test_held(self):
        plan = planned()
        with Figures(plan.devices[0].predicted.peak_allocated_bytes):
            callback = DevmapCallback(plan, log=self.lines.append)
            self.assertEqual(trainer(callback, self.folder).train().global_step, 5)
        self.assertEqual(callback.verdict, "pass", self.lines)
        self.assertEqual(len(self.lines), 1)
        self.assertEqual([held.device for held in callback.report], [0])

    def test_strict(self):
        """The third step ends the training where the plan does not hold."""
        strict = trainer(DevmapCallback(planned(), strict=True, log=self.lines.append), self.folder)
        with Figures(1 << 40), self.assertRaisesRegex(devmap.DevmapError, "does not hold") as raised:
            strict.train()
        self.assertEqual(strict.state.global_step, 3)
        self.assertEqual(raised.exception.status, 4)

    def test_unlike(self):
        callback = DevmapCallback(planned(), log=self.lines.append)
        trainer(callback, self.folder, per_device_train_batch_size=4, max_steps=2).train()
        said = "devmap: note: the plan is made for per_device_train_batch_size=2, and the Trainer has 4"
        self.assertEqual(self.lines[0], said)

    def test_other_settings(self):
        """The optimizer, autocast and the type of the weights are compared too."""
        cases = (
            ({"optim": "sgd"}, {}, ["optimizer='adamw', and the Trainer has optim='sgd'"]),
            ({"bf16": True}, {}, ["precision='32-true', and the Trainer has bf16=True"]),
            ({"bf16": True}, {"precision": "bf16-mixed"}, []),
            ({}, {"precision": "bf16-true"}, ["precision='bf16-true', and the model's weights are 32-true"]),
            ({}, {"optimizer": "sgd"}, ["optimizer='sgd', and the Trainer has optim='adamw_torch_fused'"]),
        )
        for settings, flags, words in cases:
            self.lines.clear()
            callback = DevmapCallback(planned(**flags), log=self.lines.append)
            made = trainer(callback, self.folder, max_steps=2, **settings)
            callback.on_train_begin(made.args, made.state, made.control, model=made.model)
            self.assertEqual([line.partition("made for ")[2] for line in self.lines], words, settings)


@unittest.skipUnless(LIGHTNING, "neither lightning nor pytorch_lightning is here")
class LightningTest(unittest.TestCase):
    def trained(self, callback, **more):
        from devmap._core.lightning import package

        lightning = package()

        class Training(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.model = tiny.build("llama")

            def training_step(self, batch, index):
                return self.model(**batch).loss

            def configure_optimizers(self):
                return torch.optim.AdamW(self.parameters())

        with tempfile.TemporaryDirectory() as folder:
            trainer = lightning.Trainer(
                accelerator="cpu", devices=1, max_steps=5, logger=False, enable_checkpointing=False,
                callbacks=[callback], enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder,
                **{"accumulate_grad_batches": 2, **more},
            )  # fmt: skip
            trainer.fit(Training(), torch.utils.data.DataLoader(Rows(), batch_size=2))
        return trainer.global_step

    def test_lightning(self):
        from devmap.callbacks import LightningCallback

        lines = []
        callback = LightningCallback(planned(runtime=None), log=lines.append)
        self.assertEqual(self.trained(callback), 5)
        self.assertEqual(lines, ["devmap: there is nothing to hold: torch sees no GPU here, and the plan is for 1 GPU"])
        plan = planned()
        for peak, verdict in ((plan.devices[0].predicted.peak_allocated_bytes, "pass"), (1 << 40, "fail")):
            with Figures(peak):
                lines.clear()
                callback = LightningCallback(plan, log=lines.append)
                self.trained(callback)
            self.assertEqual((callback.verdict, len(lines)), (verdict, 1), lines)
        self.trained(LightningCallback(plan, log=lines.append), accumulate_grad_batches=1)
        self.assertIn("the plan is made for accumulate_grad_batches=2, and the Trainer has 1", "".join(lines))


if __name__ == "__main__":
    unittest.main()
