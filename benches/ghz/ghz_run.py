"""Runs ghz with a configuration of methods/ and reads what it found. What the scripts beside this file share."""
import argparse
import json
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
GHZ = os.environ.get("GHZ", "ghz")


def arguments(doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1:7700", help="or dns:///NAME:7700, over whose addresses calls are spread")
    return parser


def run(method, host, *flags):
    """The answer of `ghz --format json`, without the list of calls. `flags` override the configuration."""
    command = [GHZ, "--config", f"methods/{method}.json", "--format", "json", *flags]
    if host.startswith("dns:"):
        command += ["--lb-strategy", "round_robin"]
    done = subprocess.run([*command, host], cwd=HERE, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    report = json.loads(done.stdout)
    report.pop("details", None)
    return report


def numbers(report):
    """Calls, failures, calls a second, and percentiles in milliseconds (absent where no call succeeded)."""
    percentiles = {entry["percentage"]: entry["latency"] / 1e6 for entry in report.get("latencyDistribution") or []}
    count = report["count"]
    return {
        "calls": count,
        "failed": count - report["statusCodeDistribution"].get("OK", 0),
        "per_second": round(report["rps"], 1),
        **{f"p{p}_ms": round(percentiles[p], 2) if p in percentiles else None for p in (50, 95, 99)},
    }


def errors(report):
    return ", ".join(f"{count} × {text}" for text, count in (report.get("errorDistribution") or {}).items())
