#!/usr/bin/env python3
"""Searches and writes at steady rates for a long time, and tells by the minute whether anything changes.

    soak.py --minutes 60 [--host 127.0.0.1:7700] [--searches 50] [--writes 5] [--metrics http://127.0.0.1:7702/metrics]

Hybrid searches, upserts and deletions of the same keys, so that the collection `load` (README.md) stays of one size while
segments are sealed and merged. --metrics names pages of servers (as often as you like) whose memory is told as well. Exit
code 1 if a call failed, or if the p99 of searches in the last quarter is over twice that of the first.
"""
import re
import statistics
import sys
import threading
import time
import urllib.request

import ghz_run


def memory(addresses):
    """Anonymous memory of the servers, MiB."""
    found = []
    for address in addresses:
        with urllib.request.urlopen(address, timeout=10) as answer:
            one = re.search(r"^antiphon_memory_anonymous_bytes (\S+)", answer.read().decode(), re.M)
        found.append(f"{float(one[1]) / 2**20:.0f}" if one else "?")
    return "/".join(found)


def main():
    parser = ghz_run.arguments(__doc__)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--round", type=int, default=60, help="seconds of a line")
    parser.add_argument("--searches", type=int, default=50, help="a second")
    parser.add_argument("--writes", type=int, default=5, help="upserts a second, and as many deletions")
    parser.add_argument("--metrics", action="append", default=[])
    args = parser.parse_args()
    load = {"SearchHybrid": args.searches, "UpsertDocuments": args.writes, "DeleteDocuments": args.writes}
    failed, tails = 0, []
    print("| time | searches/s | p50 ms | p99 ms | writes/s | p99 ms | failed | memory MiB |\n|---|---|---|---|---|---|---|---|")
    for _ in range(max(1, round(args.minutes * 60 / args.round))):
        reports = {}

        def one(method, rate):
            reports[method] = ghz_run.run(method, args.host, "--rps", str(rate), "--async", "--duration", f"{args.round}s")

        threads = [threading.Thread(target=one, args=entry) for entry in load.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(reports) < len(load):
            sys.exit("ghz failed, see above")
        found = {method: ghz_run.numbers(report) for method, report in reports.items()}
        lost = sum(numbers["failed"] for numbers in found.values())
        failed += lost
        search, write = found["SearchHybrid"], found["UpsertDocuments"]
        tails.append(search["p99_ms"] or float("inf"))
        print(f"| {time.strftime('%H:%M:%S')} | {search['per_second']} | {search['p50_ms']} | {search['p99_ms']} | "
              f"{write['per_second']} | {write['p99_ms']} | {lost} | {memory(args.metrics)} |", flush=True)
        for method, report in reports.items():
            if ghz_run.errors(report):
                print(f"{method}: {ghz_run.errors(report)}", file=sys.stderr)
    quarter = max(1, len(tails) // 4)
    first, last = statistics.median(tails[:quarter]), statistics.median(tails[-quarter:])
    print(f"\n{failed} calls failed; p99 of searches: {first} ms in the first quarter, {last} ms in the last")
    sys.exit(1 if failed or last > 2 * first else 0)


if __name__ == "__main__":
    main()
