#!/usr/bin/env python3
"""Calls every method once through its configuration in methods/, some seconds each, and says how each ended.

    all.py [--host 127.0.0.1:7700] [--duration 2s] [--without SearchText,SearchHybridText]

Wants the collection `load` (README.md). SearchText and SearchHybridText are served only where an embedder is set; ghz fails
where a method is not there, so leave them out then. Exit code 1 if any call failed.
"""
import json
import sys

import ghz_run

# What is made is used, then deleted.
ORDER = [
    "DescribeCluster", "CreateCollection", "ListCollections", "GetCollection", "UpdateCollection",
    "UpsertDocuments", "ImportDocuments", "GetDocuments", "CountDocuments",
    "SearchVector", "SearchVectorFiltered", "SearchKeyword", "SearchHybrid", "SearchHybridFused", "SearchText", "SearchHybridText",
    "ExportDocuments", "SetAlias", "ListAliases", "DeleteAlias", "DeleteDocuments", "DeleteCollection",
]


def main():
    parser = ghz_run.arguments(__doc__)
    parser.add_argument("--duration", default="2s")
    parser.add_argument("--without", default="", help="methods left out, with commas")
    args = parser.parse_args()
    left_out = set(filter(None, args.without.split(",")))
    here = {path.stem for path in (ghz_run.HERE / "methods").glob("*.json")}
    if here != set(ORDER) or left_out - here:
        sys.exit(f"names that do not belong together: {sorted((here ^ set(ORDER)) | (left_out - here))}")
    failed = 0
    print("| method | calls | failed | calls/s | p50 ms | p99 ms |\n|---|---|---|---|---|---|")
    for method in ORDER:
        if method in left_out:
            print(f"| {method} | left out |||||")
            continue
        counted = "total" in json.loads((ghz_run.HERE / "methods" / f"{method}.json").read_text())
        report = ghz_run.run(method, args.host, *([] if counted else ["--duration", args.duration]))
        found = ghz_run.numbers(report)
        failed += found["failed"]
        print(f"| {method} | {found['calls']} | {found['failed']} | {found['per_second']} | {found['p50_ms']} | {found['p99_ms']} |", flush=True)
        if found["failed"]:
            print(f"{method}: {ghz_run.errors(report)}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
