"""Which kernels there are, and the blocks that each works on."""

from collections import namedtuple


class Row(namedtuple("Row", "kernel dtype target width form queries keys warps stages")):
    """A kernel as it is compiled. Its form says what it asks for:

    exact    heads of width values, addresses and rows in 16 bytes
    aligned  heads of up to width values, a multiple of 8, likewise
    any      heads of up to width values, wherever they lie
    plain    as exact, and scores have no soft cap: see Plain
    short    as plain, where a query sees fewer than 2048 keys (choose.go: far)
    """

    @property
    def rows(self):
        """What one program works on: of keys or of queries."""
        return self.keys if self.kernel == "attention_dkv" else self.queries

    @property
    def file(self):
        return f"{self.kernel}.{self.dtype}.{self.width}.{self.form}.{self.target}.ptx"


class Plain(namedtuple("Plain", "kernel width form teams settings")):
    """A kernel in CUDA C++ for Hopper, of teams of four warps; settings are more macros."""

    dtype, target = "bf16", "sm_90a"

    @property
    def rows(self):
        """Queries, 64 of each team, or in backward keys."""
        if self.kernel == "attention":
            return 64 * self.teams
        return 64 if self.width > 128 else 128

    @property
    def warps(self):
        """Those of the teams, and four that fetch."""
        return 4 + 4 * self.teams

    @property
    def file(self):
        return f"{self.kernel}.bf16.{self.width}.{self.form}.sm_90a.ptx"

    @property
    def arguments(self):
        """Those of its launch. Matrices that the copy engine reads are maps."""
        sizes = "causal:i32 window:i32 scale:fp32 pairs:i32"
        if self.kernel == "attention":
            return f"q:map k:map v:map y:*value lse:*fp32 y_stride:i32 seq:i32 heads:i32 group:i32 {sizes}".split()
        return ("q:map k:map v:map dy:map lse:*fp32 delta:*fp32 dq:*value dk:*value dv:*value parts:*fp32 sums:*fp32 dq_stride:i32 dk_stride:i32 dv_stride:i32 "
                f"seq:i32 heads:i32 group:i32 splits:i32 {sizes}").split()

    @property
    def macros(self):
        return {"WIDTH": self.width, "TEAMS": self.teams} | self.settings


def rows(dtype, target, width, form, forward, dkv, dq):
    """Blocks of queries × keys, warps, stages of the pipeline."""
    for kernel, blocks in (("attention", forward), ("attention_dkv", dkv), ("attention_dq", dq)):
        yield Row(kernel, dtype, target, width, form, *blocks)


# What is left spilled, in bytes a thread: of no other kernel any. Of dkv's it is
# mostly what stays the same through the loop; without, products wait for each other.
SPILLED = {"attention_dq.fp32.256.any.sm_80.ptx": 336, "attention_dkv.fp32.256.any.sm_80.ptx": 16, "attention_dkv.bf16.128.aligned.sm_90a.ptx": 80, "attention_backward.bf16.64.plain.sm_90a.ptx": 40, "attention_backward.bf16.128.plain.sm_90a.ptx": 8, "attention_backward.bf16.256.plain.sm_90a.ptx": 16}

# The fastest of those tried on an H100, and of Plain on an H200. The shared memory
# of sm_80's stays below 99 KiB, which sm_86 and sm_89 have. Heads of no width
# that models have, in "any", and fp32 are for being right: plain small blocks.
ROWS = [
    Plain("attention", 64, "short", 2, {"KEYS": 128, "SLOTS": 4, "OWN": 2, "TURNS": 0}),
    Plain("attention", 64, "plain", 3, {"KEYS": 128, "SLOTS": 2, "OWN": 2, "TURNS": 1}),
    Plain("attention", 128, "plain", 2, {"KEYS": 128, "SLOTS": 2, "OWN": 2, "TURNS": 1}),
    Plain("attention", 80, "plain", 2, {"KEYS": 128, "SLOTS": 2, "OWN": 2, "TURNS": 1}),
    Plain("attention", 96, "plain", 2, {"KEYS": 128, "SLOTS": 2, "OWN": 2, "TURNS": 1}),
    Plain("attention", 256, "plain", 2, {"KEYS": 80, "SLOTS": 2, "OWN": 1, "TURNS": 1}),
    Plain("attention_backward", 64, "plain", 3, {"SLOTS": 2, "OWN": 2}),
    Plain("attention_backward", 80, "plain", 3, {"SLOTS": 3, "OWN": 1}),
    Plain("attention_backward", 96, "plain", 3, {"SLOTS": 3, "OWN": 1}),
    Plain("attention_backward", 128, "plain", 3, {"SLOTS": 3, "OWN": 1}),
    Plain("attention_backward", 256, "plain", 3, {"SLOTS": 2, "OWN": 1}),
    *rows("bf16", "sm_90a", 128, "aligned", (64, 64, 4, 2), (64, 128, 8, 3), (64, 64, 4, 2)),
    *rows("bf16", "sm_90a", 256, "exact", (128, 32, 8, 3), (64, 32, 8, 3), (128, 32, 8, 3)),
    *rows("bf16", "sm_80", 64, "exact", (128, 32, 4, 3), (16, 64, 4, 2), (64, 32, 4, 2)),
    *rows("bf16", "sm_80", 128, "exact", (64, 64, 4, 2), (64, 64, 8, 1), (128, 32, 8, 2)),
    *rows("bf16", "sm_80", 128, "aligned", (64, 32, 4, 2), (32, 64, 8, 2), (64, 32, 4, 1)),
    *rows("bf16", "sm_80", 256, "exact", (64, 64, 8, 1), (16, 32, 4, 1), (32, 32, 4, 1)),
    *rows("bf16", "sm_80", 256, "aligned", (64, 32, 8, 2), (32, 32, 8, 1), (32, 32, 8, 1)),
    *rows("bf16", "sm_80", 32, "any", (64, 32, 4, 1), (32, 32, 4, 1), (64, 32, 4, 1)),
    *rows("bf16", "sm_80", 64, "any", (64, 32, 4, 1), (32, 32, 4, 1), (32, 32, 4, 1)),
    *rows("bf16", "sm_80", 128, "any", (64, 32, 8, 1), (32, 32, 8, 1), (32, 32, 8, 1)),
    *rows("bf16", "sm_80", 256, "any", (32, 32, 8, 1), (16, 32, 8, 1), (32, 32, 8, 1)),
    *rows("fp32", "sm_80", 32, "any", (32, 32, 4, 1), (16, 32, 4, 1), (32, 16, 4, 1)),
    *rows("fp32", "sm_80", 64, "any", (64, 64, 8, 1), (32, 64, 8, 1), (64, 32, 8, 1)),
    *rows("fp32", "sm_80", 128, "any", (32, 16, 4, 1), (16, 32, 8, 1), (32, 32, 8, 1)),
    *rows("fp32", "sm_80", 256, "any", (32, 16, 8, 1), (16, 16, 8, 1), (16, 16, 8, 1)),
    *(Row("attention_dkv_join", dtype, "sm_80", 256, form, 8, 0, 4, 1) for dtype, form in (("bf16", "aligned"), ("bf16", "any"), ("fp32", "any"))),
]
