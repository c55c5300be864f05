//! Opens an index of the mapper: the result is an index with contigs or an error, whatever the bytes.
#![no_main]

use genuma_mapper::index::Index;
use libfuzzer_sys::fuzz_target;

/// Alignment in bytes that an index needs.
const ALIGNMENT: usize = 64;
const MAX_INDEX_BYTES: usize = 1 << 20;

// The first four bytes are the length of the index, the rest is its beginning; zeros follow.
fuzz_target!(|input: &[u8]| {
    let Some((length, begin)) = input.split_first_chunk::<4>() else { return };
    let length = (u32::from_le_bytes(*length) as usize).min(MAX_INDEX_BYTES);
    let mut memory = vec![0; length + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    let bytes = &mut memory[start..start + length];
    let known = begin.len().min(length);
    bytes[..known].copy_from_slice(&begin[..known]);
    let Ok(index) = Index::from_bytes(&*bytes) else { return };
    for contig in index.contigs() {
        assert!(contig.length > 0 && contig.packed_end() <= 4 * length as u64);
    }
    index.large_arrays_with_names();
});
