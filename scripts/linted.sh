#!/bin/sh
# cargo with clippy in the compiler's place for the workspace's own crates. `cargo clippy` does the same, for `cargo check` alone: what is
# built by this has been linted on the way, and is compiled once instead of twice. Warnings are errors.
set -eu
clippy-driver --version >/dev/null 2>&1 || { echo "$0: clippy is needed: rustup component add clippy" >&2; exit 1; }
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings
exec "${CARGO:-cargo}" "$@"
