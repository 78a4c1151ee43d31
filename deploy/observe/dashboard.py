#!/usr/bin/env python3
"""Prints the queries of a Grafana dashboard as recording rules, so that promtool can read them. dashboard.py FILE"""
import json
import sys

rules = [
    {"record": f"panel{panel['id']}:{target['refId']}", "expr": target["expr"].replace("$__rate_interval", "1m")}
    for panel in json.load(open(sys.argv[1]))["panels"]
    for target in panel["targets"]
]
json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, sys.stdout)
