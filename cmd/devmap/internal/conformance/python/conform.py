"""Holds what `devmap run` computes to PyTorch and Transformers, and prints every figure beside its bar.

usage: conform.py DEVMAP [--root REPOSITORY] [--only SECTION,...] [--seed N] [--draws N] [--models NAME,...] [--families NAME,...]

Exit status 1 where a bar is missed. Sections: see SECTIONS. Configurations, weights and tokens come from the seed.
"""

import argparse
import json
import os
import random
import sys

import checks
import language
import machine
import models
import outputs
import sameness
import training
from engine import Engine, temporary
from figures import Figures

SECTIONS = {
    "logits": outputs.logits, "rounding": outputs.rounding, "trained": outputs.trained, "decode": sameness.decode, "gradients": training.gradients,
    "losses": training.losses, "devices": sameness.devices, "resume": sameness.resume, "memory": machine.memory, "language": language.language,
    "widths": outputs.widths, "speed": machine.speed, "checks": checks.checks,
}


class Bench:
    """What a section needs."""

    def __init__(self, args, engine):
        self.engine, self.figures = engine, Figures()
        self.root, self.seed, self.draws, self.keep = args.root, args.seed, args.draws, args.keep
        self.models = [name for name in args.models.split(",") if name]
        self.families = [name for name in args.families.split(",") if name]

    def among(self, families):
        """Those of some families that are asked for."""
        return [family for family in families if not self.families or family in self.families]

    def cause(self, folder):
        """The fields of a config that a reader of a miss asks for first."""
        if not self.keep:
            return ""
        with open(os.path.join(folder, "config.json")) as file:
            return json.dumps(json.load(file))

    def judged(self, section):
        """devmap's own verdicts on the runs of a section."""
        failed = [why for why in self.engine.verdicts if why]
        if self.engine.verdicts:
            self.figures.same(section, "verdicts: pass", len(self.engine.verdicts) - len(failed), len(self.engine.verdicts), failed[0] if failed else "")
        self.engine.verdicts = []

    def clear(self):
        if not self.keep:
            self.engine.clear()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("devmap")
    parser.add_argument("--root", default=".")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--models", default="")
    parser.add_argument("--families", default="")
    parser.add_argument("--keep", default="", help="a folder that is left, with every file")
    args = parser.parse_args()
    only = [name for name in args.only.split(",") if name] or list(SECTIONS)
    unknown = [name for name in only if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}: there are {', '.join(SECTIONS)}")
    with temporary() as folder:
        bench = Bench(args, Engine(args.devmap, args.keep or folder))
        print(f"seed {args.seed}; {models.versions()}, CPU", flush=True)
        bench.figures.head()
        for name in only:
            SECTIONS[name](bench)
            bench.judged(name)
        sys.exit(bench.figures.tail(args.seed))


if __name__ == "__main__":
    main()
