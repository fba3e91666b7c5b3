"""The table: every figure beside its bar."""

import contextlib
import time

WIDTHS = (10, 58, 12, 10)


class Figures:
    """Figures as they come; a figure over its bar, or none at all, is a miss."""

    def __init__(self):
        self.count, self.missed, self.begun = 0, [], time.monotonic()
        self.rows = []  # section, case, figure, bar, how much of its bar it takes (None without one), note

    def head(self):
        self._print("section", "case", "figure", "bar", "")

    def within(self, section, case, figure, bar, note=""):
        """A figure that is to be no larger than its bar; NaN never is."""
        self._judge(section, case, f"{figure:.3g}", f"{bar:.3g}", figure <= bar, note, figure / bar if bar else None)

    def reaching(self, section, case, figure, bar, note=""):
        """A figure that is to be no smaller than its bar; NaN never is."""
        self._judge(section, case, f"{figure:.3g}", f"≥ {bar:.3g}", figure >= bar, note, bar / figure if figure else None)

    def same(self, section, case, equal, of, note=""):
        """How many of a number of things are equal: all are to be."""
        self._judge(section, case, f"{equal}/{of}", f"{of}/{of}", equal == of and of > 0, note)

    def told(self, section, case, figure, note=""):
        """A figure without a bar."""
        self.rows.append((section, case, figure, "-", None, note))
        self._print(section, case, figure, "-", note)

    def take(self, rows):
        """Rows of figures that another process printed."""
        self.rows += map(tuple, rows)
        judged = [row for row in rows if row[3] != "-"]
        self.count += len(judged)
        self.missed += [f"{section}: {case}: {figure}, bar {bar.removesuffix(' MISSED')}" for section, case, figure, bar, _, _ in judged if bar.endswith("MISSED")]

    @contextlib.contextmanager
    def attempt(self, section, case):
        """What raises is a miss that says why; the other figures are worked out all the same."""
        try:
            yield
        except Exception as err:  # noqa: BLE001 (whatever it is, the figure is not there)
            said = str(err).strip().splitlines() or [""]
            self._judge(section, case, "none", "-", False, f"{type(err).__name__}: " + " | ".join(said[-3:]))

    def _judge(self, section, case, figure, bar, kept, note, share=None):
        self.count += 1
        self.rows.append((section, case, figure, bar if kept else bar + " MISSED", share, note))
        if not kept:
            self.missed.append(f"{section}: {case}: {figure}, bar {bar}")
        self._print(section, case, figure, bar, ("ok" if kept else "MISSED") + (f"  {note}" if note else ""))

    def _print(self, *columns):
        fields = [f"{text:<{width}}" for text, width in zip(columns, WIDTHS)]
        print("  ".join([*fields, *columns[len(WIDTHS):]]).rstrip(), flush=True)

    def tail(self, seed):
        for line in self.missed:
            print("missed:", line)
        print(f"{self.count} figures, {len(self.missed)} missed; seed {seed}; {time.monotonic() - self.begun:.0f} s", flush=True)
        return 1 if self.missed or not self.count else 0
