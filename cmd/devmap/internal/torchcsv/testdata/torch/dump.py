"""Writes the *.csv beside it: what torch 2.11's schedule classes run, dumped by
torch (torch/distributed/pipelining/schedules.py, _dump_csv). Given files, reads
them with torch's own loader instead (_PipelineScheduleRuntime._load_csv):

    python dump.py                        # write
    python dump.py RANKS STAGES MICROBATCHES FILE.csv   # read

Reading also judges the file by torch's _validate_schedule, which finds the rank of
each stage, and by _simulate_comms_compute, which runs the messages that torch adds.
"""

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


def main():
    if len(sys.argv) > 1:
        ranks, stages, batches = map(int, sys.argv[1:4])
        made = runtime(ranks, stages, batches)
        made._load_csv(sys.argv[4], format="compute_only")
        rank_of = schedules._validate_schedule(made.pipeline_order, ranks, stages, batches)
        rows = {rank: [a for a in row if a is not None] for rank, row in made.pipeline_order.items()}
        sent = schedules._add_send_recv(rows, stage_to_rank=lambda stage: rank_of[stage], num_stages=stages)
        steps = schedules._simulate_comms_compute(sent, lambda stage: rank_of[stage], stages)
        print("torch", torch.__version__, "ranks of stages", [rank_of[s] for s in range(stages)], "steps", max(map(len, steps.values())))
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
