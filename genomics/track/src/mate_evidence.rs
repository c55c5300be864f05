//! Collects, for one read pair, the evidence for each junction that the pair may come from.
//!
//! Anchor k-mers determine the position of a mate on the junction, without gaps. Only bases at which the alleles differ
//! are evidence for an allele. The bases around the change are compared too: a mate that agrees with neither allele is
//! not used.

use genuma_reads::{Mate, ReadPair, dna};
use genuma_somatic::kmer_lookup::{KmerHit, KmerLookupBuffers};

use crate::anchors::{AnchorKmerIndex, CoveredAllele};
use crate::pair_evidence::{JunctionPairEvidence, MAX_STORED_WRONG_BASES, MateStartsAndUmi, WrongBase};
use crate::tracked_junction::{ERROR_COUNTING_BASES_PER_SIDE, TrackedJunction};

/// Maximum number of bases beyond the change that are compared with the alleles, if the alleles differ in length.
const MAX_COMPARED_BASES: i32 = 48;
/// Number of bases that are compared on the kept side, the side of the change from which the mate was placed.
const COMPARED_KEPT_BASES: i32 = 32;
/// Maximum number of mismatches of a mate, not counting the one that is allowed for every [`BASES_PER_MISMATCH`]
/// compared bases.
const MAX_MISMATCHES: u32 = 3;
/// Number of compared bases for which one mismatch is allowed in addition to [`MAX_MISMATCHES`].
const BASES_PER_MISMATCH: u32 = 32;
/// Beyond a junction, at most one in this number of bases may differ from the supported allele. A read that is shifted
/// by slippage has more mismatches.
const BASES_PER_MISMATCH_BEYOND: u32 = 12;
/// On the kept side, the side of the change from which the mate was placed, at most one in this number of bases may
/// differ.
const BASES_PER_MISMATCH_KEPT: u32 = 8;
/// Minimum number of compared bases of good quality on each side of a junction.
const MIN_GOOD_BASES_PER_SIDE: u32 = 6;
/// Minimum number of bases that a mate must have on the kept side, the side of the change from which it was placed.
const MIN_KEPT_SIDE_BASES: i32 = 4;
/// Minimum log-odds at which a base or mate counts as evidence for an allele. Unit: hundredths of natural-log units.
pub(crate) const MIN_EVIDENCE_LOG_ODDS: i32 = 200;
/// Minimum log-odds of a molecule for an allele of a substitution, equal to that of one base of quality 26. Also the
/// minimum log-odds of a base that counts as equal to the reference. Unit: hundredths of natural-log units.
pub(crate) const MIN_MOLECULE_LOG_ODDS_SUBSTITUTION: i32 = 700;
/// Minimum log-odds of a molecule for an allele that differs in length, equal to that of two good bases. Unit:
/// hundredths of natural-log units.
pub(crate) const MIN_MOLECULE_LOG_ODDS_LENGTH_CHANGE: i32 = 1400;

/// Minimum Phred quality of a base that is compared with the alleles.
const MIN_BASE_QUALITY: u8 = 15;

/// For each Phred quality, the log-odds of a correct base: ln(P(correct) / P(one given wrong base)), in hundredths.
fn log_odds_by_quality() -> [i32; 64] {
    std::array::from_fn(|q| {
        let error = 10f64.powf(-(q as f64) / 10.0).clamp(1e-4, 0.7);
        (100.0 * ((1.0 - error) / (error / 3.0)).ln()).max(0.0) as i32
    })
}

/// A possible position of a mate on a junction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MatePlacement {
    junction: u32,
    /// Whether the mate has the orientation of the junction.
    is_forward: bool,
    /// Whether `start` is a position in the left frame; otherwise it is one in the right frame.
    is_left: bool,
    /// Position of the mate's first base in the frame.
    start: i32,
    /// The allele that the anchor k-mer of this placement covers.
    covered_allele: CoveredAllele,
}

/// Evidence of one mate for one junction.
#[derive(Debug, Clone, Copy)]
struct MateEvidence {
    junction: u32,
    is_forward: bool,
    log_odds: [i32; 2],
    reference_positions: u128,
    wrong_bases: [WrongBase; MAX_STORED_WRONG_BASES],
    /// Number of wrong bases. If it exceeds the length of `wrong_bases`, the mate is not used to count errors.
    num_wrong: usize,
}

/// Collects the evidence of read pairs in one thread. Its buffers are reused between pairs.
pub(crate) struct EvidenceCollector<'a> {
    anchors: &'a AnchorKmerIndex,
    junctions: &'a [TrackedJunction],
    weights: [i32; 64],
    lookup_scratch: KmerLookupBuffers,
    hits: Vec<KmerHit>,
    placements: Vec<MatePlacement>,
    mate_evidence: [Vec<MateEvidence>; 2],
    reverse_complement: Vec<u8>,
    qualities: Vec<u8>,
    /// Number of mates that fit neither allele of their junction.
    pub unassigned_mates: u64,
}

impl<'a> EvidenceCollector<'a> {
    /// Creates a collector of evidence for `junctions`.
    pub(crate) fn for_junctions(
        anchors: &'a AnchorKmerIndex,
        junctions: &'a [TrackedJunction],
    ) -> EvidenceCollector<'a> {
        EvidenceCollector {
            anchors,
            junctions,
            weights: log_odds_by_quality(),
            lookup_scratch: KmerLookupBuffers::default(),
            hits: Vec::new(),
            placements: Vec::new(),
            mate_evidence: Default::default(),
            reverse_complement: Vec::new(),
            qualities: Vec::new(),
            unassigned_mates: 0,
        }
    }

    /// Whether a mate of the pair contains an anchor k-mer.
    pub(crate) fn pair_has_anchor_kmer(&mut self, pair: &ReadPair<'_>) -> bool {
        self.hits.clear();
        pair.mates.iter().any(|mate| {
            self.anchors.lookup.find_kmers(mate.seq, &mut self.lookup_scratch, &mut self.hits);
            !self.hits.is_empty()
        })
    }

    /// Calls `each` with the evidence of a read pair for each junction on which a mate can be placed; junctions without
    /// evidence are skipped.
    pub(crate) fn collect_pair_evidence(
        &mut self,
        pair: &ReadPair<'_>,
        sample: u8,
        mut each: impl FnMut(JunctionPairEvidence),
    ) {
        for (i, mate) in pair.mates.iter().enumerate() {
            self.place_mate(mate.seq);
            self.mate_evidence[i].clear();
            self.collect_mate_evidence(i, *mate);
        }
        let starts = MateStartsAndUmi::pack_starts_of_pair(pair);
        let [one, two] = &self.mate_evidence;
        let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
        loop {
            let junction = match (one.peek(), two.peek()) {
                (Some(a), Some(b)) => a.junction.min(b.junction),
                (Some(a), None) => a.junction,
                (None, Some(b)) => b.junction,
                (None, None) => break,
            };
            let own = [one.next_if(|t| t.junction == junction), two.next_if(|t| t.junction == junction)];
            // A mate in a repeat may have two placements; the first is used.
            while one.next_if(|t| t.junction == junction).is_some() {}
            while two.next_if(|t| t.junction == junction).is_some() {}
            let seen = combine_mates(junction, sample, starts, own);
            if seen.log_odds != [0; 2] || seen.reference_positions != 0 || seen.is_contradictory {
                each(seen);
            }
        }
    }

    /// Finds all possible positions of a mate on junctions by its anchor k-mers.
    fn place_mate(&mut self, seq: &[u8]) {
        let k = self.anchors.lookup.k() as i32;
        self.hits.clear();
        self.placements.clear();
        self.anchors.lookup.find_kmers(seq, &mut self.lookup_scratch, &mut self.hits);
        for hit in &self.hits {
            for site in self.anchors.occurrences_of_kmer(hit.rank) {
                let along = hit.forward == site.is_forward_on_junction();
                let at = if along { hit.start as i32 } else { seq.len() as i32 - hit.start as i32 - k };
                for (is_left, there) in [(true, site.position_in_left_frame()), (false, site.position_in_right_frame())]
                {
                    self.placements.extend(there.map(|there| MatePlacement {
                        junction: site.junction_index(),
                        is_forward: along,
                        is_left,
                        start: i32::from(there) - at,
                        covered_allele: site.covered_allele(),
                    }));
                }
            }
        }
        self.placements.sort_unstable();
        self.placements.dedup();
    }

    /// Compares a mate with both alleles at each of its possible positions, and stores the evidence.
    fn collect_mate_evidence(&mut self, mate: usize, Mate { seq, qual }: Mate<'_>) {
        if self.placements.iter().any(|placement| !placement.is_forward) {
            self.reverse_complement.clear();
            self.reverse_complement.extend(seq.iter().rev().map(|&b| dna::complement(b)));
            self.qualities.clear();
            self.qualities.extend(qual.iter().rev());
        }
        for group in self.placements.chunk_by(|a, b| (a.junction, a.is_forward) == (b.junction, b.is_forward)) {
            let MatePlacement { junction: number, is_forward: along, .. } = group[0];
            let junction = &self.junctions[number as usize];
            let read = if along { (seq, qual) } else { (&self.reverse_complement[..], &self.qualities[..]) };
            let read = OrientedMate { seq: read.0, qual: read.1, weights: &self.weights };
            let mut evidence = MateEvidence {
                junction: number,
                is_forward: along,
                log_odds: [0; 2],
                reference_positions: 0,
                wrong_bases: Default::default(),
                num_wrong: 0,
            };
            // If another locus is similar, or the alleles differ in length, an anchor of the supported allele is
            // required.
            let lenient = junction.is_substitution() && self.anchors.is_unique[number as usize];
            let shows = |over: CoveredAllele| lenient || group.iter().any(|placement| placement.covered_allele == over);
            let mut best = [u32::MAX; 2];
            let mut strange = false;
            for placement in group {
                let frame = usize::from(!placement.is_left);
                let Some(comparison) = compare_with_alleles(junction, placement, &read) else { continue };
                if comparison.differing > MAX_MISMATCHES + comparison.compared / BASES_PER_MISMATCH {
                    strange = true;
                } else if comparison.differing < best[frame] {
                    best[frame] = comparison.differing;
                    let borne_out = shows(if comparison.log_odds > 0 {
                        CoveredAllele::Alternative
                    } else {
                        CoveredAllele::Reference
                    });
                    evidence.log_odds[frame] =
                        if borne_out && comparison.is_consistent { comparison.log_odds } else { 0 };
                    if placement.is_left && junction.is_substitution() {
                        record_flanking_bases(junction, placement.start, &read, &mut evidence);
                    }
                }
            }
            if best != [u32::MAX; 2] {
                self.mate_evidence[mate].push(evidence);
            } else {
                self.unassigned_mates += u64::from(strange);
            }
        }
    }
}

/// A mate in the orientation of the junction.
struct OrientedMate<'a> {
    seq: &'a [u8],
    qual: &'a [u8],
    weights: &'a [i32; 64],
}

impl OrientedMate<'_> {
    fn quality(&self, i: usize) -> u8 {
        self.qual[i].saturating_sub(33).min(63)
    }

    fn weight(&self, i: usize) -> i32 {
        self.weights[usize::from(self.quality(i))]
    }
}

/// Comparison of a mate with both alleles in one frame.
struct AlleleComparison {
    /// Log-odds for the changed allele over the reference allele, in hundredths of natural-log units.
    log_odds: i32,
    /// Number of bases that were compared because their quality is high enough.
    compared: u32,
    differing: u32,
    /// Whether the mate agrees, on both sides of the junction, with the allele that it supports.
    is_consistent: bool,
}

/// Compares a mate with both alleles in one frame of the junction; `None` if the mate does not cover the junction.
fn compare_with_alleles(
    junction: &TrackedJunction,
    placement: &MatePlacement,
    read: &OrientedMate<'_>,
) -> Option<AlleleComparison> {
    let (reference, cut) = if placement.is_left {
        junction.left_reference_and_junction_offset()?
    } else {
        junction.right_reference_and_junction_offset()?
    };
    let substitution = junction.is_substitution();
    let with = junction.side_bounds[usize::from(!placement.is_left)] as i32;
    let watched = ERROR_COUNTING_BASES_PER_SIDE as i32;
    let (from, to) = match (placement.is_left, substitution) {
        (true, true) => (-watched, watched),
        (true, false) => (-COMPARED_KEPT_BASES, MAX_COMPARED_BASES),
        (false, _) => (-MAX_COMPARED_BASES, COMPARED_KEPT_BASES),
    };
    let (first, last) = (placement.start, placement.start + read.seq.len() as i32);
    // The mate must begin on the kept side and continue beyond it.
    let reaches = match (placement.is_left, substitution) {
        (true, true) => first < to && last > from,
        (true, false) => first <= -MIN_KEPT_SIDE_BASES && last > 0,
        (false, _) => first < 0 && last >= MIN_KEPT_SIDE_BASES,
    };
    if !reaches {
        return None;
    }
    let (mut odds, mut compared, mut differing, mut sides) = (0, 0, [0u32; 2], [[0u32; 3]; 2]);
    for c in from.max(first)..to.min(last) {
        let i = (c - first) as usize;
        let base = read.seq[i];
        let at = |seq: &[u8], cut: i32| usize::try_from(cut + c).ok().and_then(|at| seq.get(at).copied());
        let (Some(new), Some(old)) = (at(&junction.alternative, with), at(reference, cut as i32)) else {
            continue;
        };
        // Low-quality bases are not used at all.
        if base == b'N' || read.quality(i) < MIN_BASE_QUALITY {
            continue;
        }
        if new != old {
            odds += read.weight(i) * (i32::from(base == new) - i32::from(base == old));
        }
        compared += 1;
        let differs = [u32::from(base != new), u32::from(base != old)];
        (0..2).for_each(|i| differing[i] += differs[i]);
        let side = &mut sides[usize::from(placement.is_left == (c >= 0))];
        (0..2).for_each(|i| side[i] += differs[i]);
        side[2] += 1;
    }
    let own = usize::from(odds < 0);
    let like = |[kept, beyond]: [[u32; 3]; 2]| {
        let enough = kept[2] >= MIN_GOOD_BASES_PER_SIDE && beyond[2] >= MIN_GOOD_BASES_PER_SIDE;
        enough && kept[own] <= kept[2] / BASES_PER_MISMATCH_KEPT && beyond[own] <= beyond[2] / BASES_PER_MISMATCH_BEYOND
    };
    let clean = substitution || like(sides);
    Some(AlleleComparison { log_odds: odds, compared, differing: differing[0].min(differing[1]), is_consistent: clean })
}

/// Records at which positions near a substitution the mate equals the reference, and at which it differs.
fn record_flanking_bases(junction: &TrackedJunction, start: i32, read: &OrientedMate<'_>, evidence: &mut MateEvidence) {
    let Some((reference, cut)) = junction.left_reference_and_junction_offset() else { return };
    (evidence.reference_positions, evidence.num_wrong) = (0, 0);
    let watched = ERROR_COUNTING_BASES_PER_SIDE as i32;
    for c in (-watched).max(start)..watched.min(start + read.seq.len() as i32) {
        let i = (c - start) as usize;
        let Some(&old) = usize::try_from(cut as i32 + c).ok().and_then(|at| reference.get(at)) else {
            continue;
        };
        let (base, weight, at) = (dna::encode_base(read.seq[i]), read.weight(i), (c + watched) as u8);
        if dna::encode_base(old) > 3 || base > 3 {
            continue;
        }
        if base == dna::encode_base(old) {
            evidence.reference_positions |= u128::from(weight >= MIN_MOLECULE_LOG_ODDS_SUBSTITUTION) << at;
        } else if weight >= MIN_EVIDENCE_LOG_ODDS {
            if let Some(wrong) = evidence.wrong_bases.get_mut(evidence.num_wrong) {
                *wrong = WrongBase { position: at, base, log_odds: weight as i16 };
            }
            evidence.num_wrong += 1;
        }
    }
}

/// Combines the evidence of both mates of a pair for one junction.
fn combine_mates(
    junction: u32,
    sample: u8,
    starts: MateStartsAndUmi,
    mates: [Option<&MateEvidence>; 2],
) -> JunctionPairEvidence {
    // Read 1 is oriented like the junction, or read 2 is oriented against it.
    let first_forward = mates[0].map_or_else(|| mates[1].is_some_and(|t| !t.is_forward), |t| t.is_forward);
    let mut seen = JunctionPairEvidence {
        junction,
        sample,
        starts,
        first_forward,
        log_odds: [0; 2],
        is_contradictory: false,
        reference_positions: 0,
        wrong_bases: Default::default(),
        num_wrong: 0,
    };
    let own = || mates.iter().flatten();
    for frame in 0..2 {
        let says = || own().map(|t| t.log_odds[frame]);
        seen.is_contradictory |=
            says().any(|o| o >= MIN_EVIDENCE_LOG_ODDS) && says().any(|o| o <= -MIN_EVIDENCE_LOG_ODDS);
        seen.log_odds[frame] = says().sum::<i32>().clamp(-30_000, 30_000) as i16;
    }
    if seen.is_contradictory {
        seen.log_odds = [0; 2];
    }
    if own().any(|t| t.num_wrong > MAX_STORED_WRONG_BASES) {
        return seen;
    }
    let wrong = |t: &MateEvidence| t.wrong_bases.into_iter().take(t.num_wrong);
    let mut all: Vec<WrongBase> = own().flat_map(|t| wrong(t)).collect();
    all.sort_unstable();
    seen.reference_positions = own().fold(0, |good, t| good | t.reference_positions);
    // Where the mates contradict each other, neither counts.
    for at in all.chunk_by(|a, b| a.position == b.position) {
        let one = at.iter().all(|w| w.base == at[0].base);
        if !one || seen.reference_positions >> at[0].position & 1 == 1 {
            seen.reference_positions &= !(1u128 << at[0].position);
        } else if let Some(junction) = seen.wrong_bases.get_mut(usize::from(seen.num_wrong)) {
            *junction = WrongBase { log_odds: at.iter().map(|w| w.log_odds).sum(), ..at[0] };
            seen.num_wrong += 1;
        } else {
            (seen.reference_positions, seen.num_wrong, seen.wrong_bases) = (0, 0, Default::default());
            return seen;
        }
    }
    seen
}
