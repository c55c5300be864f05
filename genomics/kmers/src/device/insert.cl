// Inserts the k-mers of super-k-mer records into a hash table with linear probing, like counter_table.rs; the position depends on the root.
//
// A work-group processes a chunk of up to CHUNK records. Its local memory (1.4 KiB) contains
// - the bytes of the chunk (at most CHUNK * 17), because records have variable length and are read byte by byte, which is slow in global memory;
// - the start of each record, and the number of k-mers before it. One work-item scans the records; then all work-items process k-mers in turn,
//   independent of record limits, so that none waits for a long record.
//
// A k-mer costs one atomic compare-and-exchange if it is new, and one atomic increment.

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void insert(__global const uchar *records, __global const uint *starts, volatile __global ulong *keys,
            volatile __global uint *counts, uint slots, uint class_bits, ulong class_id, volatile __global uint *state)
{
    __local uchar text[CHUNK * 17 + 16];
    __local ushort record[CHUNK];
    __local ushort before[CHUNK + 1];
    __local uint found;
    __local uint full;

    const uint item = get_local_id(0);
    const uint first = starts[get_group_id(0)];
    const uint bytes = starts[get_group_id(0) + 1] - first;

    for (uint i = item; i < bytes; i += GROUP)
        text[i] = records[first + i];
    // Bytes after the last record are shifted out again, but must be initialised.
    if (item < 16)
        text[bytes + item] = 0;
    if (item == 0)
        full = state[OVERFLOWN];
    barrier(CLK_LOCAL_MEM_FENCE);
    // The table has overflowed: the host will count the bin again.
    if (full)
        return;

    if (item == 0) {
        uint n = 0, kmers = 0;
        for (uint at = 0; at < bytes; ++n) {
            const uint of_this = (text[at] & 31) + 1;
            record[n] = (ushort)at;
            before[n] = (ushort)kmers;
            kmers += of_this;
            at += 1 + (of_this + K - 1 + 3) / 4;
        }
        before[n] = (ushort)kmers;
        found = n;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint n = found, kmers = before[n];
    for (uint i = item; i < kmers; i += GROUP) {
        // Binary search for the record that contains k-mer i.
        uint low = 0, high = n;
        while (high - low > 1) {
            const uint middle = (low + high) / 2;
            if (before[middle] <= i)
                low = middle;
            else
                high = middle;
        }
        const uint base = i - before[low];
        __local const uchar *at = text + record[low] + 1 + base / 4;
        ulong word = 0;
        for (uint byte = 0; byte < 8; ++byte)
            word = (word << 8) | at[byte];
        const uint shift = 2 * (base & 3);
        word = (word << shift) | ((uint)at[8] >> (8 - shift));
        const ulong key = key_of(word >> (64 - 2 * K));
        const ulong hash = hash_of(key);
        if (class_bits && ((hash ^ class_id) << (64 - class_bits)))
            continue;

        const uint sample = text[record[low]] >> 5;
        const uint home = home_of(hash, slots);
        uint step = 0;
        for (; step < MARGIN; ++step) {
            // OpenCL 1.2 has no atomic load. A device with 64-bit atomics reads an aligned 64-bit word as a whole.
            ulong there = keys[home + step];
            if (there == FREE)
                there = atom_cmpxchg(&keys[home + step], FREE, key);
            if (there == FREE || there == key) {
                atomic_inc(&counts[(ulong)(home + step) * SAMPLES + sample]);
                break;
            }
        }
        if (step == MARGIN)
            state[OVERFLOWN] = 1;
    }
}
