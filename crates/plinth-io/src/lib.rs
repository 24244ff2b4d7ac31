//! Bytes to and from devices: positioned reads, atomic files, the memory budget.
