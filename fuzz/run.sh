#!/bin/sh
# Runs every fuzz target for the given number of seconds (60).
set -eu
cd "$(dirname "$0")"
for target in reader sealed block block_bytes dictionary json csv parquet postings; do
    echo "== $target"
    # Threads that read a pipe are not waited for, and one that is about to end looks like a leak.
    cargo +nightly fuzz run "$target" -- -detect_leaks=0 -max_total_time="${1:-60}" -rss_limit_mb=4096 -timeout=30 -len_control=0 -max_len=2048 -print_final_stats=1
done
