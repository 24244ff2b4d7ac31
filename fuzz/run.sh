#!/bin/sh
# Runs every fuzz target for the given number of seconds (60).
set -eu
cd "$(dirname "$0")"
for target in reader sealed block block_bytes dictionary json csv parquet postings; do
    echo "== $target"
    # Threads that read a pipe are not waited for, and one that is about to end looks like a leak.
    # Files that every version reads are where changes begin; of random bytes none is a file.
    seeds="" most=2048
    if [ "$target" = reader ]; then
        seeds="../crates/plinth-format/tests/files/1" most=350000
    fi
    mkdir -p "corpus/$target"
    # shellcheck disable=SC2086
    cargo +nightly fuzz run "$target" "corpus/$target" $seeds -- -detect_leaks=0 -max_total_time="${1:-60}" -rss_limit_mb=4096 -timeout=30 -len_control=0 -max_len=$most -print_final_stats=1
done
