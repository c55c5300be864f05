// Reduces a counter table to spectra, numbers of k-mers and roots, and rows: the k-mers that the host requested, with those of a root in consecutive rows.
//
// A work-group processes STRETCH slots, one slot per work-item at a time. Its local memory contains
// - the lowest LOW entries of each spectrum, which count nearly all k-mers, so that few updates go to global memory: LOW * SAMPLES words, at most 4 KiB;
// - the number of rows of the group's slots, so that the group reserves row positions once per step.
// The order of the rows depends on the order in which groups reserve positions. It does not matter, as the host sorts the results.

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

            // The first slot of a root emits all its rows. The slots of a root are between its home slot and the next empty slot.
            bool is_first = true;
            for (uint other = home_of(hash_of(key), slots); other < slot; ++other)
                is_first &= (keys[other] >> 4) != (key >> 4);
            if (is_first)
                atomic_inc(&roots);
            if (!whole_roots) {
                wanted = sum >= least;
            } else if (is_first) {
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
