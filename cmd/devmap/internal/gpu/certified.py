"""What stands in the certificate of a run: its numbers, beside what it says of them."""

import os

from lines import documents


class Certificate:
    """What a certificate has seen, beside what it says of that."""

    def __init__(self, run, certificate):
        self.run, self.document = run, certificate
        self.cycles = [unload for unload in certificate["cycles"] if unload["plan"]]
        last = {unload["cycle"]: unload for unload in self.cycles}
        self.ends = [last[cycle] for cycle in sorted(last) if cycle > 1]

    def lost(self, figure, granule=2 << 20):
        """Granules that all cycles behind the first lose together by a figure, each judged by itself."""
        values = [unload["gpus"][0][figure] for unload in self.ends]
        sign = -1 if figure.endswith("free_bytes") else 1
        steps = [max(0, sign * (after - before)) // granule for before, after in zip(values, values[1:])]
        return sum(steps) + max(0, sign * (values[-1] - values[0])) // granule

    def held(self):
        """Unloads behind which the ledger has what it should not: where all was closed anything, where plans sleep anything
        else than behind the first cycle."""
        first = [unload for unload in self.cycles if unload["cycle"] == 1][-1]
        asleep = [unload for unload in self.cycles if unload["end"] == "asleep" and unload["cycle"] > 1]
        closed = [unload for unload in self.document["cycles"] if unload["end"] == "closed"]
        return sum(bool(unload["ledger"]) for unload in closed) + sum(unload["ledger"] != first["ledger"] for unload in asleep)

    def slowest(self):
        """Seconds until a GPU had what it had at the reference: the most of all; never is infinite."""
        seconds = [left["seconds"] for unload in self.cycles if unload["cycle"] > 1 for left in unload["gpus"]]
        return max(float("inf") if one is None else one for one in seconds)

    def check(self, name):
        return next((f"{check['name']} {check['verdict']}: {check['detail']}" for check in self.document["checks"] if check["name"] == name), "")


def certified(run):
    """The certificate that a run has left, and the reports before it."""
    found = documents(run.out) if os.path.exists(run.out) else []
    if not found or found[-1]["format_version"] != "devmap.certificate/v1":
        raise RuntimeError(f"exit status {run.process.returncode}, and no certificate: {run.said[-600:]}")
    return Certificate(run, found[-1]), found[:-1]
