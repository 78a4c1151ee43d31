#!/usr/bin/env python3
"""Loads a server with ever more callers, then at rates, and writes sweep.csv, sweep.md and sweep.svg.

    sweep.py --out made/sweep [--host 127.0.0.1:7700] [--methods SearchKeyword,SearchHybrid] [--seconds 5]

Callers first (closed loop: each sends its next call when it has its answer), which finds the capacity: the most calls a second
that any number of callers got. Then rates that are shares of that capacity (open loop: calls are sent at the rate, answered or
not, so that a slow answer does not hide the wait of those behind it). Wants the collection `load` (README.md).
"""
import csv
import math
import pathlib
import sys

import ghz_run

COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"]
COLUMNS = ["method", "loop", "callers", "rate", "share", "calls", "failed", "per_second", "p50_ms", "p95_ms", "p99_ms"]


def sweep(method, args):
    """The rows of one method."""
    seconds = f"{args.seconds}s"
    for callers in args.callers:
        report = ghz_run.run(method, args.host, "--duration", seconds, "--concurrency", str(callers),
                             "--connections", str(min(callers, 4)))
        yield {"method": method, "loop": "closed", "callers": callers, **ghz_run.numbers(report)}, report
    capacity = args.capacity[method]
    for share in args.shares:
        rate = max(1, round(capacity * share))
        report = ghz_run.run(method, args.host, "--duration", seconds, "--rps", str(rate), "--async", "--connections", "4")
        yield {"method": method, "loop": "open", "rate": rate, "share": share, **ghz_run.numbers(report)}, report


def show(value):
    return "" if value is None else value


def table(rows, capacity):
    """Markdown: a part for each method, throughput as a share of its capacity."""
    for method, most in capacity.items():
        mine = [row for row in rows if row["method"] == method]
        single = next(row for row in mine if row["loop"] == "closed")
        yield f"\n{method}: capacity {most:.0f} calls/s; {single['callers']} caller: p50 {single['p50_ms']} ms\n\n"
        yield "| load | calls/s of capacity | failed | p50 ms | p95 ms | p99 ms |\n|---|---|---|---|---|---|\n"
        for row in mine:
            load = f"{row['callers']} caller{'s' * (row['callers'] > 1)}" if row["loop"] == "closed" else f"rate {row['share']:.2f}"
            yield (f"| {load} | {row['per_second'] / most:.2f} | {row['failed']} | {show(row['p50_ms'])} | {show(row['p95_ms'])} | "
                   f"{show(row['p99_ms'])} |\n")


class Panel:
    """Axes with logarithmic scales on a picture."""

    def __init__(self, left, title, across, up, points):
        self.left, self.top, self.width, self.height = left, 50, 400, 300
        self.title, self.across, self.up = title, across, up
        xs, ys = [x for x, _ in points], [y for _, y in points]
        self.low = (math.log10(min(xs)) - 0.05, math.log10(min(ys)) - 0.05)
        self.high = (math.log10(max(xs)) + 0.05, math.log10(max(ys)) + 0.05)

    def at(self, x, y):
        share = [(math.log10(value) - low) / (high - low) for value, low, high in zip((x, y), self.low, self.high)]
        return self.left + share[0] * self.width, self.top + (1 - share[1]) * self.height

    @staticmethod
    def ticks(low, high):
        steps = [digit * 10.0 ** power for power in range(math.floor(low), math.ceil(high) + 1) for digit in (1, 2, 5)]
        return [tick for tick in steps if low <= math.log10(tick) <= high]

    def axes(self):
        bottom = self.top + self.height
        yield f'<rect x="{self.left}" y="{self.top}" width="{self.width}" height="{self.height}" fill="none" stroke="#888"/>'
        yield f'<text x="{self.left + self.width / 2}" y="{self.top - 12}" text-anchor="middle" font-weight="bold">{self.title}</text>'
        yield f'<text x="{self.left + self.width / 2}" y="{bottom + 38}" text-anchor="middle">{self.across}</text>'
        middle = self.top + self.height / 2
        yield (f'<text x="{self.left - 44}" y="{middle}" text-anchor="middle" '
               f'transform="rotate(-90 {self.left - 44} {middle})">{self.up}</text>')
        for tick in self.ticks(self.low[0], self.high[0]):
            x, _ = self.at(tick, 10 ** self.low[1])
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.top}" y2="{bottom}" stroke="#ddd"/>'
            yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>'
        for tick in self.ticks(self.low[1], self.high[1]):
            _, y = self.at(10 ** self.low[0], tick)
            yield f'<line x1="{self.left}" x2="{self.left + self.width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            yield f'<text x="{self.left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'

    def line(self, points, colour, dashes=""):
        places = [self.at(x, y) for x, y in points]
        yield f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" stroke="{colour}" stroke-width="2" {dashes}/>'
        for x, y in places:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'


def plot(rows, capacity):
    """SVG: throughput over callers, and latency over the rate; p50 is solid, p99 dashed."""
    closed = [row for row in rows if row["loop"] == "closed"]
    opened = [row for row in rows if row["loop"] == "open" and row["p99_ms"]]
    panels = [Panel(70, "Throughput", "callers", "calls a second", [(row["callers"], row["per_second"]) for row in closed])]
    if opened:
        bounds = [(row["share"], row[name]) for row in opened for name in ("p50_ms", "p99_ms")]
        panels.append(Panel(560, "Latency at a rate: p50, p99 dashed", "rate as a share of the capacity", "ms", bounds))
    parts = [part for panel in panels for part in panel.axes()]
    for place, method in enumerate(capacity):
        colour = COLOURS[place % len(COLOURS)]
        parts += panels[0].line([(row["callers"], row["per_second"]) for row in closed if row["method"] == method], colour)
        mine = [row for row in opened if row["method"] == method]
        if mine:
            parts += panels[1].line([(row["share"], row["p50_ms"]) for row in mine], colour)
            parts += panels[1].line([(row["share"], row["p99_ms"]) for row in mine], colour, 'stroke-dasharray="5 4"')
        x, y = 70 + place % 4 * 230, 412 + place // 4 * 20
        parts.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="{y}">{method}</text>')
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="450" font-family="sans-serif" font-size="12">'
            '<rect width="1000" height="450" fill="white"/>' + "\n".join(parts) + "</svg>\n")


def main():
    parser = ghz_run.arguments(__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder, made where it is absent")
    parser.add_argument("--methods", default="SearchVector,SearchVectorFiltered,SearchKeyword,SearchHybrid,SearchHybridFused,UpsertDocuments")
    parser.add_argument("--callers", default="1,2,4,8,16,32")
    parser.add_argument("--shares", default="0.25,0.5,0.75,0.9", help="rates, as shares of the capacity; above 1 queues grow")
    parser.add_argument("--seconds", type=int, default=5, help="of each step")
    args = parser.parse_args()
    args.callers = [int(callers) for callers in args.callers.split(",")]
    args.shares = [float(share) for share in args.shares.split(",") if share]
    args.capacity, rows = {}, []
    for method in args.methods.split(","):
        ghz_run.run(method, args.host, "--duration", "1s")  # warms up
        args.capacity[method] = 0.0
        for row, report in sweep(method, args):
            rows.append(row)
            if row["loop"] == "closed":
                args.capacity[method] = max(args.capacity[method], row["per_second"])
            print({name: value for name, value in row.items() if value is not None}, ghz_run.errors(report), file=sys.stderr, flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    with open(args.out / "sweep.csv", "w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    markdown = "".join(table(rows, args.capacity))
    (args.out / "sweep.md").write_text(markdown)
    (args.out / "sweep.svg").write_text(plot(rows, args.capacity))
    print(markdown)


if __name__ == "__main__":
    main()
