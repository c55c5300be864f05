//! Making a dictionary stays within its memory.

mod common;

use common::{build, count_kmers, random_sequence};
use genuma_dictionary::{DictionarySpec, Error};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

#[test]
fn building_stays_within_its_memory() {
    // One string, and k-mers without neighbours.
    let scattered: Vec<Vec<u8>> = (0..300_000).map(|i| random_sequence(i, 31)).collect();
    for sequences in [vec![random_sequence(1, 2_000_000)], scattered] {
        let counts = count_kmers(&sequences, 31, 2);
        let num_kmers = counts.len() as u64;
        let spec = DictionarySpec { k: 31, num_kmers, num_samples: 2, note: Vec::new(), memory_bytes: 0 };
        let mut memory_bytes = spec.min_memory_bytes();
        let before = ALLOCATOR.current_usage() as u64;
        ALLOCATOR.reset_peak_usage();
        loop {
            match build(&counts, 31, memory_bytes) {
                Ok(dictionary) => break assert_eq!(dictionary.len(), num_kmers),
                Err(Error::MemoryLimit { needed_bytes, .. }) => memory_bytes = needed_bytes + (1 << 20),
                Err(other) => panic!("{other}"),
            }
        }
        let peak = ALLOCATOR.peak_usage() as u64 - before;
        assert!(peak <= memory_bytes, "{peak} of {memory_bytes} bytes for {num_kmers} k-mers");
    }
}
