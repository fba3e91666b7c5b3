"""Writes the *.csv beside it: what torch 2.11's schedule classes run, dumped by
torch (torch/distributed/pipelining/schedules.py, _dump_csv). Given files, torch
reads and judges them:

    python dump.py                        # write
    python dump.py RANKS STAGES MICROBATCHES FILE.csv   # read
    python dump.py judge FOLDER ROWS.jsonl   # judge every file of a folder

A file KIND_RANKSxSTAGESxMICROBATCHES.csv of the folder becomes a row of ROWS, or its
row gets this release of torch too. torch reads a file with its own loader
(_PipelineScheduleRuntime._load_csv). _validate_schedule finds the rank of each stage.
_simulate_comms_compute runs the messages that torch adds. From torch 2.15 on,
analyze_pipeline_activation_liveness counts what is alive.
"""

import hashlib
import json
import pathlib
import sys

import torch
from torch.distributed.pipelining import schedules


class Stage:
    """What schedules ask of a stage before they run."""

    def __init__(self, index, stages, ranks):
        self.stage_index, self.num_stages, self.group_size = index, stages, ranks
        self.group_rank, self.is_first, self.is_last = 0, index == 0, index == stages - 1
        self.has_backward = True
        self.stage_index_to_group_rank = {s: s % ranks for s in range(stages)}
        self.submod, self.group, self.device = torch.nn.Identity(), None, torch.device("cpu")


def stages_of(rank, ranks, stages):
    return [Stage(s, stages, ranks) for s in range(rank, stages, ranks)]


def runtime(ranks, stages, batches):
    return schedules._PipelineScheduleRuntime(stages_of(0, ranks, stages), batches, loss_fn=lambda *_: 0)


def dump(name, ranks, stages, batches, order):
    # _dump_csv writes self.pipeline_order as it is; the classes for one stage a
    # rank have theirs from _get_pipeline_order, with REDUCE_GRAD at the end.
    made = runtime(ranks, stages, batches)
    made.pipeline_order = {
        rank: [a for a in row if a is None or a.is_compute_op] for rank, row in order.items()
    }
    made._dump_csv(pathlib.Path(__file__).parent / name, format="compute_only")


def single(kind, ranks, batches):
    made = kind(Stage(0, ranks, ranks), batches, loss_fn=lambda *_: 0)
    return made._get_pipeline_order()


def judged(ranks, stages, batches, path):
    """What torch reads from a file, the rank of each stage and the steps of its simulation."""
    made = runtime(ranks, stages, batches)
    made._load_csv(path, format="compute_only")
    rank_of = schedules._validate_schedule(made.pipeline_order, ranks, stages, batches)
    rows = {rank: [a for a in row if a is not None] for rank, row in made.pipeline_order.items()}
    sent = schedules._add_send_recv(rows, stage_to_rank=lambda stage: rank_of[stage], num_stages=stages)
    steps = schedules._simulate_comms_compute(sent, lambda stage: rank_of[stage], stages)
    return made, [rank_of[s] for s in range(stages)], max(map(len, steps.values()))


def alive(made, rank_of):
    """The most micro-batches of all stages that each rank keeps at once, by torch's own analysis."""
    analyze = getattr(schedules, "analyze_pipeline_activation_liveness", None)
    if analyze is None:
        return None
    out = []
    for rank in range(1 + max(rank_of)):
        of = [stage for stage, on in enumerate(rank_of) if on == rank]
        out.append(analyze(made, pp_rank=rank, stage_indices=of, granularity="stage_microbatch").num_slots)
    return out


def judge(folder, rows):
    """A row for each file, with the releases of torch that say the same of it."""
    path = pathlib.Path(rows)
    known = {row["file"]: row for row in map(json.loads, path.read_text().splitlines())} if path.exists() else {}
    for file in sorted(pathlib.Path(folder).glob("*.csv")):
        ranks, stages, batches = map(int, file.stem.split("_")[1].split("x"))
        made, rank_of, steps = judged(ranks, stages, batches, str(file))
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        row = known.get(file.name, {})
        if row.get("sha256") != digest:
            row = {"file": file.name, "sha256": digest, "torch": [], "ranks": rank_of, "steps": steps}
        if (row["ranks"], row["steps"]) != (rank_of, steps):
            raise SystemExit(f"{file.name}: torch {torch.__version__} has ranks {rank_of} and {steps} steps, the row {row}")
        row["torch"] = sorted({*row["torch"], torch.__version__.split("+")[0]})
        kept = alive(made, rank_of)
        row |= {"alive": kept} if kept else {}
        known[file.name] = row
    path.write_text("".join(json.dumps(known[name]) + "\n" for name in sorted(known)))
    print("torch", torch.__version__, "judged", len(known), "files")


def main():
    if sys.argv[1:2] == ["judge"]:
        judge(*sys.argv[2:])
        return
    if len(sys.argv) > 1:
        made, rank_of, steps = judged(*map(int, sys.argv[1:4]), sys.argv[4])
        print("torch", torch.__version__, "ranks of stages", rank_of, "steps", steps)
        for rank, row in made.pipeline_order_with_comms.items():
            print(rank, len([a for a in row if a.is_compute_op]), "actions:", *row)
        return
    dump("gpipe_3x4.csv", 3, 3, 4, single(schedules.ScheduleGPipe, 3, 4))
    dump("1f1b_3x5.csv", 3, 3, 5, single(schedules.Schedule1F1B, 3, 5))
    for ranks, chunks, batches in ((2, 2, 4), (4, 3, 8)):
        made = schedules.ScheduleInterleaved1F1B(stages_of(0, ranks, ranks * chunks), batches, loss_fn=lambda *_: 0)
        dump(f"interleaved_{ranks}x{chunks}x{batches}.csv", ranks, ranks * chunks, batches, made.pipeline_order)
    for ranks, batches in ((1, 2), (2, 1), (3, 4), (4, 12)):
        vee = [Stage(s, 2 * ranks, ranks) for s in (0, 2 * ranks - 1)]
        made = schedules.ScheduleZBVZeroBubble(vee, batches, loss_fn=lambda *_: 0)
        dump(f"zbv_{ranks}x{batches}.csv", ranks, 2 * ranks, batches, made.pipeline_order)


main()
