"""The command line: `devmap`, and `python -m devmap`."""

from __future__ import annotations

import sys

from ._core.binary import replace


def main() -> int:
    return replace(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
