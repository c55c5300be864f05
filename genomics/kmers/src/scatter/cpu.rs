//! Scatter on the CPU: one read at a time, so that its packed bases stay in the cache.

use genuma_machine::simd_and_prefetch::SimdLevel;
use genuma_reads::packed_bases::CodesAndPackedBases;

use super::{BinLayout, Scatter, ScatteredRecords};
use crate::Error;
use crate::bin_buffers::BinBuffers;
use crate::superkmer::{MAX_RECORD_BYTES, SuperKmer, SuperKmerCutter, record_bytes};

/// Scatters on the CPU with the instructions of one SIMD level.
#[derive(Debug)]
pub(super) struct CpuScatter {
    layout: BinLayout,
    cutter: SuperKmerCutter,
    /// Super-k-mers of the current read, with their bins.
    super_kmers: Vec<(usize, SuperKmer)>,
    /// Numbers of k-mers and bytes of the records of the current batch so far.
    written: ScatteredRecords,
}

impl CpuScatter {
    /// Creates a scatterer for the bins of `layout` that uses vector instructions of `level`.
    pub(super) fn new(layout: BinLayout, level: SimdLevel) -> Self {
        let cutter = SuperKmerCutter::for_kmer_length(layout.k, level);
        Self { layout, cutter, super_kmers: Vec::new(), written: ScatteredRecords::default() }
    }
}

impl Scatter for CpuScatter {
    fn scatter_read(
        &mut self,
        read: &CodesAndPackedBases,
        sample: u8,
        buffers: &mut BinBuffers<'_>,
    ) -> Result<(), Error> {
        let Self { layout, cutter, super_kmers, written } = self;
        // The bins of a read's super-k-mers are spread over more memory than a core's caches hold, so they are
        // prefetched first.
        super_kmers.clear();
        let mut kmers = 0;
        cutter.cut_into_super_kmers(read, |super_kmer| {
            kmers += super_kmer.kmers as u64;
            if let Some(bin) = layout.bin_of_minimizer(super_kmer.minimizer) {
                buffers.prefetch_buffer_of_bin(bin);
                super_kmers.push((bin, super_kmer));
            }
        });
        let packed = read.packed_bases();
        let mut all = 0;
        for &(bin, super_kmer) in super_kmers.iter() {
            let bytes = record_bytes(super_kmer.kmers, layout.k);
            super_kmer.write_record(packed, layout.k, sample, buffers.reserve_space_for_record(bin, MAX_RECORD_BYTES)?);
            buffers.commit_record(bin, bytes, super_kmer.kmers);
            all += bytes as u64;
        }
        written.kmers += kmers;
        written.bytes += all;
        Ok(())
    }

    fn finish_batch(&mut self, _: u8, _: &mut BinBuffers<'_>) -> Result<ScatteredRecords, Error> {
        Ok(std::mem::take(&mut self.written))
    }
}
