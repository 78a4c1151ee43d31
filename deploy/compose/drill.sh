#!/usr/bin/env bash
# Kills a node, then restarts every member in turn, under searches that may not fail. Wants the stack up, a collection `load` of
# two copies (benches/ghz/README.md), python3 with grpcio, and the antiphon binary on the PATH.
#
#   drill.sh kill            docker kill of node-1, start again after 20 s
#   drill.sh restart         node-0, node-1, node-2, coordinator-0, coordinator-1, one after the other
set -euo pipefail
cd "$(dirname "$0")"
compose=${COMPOSE:-docker compose}
requests=${REQUESTS:-../../benches/ghz/made/SearchKeyword.json}
say() { printf '%s %s\n' "$(date +%T)" "$*"; }

# Waits until status, asked of the other coordinator too, finds nothing wrong.
settled() {
    for _ in $(seq 120); do
        if antiphon status --address 127.0.0.1:7700 2>/dev/null | grep -q '^No problems' &&
            antiphon status --address 127.0.0.1:7710 2>/dev/null | grep -q '^No problems'; then return; fi
        sleep 1
    done
    say "still not well after two minutes:"
    antiphon status || true
    return 1
}

trap '[ -z "${searching:-}" ] || kill "$searching" 2>/dev/null || true' EXIT
search() { python3 retrying.py --requests "$requests" --seconds "$1" & searching=$!; }

case ${1:-} in
    kill)
        search 60
        sleep 10
        say "kill node-1" && $compose kill -s KILL node-1 >/dev/null 2>&1
        sleep 20
        say "start node-1" && $compose start node-1 >/dev/null 2>&1
        wait "$searching"
        settled && say "no problems"
        ;;
    restart)
        search "${SECONDS_OF_LOAD:-150}"
        for member in node-0 node-1 node-2 coordinator-0 coordinator-1; do
            sleep 5
            began=$SECONDS
            $compose stop "$member" >/dev/null 2>&1
            say "$member stopped within $((SECONDS - began)) s"
            $compose start "$member" >/dev/null 2>&1
            settled && say "$member is back, no problems, $((SECONDS - began)) s"
        done
        kill -0 "$searching" 2>/dev/null && say "the load outlasts the restarts, as it should"
        wait "$searching"
        ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
