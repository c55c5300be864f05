//! Memory that building an index needs. The peak is that of a whole process, so this test has its own process.

use std::fs;

use genuma_align::engine::minibwa::{build_index, index_memory};
use genuma_work::cost::process_cost;

#[test]
fn the_memory_of_a_build_is_foretold() {
    const BASES: u64 = 20_000_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("genome.fa");
    let mut state = 1u64;
    let bases = (0..BASES).map(|_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        b"ACGT"[(state >> 62) as usize]
    });
    fs::write(&path, b">one\n".iter().copied().chain(bases).collect::<Vec<u8>>()).unwrap();
    build_index(&path, &path, 1).unwrap();
    let (peak, foretold) = (process_cost().peak_bytes, index_memory(BASES));
    assert!(peak <= foretold && foretold < peak + peak / 2, "{peak} bytes, {foretold} foretold");
    // Suffixes of more than 2^31 bases need 64-bit numbers.
    assert!(index_memory(1_073_000_000) < 12_000_000_000);
    assert!(index_memory(1_074_000_000) > 20_000_000_000);
    assert!((58_000_000_000..60_000_000_000).contains(&index_memory(3_100_000_000)));
}
