# Short names for what .ci/run does, and a few more. `just verify` never changes a file outside target/; `just fix` does.

# List the recipes.
default:
    @just --list

# Format, lints, protos, documentation, tests: what a change must pass.
verify:
    .ci/run format lint doc test
    @if command -v buf >/dev/null; then buf lint; else echo "buf is not installed: protos are compiled, not linted"; fi

# Everything that CI does, the examples included.
ci:
    .ci/run

# Mend what can be mended by itself.
fix:
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
    cargo fmt --all

# All tests.
test *ARGS:
    cargo test --workspace {{ARGS}}

# The main job, on data that comes with it.
demo *ARGS:
    cargo run --release -- demo {{ARGS}}

# A benchmark, by the name of its file in benches/src/bin.
bench NAME="bench-wordnet" *ARGS:
    cargo run --release -p antiphon-benches --bin {{NAME}} -- {{ARGS}}

# Licences, advisories and sources of everything linked; needs cargo-deny.
deny:
    cargo deny check
