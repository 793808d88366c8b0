"""Run every benchmark, each in a process of its own: ``python benchmarks [NAME...]``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(names: list[str]) -> int:
    """Run the named benchmarks (``import``, ``ssdr``, ...), all by default; return the number that failed."""
    scripts = sorted(HERE.glob("bench_*.py"))
    known = {script.stem.removeprefix("bench_"): script for script in scripts}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = 0
    for name in names or known:
        print(f"\n=== {name}", flush=True)
        failed += subprocess.run([sys.executable, known[name]], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
