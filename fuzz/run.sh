#!/bin/sh
# Runs every fuzz target for the given number of seconds (60).
set -eu
cd "$(dirname "$0")"
for target in reader sealed block block_bytes dictionary json csv postings; do
    echo "== $target"
    cargo +nightly fuzz run "$target" -- -max_total_time="${1:-60}" -rss_limit_mb=4096 -timeout=30 -len_control=0 -max_len=2048 -print_final_stats=1
done
