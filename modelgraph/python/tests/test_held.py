"""The callbacks' judgement, on a stub of torch."""

import json
import sys
import unittest

import fake_torch

from devmap import DevmapError, Plan
from devmap._core.held import Watch

GIB = 1 << 30


def plan(strategy="device-map", devices=2, peak=10 * GIB, spread=None):
    predicted = {
        "peak_allocated_bytes": peak,
        "overhead_bytes": GIB,
        "slack_bytes": [0, GIB],
        "device_used_bytes": peak,
    }
    if spread:
        predicted["peak_range_bytes"] = spread
    return Plan(json.dumps({
        "format_version": "devmap.plan/v1", "model": {"name": "m"}, "workload": {"mode": "train", "strategy": strategy},
        "devices": [{"device": number, "predicted": predicted} for number in range(devices)],
    }))  # fmt: skip


class HeldTest(unittest.TestCase):
    def setUp(self):
        self.was = sys.modules.get("torch")
        self.torch = fake_torch.install()
        self.lines = []

    def tearDown(self):
        del sys.modules["torch"]
        if self.was:
            sys.modules["torch"] = self.was

    def watch(self, plan, before, after, steps=3, ended=False, strict=False):
        watch = Watch(plan, 3, strict, self.lines.append)
        self.torch.cuda.figures = [(figure, figure, 0) for figure in before]
        watch.begin(100)
        self.torch.cuda.figures = [figure if isinstance(figure, tuple) else (figure, figure, 0) for figure in after]
        for step in range(steps):
            watch.after(100 + step + 1)
        if ended:
            watch.after(100 + steps, ended=True)
        return watch

    def test_verdicts(self):
        peak = 10 * GIB
        cases = (
            ("as predicted", peak, False, "pass", "10.00 GiB were predicted, at most 102.4 MiB apart"),
            ("within a hundredth", peak + peak // 100, False, "pass", ""),
            ("more", peak + peak // 100 + 1, False, "fail", "102.4 MiB more"),
            ("less so far", peak - 2 * GIB, False, "inconclusive", "2.00 GiB less, and training goes on"),
            ("less", peak - 2 * GIB, True, "fail", "2.00 GiB less"),
            ("out of memory", (peak, peak, 1), False, "fail", "it ran out of memory"),
        )
        for name, figure, ended, verdict, words in cases:
            with self.subTest(name):
                watch = self.watch(plan(), [0, 0], [peak, figure], ended=ended)
                self.assertEqual([held.verdict for held in watch.report], ["pass", verdict])
                self.assertEqual(watch.verdict, verdict)
                self.assertIn(words, watch.report[1].reason)
                self.assertIn(words, watch.reason)

    def test_ranges(self):
        spread = [8 * GIB, 12 * GIB]
        for figure, verdict in ((8 * GIB, "pass"), (12 * GIB, "pass"), (13 * GIB, "fail"), (7 * GIB, "inconclusive")):
            watch = self.watch(plan(devices=1, spread=spread), [0], [figure])
            self.assertEqual(watch.verdict, verdict, figure)
            self.assertIn("8.00 GiB to 12.00 GiB were predicted", watch.reason)

    def test_loading(self):
        watch = self.watch(plan(devices=1), [14 * GIB], [14 * GIB])
        self.assertEqual(watch.verdict, "inconclusive")
        self.assertIn("before the first step", watch.reason)
        self.assertEqual(self.watch(plan(devices=1), [14 * GIB], [15 * GIB]).verdict, "fail")

    def test_pool(self):
        peak = 10 * GIB
        for reserved, words in (
            (peak, "0.0 MiB beyond that, 0.0 MiB to 1.00 GiB were allowed for"),
            (peak + 3 * GIB, ": 2.00 GiB more"),
        ):
            watch = self.watch(plan(devices=1), [0], [(peak, reserved, 0)])
            self.assertEqual(watch.verdict, "pass")
            self.assertTrue(watch.report[0].pool().endswith(words), watch.report[0].pool())

    def test_ranks(self):
        self.torch.distributed.place, self.torch.cuda.current = (1, 2), 1
        for strategy in ("ddp", "fsdp", "zero3"):
            watch = self.watch(plan(strategy), [0, 0], [99 * GIB, 10 * GIB])
            self.assertEqual(
                [(held.device, held.cuda, held.rank, held.verdict) for held in watch.report], [(1, 1, 1, "pass")]
            )
        self.assertIn("one process's, and 2 run", self.watch(plan(), [0], [1]).reason)
        self.torch.distributed.place = (1, 4)
        self.assertIn("the plan is for 2 GPUs, a process each, and 4 run", self.watch(plan("ddp"), [0], [1]).reason)

    def test_alone(self):
        """One process without torch.distributed has no buckets and no shards, whatever the plan counts."""
        watch = self.watch(plan("ddp", devices=1), [0], [10 * GIB])
        self.assertEqual((watch.verdict, watch.report), ("inconclusive", []))
        self.assertIn("the plan is of ddp, and torch.distributed was not begun", watch.reason)
        self.torch.distributed.place = (0, 1)
        self.assertEqual(self.watch(plan("ddp", devices=1), [0], [10 * GIB]).verdict, "pass")

    def test_nothing_to_hold(self):
        watch = self.watch(plan(), [], [])
        self.assertEqual((watch.verdict, watch.report), ("inconclusive", []))
        self.assertIn("there is nothing to hold: torch sees no GPU here, and the plan is for 2 GPUs", watch.reason)
        self.assertIn("torch sees 1", self.watch(plan(), [0], [1]).reason)
        self.assertIn("1 step ran", self.watch(plan(), [0, 0], [1, 1], steps=1, ended=True).reason)

    def test_said_once(self):
        self.watch(plan(devices=1), [0], [10 * GIB], steps=5, ended=True)
        self.assertEqual(len(self.lines), 1)
        self.assertTrue(
            self.lines[0].startswith("devmap: GPU 0 (cuda:0, rank 0): pass: 10.00 GiB were allocated at most")
        )

    def test_strict(self):
        with self.assertRaisesRegex(DevmapError, "the plan for 'm' does not hold: GPU 0") as raised:
            self.watch(plan(devices=1), [0], [20 * GIB], strict=True)
        self.assertEqual(raised.exception.status, 4)
        self.assertRaisesRegex(ValueError, "steps=1", Watch, plan(), 1, False, None)


if __name__ == "__main__":
    unittest.main()
