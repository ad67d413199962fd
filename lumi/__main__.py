"""`python -m lumi`, and the `lumi` script."""

from __future__ import annotations

import sys

from lumi.cli.main import run


def main() -> None:
    """Run the command of `sys.argv` and exit with its status."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
