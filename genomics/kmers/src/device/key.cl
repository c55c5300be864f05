// Keys of k-mers and their hashes, the same as in superkmer.rs and counter_table.rs.
//
// Build options (-D):
// - K: bases of a k-mer
// - SAMPLES: counters of a k-mer
// - CHUNK: maximum number of records of a work-group of `insert`
// - GROUP: work-items of a work-group
// - MARGIN: maximum number of probed slots of a k-mer; as many slots follow the table, so that nothing wraps around
// - STRETCH: slots of a work-group of `gather`
// - SLOTS: entries of a k-mer spectrum

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

// Key of an empty slot. It is no key of a k-mer, because a root of only T is not canonical.
#define FREE 0xffffffffffffffffUL

// Indices of the words of `state`, which the host reads.
#define OVERFLOWN 0
#define ROWS 1
#define DISTINCT 2
#define ROOTS 3

inline ulong reverse_complement(ulong kmer)
{
    ulong x = ~kmer;
    x = ((x >> 2) & 0x3333333333333333UL) | ((x & 0x3333333333333333UL) << 2);
    x = ((x >> 4) & 0x0f0f0f0f0f0f0f0fUL) | ((x & 0x0f0f0f0f0f0f0f0fUL) << 4);
    x = ((x >> 8) & 0x00ff00ff00ff00ffUL) | ((x & 0x00ff00ff00ff00ffUL) << 8);
    x = ((x >> 16) & 0x0000ffff0000ffffUL) | ((x & 0x0000ffff0000ffffUL) << 16);
    return ((x >> 32) | (x << 32)) >> (64 - 2 * K);
}

// root << 4 | first << 2 | last, for one strand.
inline ulong strand_key(ulong kmer)
{
    const ulong root_mask = ~0UL >> (64 - 2 * (K - 2));
    return (((kmer >> 2) & root_mask) << 4) | ((kmer >> (2 * K - 2)) << 2) | (kmer & 3);
}

inline ulong key_of(ulong kmer)
{
    return min(strand_key(kmer), strand_key(reverse_complement(kmer)));
}

inline ulong hash_of(ulong key)
{
    ulong x = (key >> 4) * 0x9e3779b97f4a7c15UL;
    return (x ^ (x >> 32)) * 0xd6e8feb86659fd93UL;
}

// Slot at which the search for a k-mer starts; it is the same for all k-mers of a root.
inline uint home_of(ulong hash, uint slots)
{
    return (uint)mul_hi(hash, (ulong)slots);
}
