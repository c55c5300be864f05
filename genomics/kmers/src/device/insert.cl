// Super-k-mers -> keys -> counters in a table, as tally.rs has it: placed by the stem, looked for slot by slot.
//
// A work-group takes a chunk of CHUNK records. Local memory holds
// - the chunk's bytes (CHUNK * 17 at most): the records are as long as their first byte says, so they are read out of order, bytes at a time, which global
//   memory is slow at;
// - where each record starts, and how many k-mers there are before it: one item walks along the records, which is a step each, and then all items
//   take k-mers in turn, whatever record these are of, so that none waits for a long record of another.
// That is 1.4 KiB a group, which no device lacks.
//
// What is asked for of a k-mer is one atomic comparison where it is new and one atomic addition.

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
    // What is read beyond the last record is shifted out again, but has to be something.
    if (item < 16)
        text[bytes + item] = 0;
    if (item == 0)
        full = state[OVERFLOWN];
    barrier(CLK_LOCAL_MEM_FENCE);
    // All of it will be counted anew.
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
        // The last record with no more k-mers before it.
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
            // Not an atomic load, which OpenCL 1.2 has none of: a device with 64-bit atomics moves an aligned word of 64 bits whole.
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
