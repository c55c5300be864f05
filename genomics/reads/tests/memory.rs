//! The memory of a read stream does not depend on the number of reads.

mod common;

use common::{Folder, bgzf, fastq, gzip};
use genuma_reads::{BatchLimits, ReadBatch, ReadStream, StreamLane, StreamOptions};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Peak of allocated bytes while all reads are streamed.
fn peak(lane: &StreamLane, inflaters: usize) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let options =
        StreamOptions { inflate_threads: inflaters, ..StreamOptions::new(BatchLimits::with_bases_per_batch(300_000)) };
    let mut stream = ReadStream::open(std::slice::from_ref(lane), options).unwrap();
    let mut batch = ReadBatch::new();
    let mut reads = 0;
    while stream.fill_batch(&mut batch).unwrap() {
        reads += batch.len();
    }
    assert!(reads > 0);
    drop((stream, batch));
    ALLOCATOR.peak_usage() - before
}

#[test]
fn memory_does_not_grow_with_the_number_of_reads() {
    type Pack = fn(&[u8]) -> Vec<u8>;
    let packs: [(&str, Pack, usize); 4] =
        [("plain", <[u8]>::to_vec, 1), ("gzip", gzip, 1), ("bgzf", bgzf, 1), ("bgzf", bgzf, 8)];
    let folder = Folder::new();
    for (name, pack, inflaters) in packs {
        let [few, many] = [20_000, 100_000].map(|reads| {
            let [one, two] = [1, 2].map(|mate| folder.write(&format!("{mate}"), pack(&fastq(0, reads, mate))));
            peak(&StreamLane::Pair(one, two), inflaters)
        });
        // Vectors grow by doubling, at different times.
        assert!(many < few + few / 4, "{name}: {few} bytes for few reads, {many} for many");
        assert!(many < 24 << 20, "{name}: {many} bytes");
    }
}
