// How fast a device changes words at random places: what counting in a hash table comes down to.
//
// No local memory: each item goes its own way through the table, as k-mers do.

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

__kernel void scattered(volatile __global ulong *table, uint bits, uint steps)
{
    ulong state = (get_global_id(0) + 1) * 0x9e3779b97f4a7c15UL;
    for (uint i = 0; i < steps; ++i) {
        state ^= state >> 29;
        state *= 0xbf58476d1ce4e5b9UL;
        atom_add(&table[(state ^ (state >> 32)) >> (64 - bits)], 1UL);
    }
}
