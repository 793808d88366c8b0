"""``python -m gaussianimate``: the command line."""

import sys

from .core.cli import main

if __name__ == "__main__":
    sys.exit(main())
