#!/usr/bin/env python3
"""Searches a cluster as a well-made client does: round robin over the coordinators, one retry of UNAVAILABLE. Needs grpcio.

    retrying.py --target ipv4:127.0.0.1:7700,127.0.0.1:7710 --requests made/SearchKeyword.json --seconds 60

Prints calls, failures by code, and the slowest; exit code 1 if any call failed after its retry. Against Kubernetes the target
is dns:///antiphon.NAMESPACE:7700, a headless service.
"""
import argparse
import collections
import json
import sys
import threading
import time

import grpc

SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [{
        "name": [{"service": "antiphon.v1.KeywordSearchService"}],
        "timeout": "10s",
        "retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
                        "retryableStatusCodes": ["UNAVAILABLE"]},
    }],
}


def field(number, payload):
    """A protobuf field of bytes; enough to write a SearchKeywordRequest without generated code."""
    length, out = len(payload), bytearray([number << 3 | 2])
    while length > 0x7F:
        out.append(length & 0x7F | 0x80)
        length >>= 7
    out.append(length)
    return bytes(out) + payload


def encode(request):
    options = field(1, request["options"]["collection"].encode()) + bytes([3 << 3, request["options"]["page_size"]])
    return field(1, request["text"].encode()) + field(6, options)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--target", default="ipv4:127.0.0.1:7700,127.0.0.1:7710")
    arguments.add_argument("--requests", required=True, help="what benches/ghz/make_data.py made for SearchKeyword")
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--callers", type=int, default=4)
    args = arguments.parse_args()
    requests = [encode(request) for request in json.load(open(args.requests))]
    # A list of addresses would be the :authority too, which is none that HTTP allows.
    authority = [("grpc.default_authority", "antiphon")] if "," in args.target else []
    channel = grpc.insecure_channel(args.target, options=[("grpc.service_config", json.dumps(SERVICE_CONFIG)), *authority])
    search = channel.unary_unary("/antiphon.v1.KeywordSearchService/SearchKeyword",
                                 request_serializer=lambda raw: raw, response_deserializer=lambda raw: raw)
    end = time.monotonic() + args.seconds
    codes, slowest, lock = collections.Counter(), [], threading.Lock()

    def call(first):
        turn = first
        while time.monotonic() < end:
            began = time.monotonic()
            try:
                search(requests[turn % len(requests)])
                code = "OK"
            except grpc.RpcError as error:
                code = error.code().name
                print(f"{time.strftime('%H:%M:%S')} {code}: {error.details()}", file=sys.stderr)
            took = time.monotonic() - began
            with lock:
                codes[code] += 1
                slowest.append(took)
                slowest.sort(reverse=True)
                del slowest[5:]
            turn += args.callers

    threads = [threading.Thread(target=call, args=[first]) for first in range(args.callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{sum(codes.values())} calls: {dict(codes)}; the slowest took {', '.join(f'{took * 1000:.0f}' for took in slowest)} ms")
    return 0 if set(codes) <= {"OK"} else 1


if __name__ == "__main__":
    sys.exit(main())
