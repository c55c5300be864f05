use genuma_reads::TUMOUR_SAMPLE;

use super::*;

struct Silent;

impl ProgressListener for Silent {
    fn unit_started(&self, _: &str, _: Option<Arc<ProgressCounters>>) {}
}

/// The merged result of two partitions, each with `novel` novel k-mers, of which `given` were output, and 10
/// branching k-mers.
fn joined(novel: u64, given: u64) -> CountingResult {
    let folder = tempfile::tempdir().unwrap();
    let params = CountParams {
        k: 31,
        min_base_quality: 0,
        threads: 1,
        memory_bytes: 1 << 30,
        work_dir: folder.path().into(),
        max_scratch_bytes: u64::MAX,
        partition: Partition::WHOLE_KMER_SPACE,
        devices: Default::default(),
    };
    let samples = SampleNames::default();
    let counting = CountingUnit {
        lanes: &[],
        samples: &samples,
        params,
        min_tumour_count: 2,
        assay: None,
        genome_bases: Some(1_000_000),
        reference: None,
        screen: None,
        targets: None,
        progress: &Silent,
    };
    let result = |first: u64| {
        let candidate = |kmer, depth| CandidateKmer {
            kmer,
            tumour_count: 9,
            root_depth: depth,
            selector: TUMOUR_SAMPLE,
            ..CandidateKmer::default()
        };
        let candidates =
            (0..given).map(|i| candidate(first + i, 0)).chain((0..10).map(|i| candidate(first + 1000 + i, 20)));
        let read =
            InputTotalsBySample { bases: vec![9; 2], kmers: vec![9; 2], stats: TrimAndLibraryStats::zero_stats(2) };
        let mut spectrum = vec![0; 1024];
        spectrum[20] = 1_000_000;
        let (spectra, candidates) = (vec![spectrum.clone(), spectrum], candidates.collect());
        PartitionCountResult {
            partition: Partition::WHOLE_KMER_SPACE,
            candidates,
            spectra,
            genotype_mismatches: vec![0],
            tumour_alleles: vec![TumourAlleles::default()],
            novel_candidates: novel,
            reference_kmers: 0,
            spill_peak_bytes: 0,
            marker_tally: None,
            target_tally: None,
            pair_evidence: Vec::new(),
            library_models: Vec::new(),
            totals: read,
        }
    };
    let merged = merge_all_partitions(vec![result(5000), result(0)]).unwrap();
    counting.build_counting_result(merged, 2, PackedReadsOutcome::ScratchTooSmall(0))
}

#[test]
fn too_many_unknown_kmers_are_left_out_all_of_them_and_told() {
    let lines = |counts: &CountingResult| counts.ledger.lines.iter().filter(|l| l.stage == "select").count();
    let few = joined(100, 100);
    assert_eq!((few.candidates.len(), lines(&few)), (220, 0));
    assert!(few.candidates.is_sorted());
    // Neither partition exceeds the limit, both together do.
    let many = joined(MAX_NOVEL_CANDIDATES / 2 + 1, 100);
    assert_eq!((many.candidates.len(), lines(&many)), (20, 1));
    let line = many.ledger.lines.iter().find(|l| l.stage == "select").unwrap();
    assert!(line.skipped && line.count == MAX_NOVEL_CANDIDATES + 2);
}
