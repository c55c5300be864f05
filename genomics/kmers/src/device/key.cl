// Keys of k-mers and their hashes: the same as superkmer.rs and tally.rs have.
//
// Built with -D K (bases of a k-mer), SAMPLES (counters of a k-mer), CHUNK (records of a work-group), GROUP (items of a work-group), MARGIN (places
// that are looked at for a k-mer, and slots behind the table so that nothing wraps), STRETCH (slots of a work-group), SLOTS (of a spectrum).

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

// No k-mer's key: a stem of T only is never the smaller strand.
#define FREE 0xffffffffffffffffUL

// Words of the state that the host reads.
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

// stem << 4 | first << 2 | last, of one strand.
inline ulong strand_key(ulong kmer)
{
    const ulong stem = ~0UL >> (64 - 2 * (K - 2));
    return (((kmer >> 2) & stem) << 4) | ((kmer >> (2 * K - 2)) << 2) | (kmer & 3);
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

// Where a k-mer is looked for first: all k-mers of a root at one place.
inline uint home_of(ulong hash, uint slots)
{
    return (uint)mul_hi(hash, (ulong)slots);
}
