// A table of counters -> spectra, numbers of k-mers and roots, and rows: those k-mers that the host wants, the k-mers of a root side by side.
//
// A work-group goes over STRETCH slots, an item a slot at a time. Local memory holds
// - the lower LOW slots of each spectrum, which nearly all k-mers are in, so that few are added up in global memory: LOW * SAMPLES words, 4 KiB at
//   most;
// - how many rows the group's slots have, so that it asks for their places once.
// In which order rows come depends on which group asks first. Nobody minds: picks and k-mers are sorted afterwards.

#define LOW 128

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void gather(__global const ulong *keys, __global const uint *counts, uint slots, uint whole_roots, ulong least,
            volatile __global uint *state, volatile __global uint *spectra, __global ulong *row_keys,
            __global uint *row_counts)
{
    __local uint lower[LOW * SAMPLES];
    __local uint rows, base, distinct, roots;

    const uint item = get_local_id(0);
    const uint all = slots + MARGIN;
    const uint start = get_group_id(0) * STRETCH;

    for (uint i = item; i < LOW * SAMPLES; i += GROUP)
        lower[i] = 0;
    if (item == 0)
        distinct = roots = rows = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (uint step = 0; step < STRETCH; step += GROUP) {
        const uint slot = start + step + item;
        const ulong key = slot < all ? keys[slot] : FREE;
        uint wanted = 0;
        if (key != FREE) {
            ulong sum = 0;
            for (uint sample = 0; sample < SAMPLES; ++sample) {
                const uint n = counts[(ulong)slot * SAMPLES + sample];
                sum += n;
                if (n < LOW)
                    atomic_inc(&lower[sample * LOW + n]);
                else
                    atomic_inc(&spectra[sample * SLOTS + min(n, (uint)SLOTS - 1)]);
            }
            atomic_inc(&distinct);

            // The first slot of a root's speaks for all of them. They lie between the root's place and the next free slot.
            bool speaks = true;
            for (uint other = home_of(hash_of(key), slots); other < slot; ++other)
                speaks &= (keys[other] >> 4) != (key >> 4);
            if (speaks)
                atomic_inc(&roots);
            if (!whole_roots) {
                wanted = sum >= least;
            } else if (speaks) {
                uint n = 1;
                for (uint other = slot + 1; other < all && keys[other] != FREE; ++other) {
                    if ((keys[other] >> 4) == (key >> 4)) {
                        ++n;
                        for (uint sample = 0; sample < SAMPLES; ++sample)
                            sum += counts[(ulong)other * SAMPLES + sample];
                    }
                }
                wanted = sum >= least ? n : 0;
            }
        }

        const uint offset = wanted ? atomic_add(&rows, wanted) : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0)
            base = rows ? atomic_add(&state[ROWS], rows) : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        uint row = base + offset;
        for (uint other = slot; wanted; ++other) {
            if ((keys[other] >> 4) == (key >> 4)) {
                row_keys[row] = keys[other];
                for (uint sample = 0; sample < SAMPLES; ++sample)
                    row_counts[(ulong)row * SAMPLES + sample] = counts[(ulong)other * SAMPLES + sample];
                ++row;
                --wanted;
            }
        }
        if (item == 0)
            rows = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    for (uint i = item; i < LOW * SAMPLES; i += GROUP) {
        if (lower[i])
            atomic_add(&spectra[i / LOW * SLOTS + i % LOW], lower[i]);
    }
    if (item == 0) {
        atomic_add(&state[DISTINCT], distinct);
        atomic_add(&state[ROOTS], roots);
    }
}
