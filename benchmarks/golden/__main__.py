"""The command; see ``benchmarks.golden.record``.

    python -m benchmarks.golden [--only PREFIX]     compare, exit status 1 if anything differs
    python -m benchmarks.golden --record            write the record anew

Explain each difference in ``CHANGES.md`` before the record is written anew.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.golden.record import RECORD, differences, read_record, run, write_record
from benchmarks.golden.requests import all_requests

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Compare answers with the golden record.")
    parser.add_argument("--record", action="store_true", help="write the record anew")
    parser.add_argument("--only", default="", help="requests whose name starts with this")
    parser.add_argument("--show", type=int, default=12, help="differences to print")
    options = parser.parse_args(arguments)
    asked = [item for item in all_requests() if item.name.startswith(options.only)]
    begin = time.process_time()
    found = run(asked)
    spent = time.process_time() - begin
    if options.record:
        known = read_record() if options.only and RECORD.exists() else {}
        write_record(known | found)
        print(f"{len(found)} requests recorded, {RECORD.stat().st_size:,} bytes, {spent:.0f} s CPU")
        return 0
    known = {name: line for name, line in read_record().items() if name.startswith(options.only)}
    changed = differences(known, found)
    for name in list(changed)[: options.show]:
        print(f"{name}")
        for line in changed[name][: options.show]:
            print(f"  {line}")
    print(f"{len(changed)} of {len(known)} requests differ, {spent:.0f} s CPU")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
