//! Selects anchor k-mers: k-mers by which reads are assigned to a tracked junction.
//!
//! Anchors of the reference allele and of the flanks occur exactly once in the reference. Anchors of the changed allele
//! do not occur in the reference, and the k-mer of the reference at the same flank occurs exactly once. So a read of
//! another locus with a sequencing error is not assigned to the junction, and both alleles are found with the same
//! probability. Every k-mer that covers the change is used, but only one in four in the flanks and within long inserted
//! sequence. Unknown variants near the change therefore do not prevent that a molecule is found.

use std::collections::HashSet;

use genuma_kmers::encode::kmers;
use genuma_somatic::kmer_lookup::KmerLookup;

use crate::error::Error;
use crate::tracked_junction::TrackedJunction;

/// Maximum distance in bases between the far end of an anchor k-mer and the change.
const MAX_ANCHOR_DISTANCE_BASES: usize = 120;
/// Distance in bases between consecutive anchor k-mers in the flanks of a change, and within long inserted sequence.
const FLANK_STRIDE: i32 = 4;
/// Minimum number of reference anchors for a junction to be trackable.
const MIN_REFERENCE_ANCHORS: usize = 3;

/// An anchor k-mer of a tracked junction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AnchorKmer {
    kmer: u64,
    /// Whether the canonical strand of the k-mer is the strand of the junction.
    forward: bool,
    /// Position of the k-mer in the left frame, whose position 0 is the first base after the left side; `None` if the
    /// k-mer does not place reads in that frame.
    left: Option<i16>,
    /// Position of the k-mer in the right frame, whose position 0 is the first base of the right side; `None` if the
    /// k-mer does not place reads in the right frame.
    right: Option<i16>,
    /// The allele that the k-mer covers.
    covered_allele: CoveredAllele,
    /// Another k-mer that must also occur exactly once in the reference; 0 if none is required.
    required_unique_kmer: u64,
}

/// Which allele of a junction an anchor k-mer covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CoveredAllele {
    /// The k-mer has only bases next to the change, which both alleles have.
    Flank,
    /// The k-mer is part of the reference allele.
    Reference,
    /// The k-mer is part of the changed allele; the reference does not contain it.
    Alternative,
}

/// Number of low bits of [`AnchorOccurrence::junction_and_flags`] that are flags.
const NUM_FLAG_BITS: u32 = 3;
/// Maximum number of junctions that an anchor k-mer index can have.
const MAX_JUNCTIONS: usize = 1 << (u32::BITS - NUM_FLAG_BITS);
/// Position of a k-mer that does not place reads in a frame.
const NO_POSITION: i16 = i16::MIN;

/// Position of an anchor k-mer on a junction, in 8 bytes: a junction has about a hundred of them. The same k-mer may
/// occur on several junctions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AnchorOccurrence {
    /// Index of the tracked junction; then two bits for the allele and one for the strand.
    junction_and_flags: u32,
    left: i16,
    right: i16,
}

impl AnchorOccurrence {
    fn of_anchor(anchor: &AnchorKmer, junction: u32) -> AnchorOccurrence {
        let flags = (anchor.covered_allele as u32) << 1 | u32::from(anchor.forward);
        AnchorOccurrence {
            junction_and_flags: junction << NUM_FLAG_BITS | flags,
            left: anchor.left.unwrap_or(NO_POSITION),
            right: anchor.right.unwrap_or(NO_POSITION),
        }
    }

    /// Index of the tracked junction.
    pub fn junction_index(self) -> u32 {
        self.junction_and_flags >> NUM_FLAG_BITS
    }

    /// Whether the canonical strand of the k-mer is the strand of the junction.
    pub fn is_forward_on_junction(self) -> bool {
        self.junction_and_flags & 1 == 1
    }

    /// Position of the k-mer in the left frame; `None` if it does not place reads there.
    pub fn position_in_left_frame(self) -> Option<i16> {
        Some(self.left).filter(|&at| at != NO_POSITION)
    }

    /// Position of the k-mer in the right frame; `None` if it does not place reads there.
    pub fn position_in_right_frame(self) -> Option<i16> {
        Some(self.right).filter(|&at| at != NO_POSITION)
    }

    /// The allele that the k-mer covers.
    pub fn covered_allele(self) -> CoveredAllele {
        match self.junction_and_flags >> 1 & 3 {
            0 => CoveredAllele::Flank,
            1 => CoveredAllele::Reference,
            _ => CoveredAllele::Alternative,
        }
    }
}

/// The anchor k-mers of all junctions, with their occurrences on the junctions.
#[derive(Debug)]
pub(crate) struct AnchorKmerIndex {
    /// Lookup of the rank of an anchor k-mer.
    pub lookup: KmerLookup,
    /// One occurrence of each anchor k-mer, by k-mer rank.
    first_occurrences: Vec<AnchorOccurrence>,
    /// Further occurrences of the few k-mers that have several, with their k-mer ranks, ascending.
    more_occurrences: Vec<(u32, AnchorOccurrence)>,
    /// For each junction, whether it has enough anchor k-mers and the reference has none of the k-mers of its changed
    /// allele, so that it can be distinguished from the rest of the genome.
    pub is_trackable: Vec<bool>,
    /// For each junction, whether all of its k-mers can be anchors, so that no other locus of the genome resembles it.
    pub is_unique: Vec<bool>,
}

/// All k-mers of a junction that may become anchors.
fn candidate_anchors(junction: &TrackedJunction, k: u32) -> Vec<AnchorKmer> {
    let size = k as usize;
    let mut all = Vec::new();
    if let Some(left) = junction.left_reference_and_junction_offset() {
        add_reference_anchors(junction, k, left, true, &mut all);
    }
    // If one read covers both sides, the left side's sequence includes all of them.
    if let (Some(right), None) = (junction.right_reference_and_junction_offset(), junction.deleted_len) {
        add_reference_anchors(junction, k, right, false, &mut all);
    }
    let [from, to] = junction.side_bounds.map(|cut| cut as i32);
    let kmer_at = |side: Option<(&[u8], usize)>, at: i32| {
        let (seq, cut) = side?;
        let start = usize::try_from(cut as i32 + at).ok()?;
        let kmer = kmers(seq.get(start..start + size)?, k).next()?.1;
        Some(kmer.canonical())
    };
    for (start, kmer) in kmers(&junction.alternative, k).filter(|(_, kmer)| kmer.forward != kmer.reverse) {
        let start = start as i32;
        let end = start + size as i32;
        // Within long inserted sequence one k-mer in four.
        let inside = start >= from && end <= to && start.rem_euclid(FLANK_STRIDE) != 0;
        if end <= from || start >= to.max(from) && !(from == to && start < from) || inside {
            continue;
        }
        let (before, behind) = ((from - start).max(0), (end - to).max(0));
        let required = if before >= behind {
            kmer_at(junction.left_reference_and_junction_offset(), start - from)
        } else {
            kmer_at(junction.right_reference_and_junction_offset(), start - to)
        };
        let inside = start >= from && end <= to;
        let required = if inside { Some(0) } else { required };
        let Some(required) = required else { continue };
        let substitution = junction.is_substitution();
        all.push(AnchorKmer {
            kmer: kmer.canonical(),
            forward: kmer.forward < kmer.reverse,
            left: junction.left_reference_and_junction_offset().map(|_| (start - from) as i16),
            right: junction
                .right_reference_and_junction_offset()
                .filter(|_| !substitution)
                .map(|_| (start - to) as i16),
            covered_allele: CoveredAllele::Alternative,
            required_unique_kmer: required,
        });
    }
    // Next to a repeat some k-mers across the change also occur in the reference's sequence of this junction: they
    // are not specific.
    let both = [junction.left_reference_and_junction_offset(), junction.right_reference_and_junction_offset()];
    let own: HashSet<u64> =
        both.into_iter().flatten().flat_map(|(seq, _)| kmers(seq, k)).map(|(_, kmer)| kmer.canonical()).collect();
    all.retain(|anchor| anchor.covered_allele != CoveredAllele::Alternative || !own.contains(&anchor.kmer));
    all
}

/// Adds the anchors in the reference sequence of one side of a junction; the second value of the side is the number of
/// bases before the junction.
fn add_reference_anchors(
    junction: &TrackedJunction,
    k: u32,
    (seq, cut): (&[u8], usize),
    is_left: bool,
    all: &mut Vec<AnchorKmer>,
) {
    let size = k as usize;
    let gap = junction.deleted_len.unwrap_or(0) as i32;
    let near = |at: i32, last: i32| {
        let touches = at <= gap && last >= 0;
        touches
            || (at.rem_euclid(FLANK_STRIDE) == 0
                && at >= -(MAX_ANCHOR_DISTANCE_BASES as i32)
                && last <= MAX_ANCHOR_DISTANCE_BASES as i32)
    };
    for (start, kmer) in kmers(seq, k).filter(|(_, kmer)| kmer.forward != kmer.reverse) {
        let at = start as i32 - cut as i32;
        if !near(at, at + size as i32) {
            continue;
        }
        let (left, right) = match (junction.deleted_len, is_left) {
            // Bases beyond the change belong to the other frame.
            (Some(gap), true) => {
                let (behind, substitution) = (at - gap as i32, junction.is_substitution());
                let left = (at < gap.max(1) as i32 || substitution).then_some(at);
                (left, (at + size as i32 > 0 && !substitution).then_some(behind))
            }
            (_, true) => (Some(at), None),
            (_, false) => (None, Some(at)),
        };
        let [left, right] = [left, right].map(|at| at.map(|at| at as i16));
        let lies = at < gap && at + size as i32 > 0;
        let over = if lies { CoveredAllele::Reference } else { CoveredAllele::Flank };
        let (kmer, forward) = (kmer.canonical(), kmer.forward < kmer.reverse);
        all.push(AnchorKmer { kmer, forward, left, right, covered_allele: over, required_unique_kmer: 0 });
    }
}

/// All distinct k-mers of the junctions whose occurrences in the reference must be counted, ascending.
pub(crate) fn list_kmers_to_count_in_reference(junctions: &[TrackedJunction], k: u32) -> Vec<u64> {
    let (mut all, mut of_junction): (Vec<u64>, Vec<u64>) = Default::default();
    for junction in junctions {
        of_junction.clear();
        let anchors = candidate_anchors(junction, k);
        of_junction.extend(anchors.iter().map(|a| a.kmer));
        of_junction.extend(anchors.iter().map(|a| a.required_unique_kmer).filter(|&kmer| kmer != 0));
        of_junction.sort_unstable();
        of_junction.dedup();
        all.extend_from_slice(&of_junction);
    }
    all.sort_unstable();
    all.dedup();
    all.shrink_to_fit();
    all
}

impl AnchorKmerIndex {
    /// Selects the anchor k-mers of all junctions. `counted` has the k-mers of [`list_kmers_to_count_in_reference`],
    /// and `copies` their numbers of occurrences in the reference, by k-mer rank.
    pub(crate) fn select_anchors(
        junctions: &[TrackedJunction],
        counted: KmerLookup,
        copies: &[u8],
    ) -> Result<AnchorKmerIndex, Error> {
        if junctions.len() > MAX_JUNCTIONS {
            let what = format!("more than {MAX_JUNCTIONS} junctions: split the VCF file");
            return Err(Error::NothingToTrack(what));
        }
        let k = counted.k();
        let mut occurrences = OccurrenceTable::for_kmers(counted.len());
        let (mut known, mut alone) = (Vec::with_capacity(junctions.len()), Vec::with_capacity(junctions.len()));
        for (number, junction) in (0..).zip(junctions) {
            let all = candidate_anchors(junction, k);
            // The k-mer of A only, whose number is 0, counts as absent.
            let rank = |kmer: u64| counted.rank_of_kmer(kmer).filter(|_| kmer != 0);
            let copies = |kmer: u64| rank(kmer).map_or(0, |rank| copies[rank as usize]);
            let fits = |a: &&AnchorKmer| match a.covered_allele == CoveredAllele::Alternative {
                true => copies(a.kmer) == 0 && (a.required_unique_kmer == 0 || copies(a.required_unique_kmer) == 1),
                false => copies(a.kmer) == 1,
            };
            let taken: Vec<&AnchorKmer> = all.iter().filter(fits).collect();
            let changed = taken.iter().filter(|a| a.covered_allele == CoveredAllele::Alternative).count();
            // If the change's k-mers occur elsewhere in the reference, reads of that locus would support the change.
            let new =
                all.iter().filter(|a| a.covered_allele == CoveredAllele::Alternative && copies(a.kmer) == 0).count();
            let over = all.iter().filter(|a| a.covered_allele == CoveredAllele::Alternative).count();
            let is_trackable = changed > 0 && new == over && taken.len() - changed >= MIN_REFERENCE_ANCHORS;
            known.push(is_trackable);
            alone.push(is_trackable && taken.len() == all.len());
            if is_trackable {
                for anchor in taken {
                    let rank = counted.rank_of_kmer(anchor.kmer);
                    rank.iter().for_each(|&r| occurrences.add(r, AnchorOccurrence::of_anchor(anchor, number)));
                }
            }
        }
        // Only k-mers with an occurrence stay, in the same memory.
        let kmers = occurrences.remove_kmers_without_occurrence(counted.into_kmers());
        let OccurrenceTable { first, more } = occurrences;
        Ok(AnchorKmerIndex {
            lookup: KmerLookup::from_kmers(k, kmers),
            first_occurrences: first,
            more_occurrences: more,
            is_trackable: known,
            is_unique: alone,
        })
    }

    /// The occurrences of the anchor k-mer with this rank.
    pub(crate) fn occurrences_of_kmer(&self, rank: u32) -> impl Iterator<Item = AnchorOccurrence> {
        let from = self.more_occurrences.partition_point(|(other, _)| *other < rank);
        let more = self.more_occurrences[from..].iter().take_while(move |(other, _)| *other == rank);
        std::iter::once(self.first_occurrences[rank as usize]).chain(more.map(|(_, occurrence)| *occurrence))
    }
}

/// The occurrences of k-mers on junctions, by k-mer rank. Nearly all k-mers have at most one.
struct OccurrenceTable {
    first: Vec<AnchorOccurrence>,
    more: Vec<(u32, AnchorOccurrence)>,
}

impl OccurrenceTable {
    /// An occurrence in no frame: the k-mer has no occurrence.
    const NONE: AnchorOccurrence =
        AnchorOccurrence { junction_and_flags: u32::MAX, left: NO_POSITION, right: NO_POSITION };

    fn for_kmers(num_kmers: usize) -> OccurrenceTable {
        OccurrenceTable { first: vec![OccurrenceTable::NONE; num_kmers], more: Vec::new() }
    }

    fn add(&mut self, rank: u32, occurrence: AnchorOccurrence) {
        let first = &mut self.first[rank as usize];
        if *first == OccurrenceTable::NONE {
            *first = occurrence;
        } else if *first != occurrence {
            self.more.push((rank, occurrence));
        }
    }

    /// Removes the k-mers without an occurrence from `kmers` and from this table. Returns the others, with new ranks.
    fn remove_kmers_without_occurrence(&mut self, mut kmers: Vec<u64>) -> Vec<u64> {
        self.more.sort_unstable();
        self.more.dedup();
        let (mut kept, mut next_more) = (0, 0);
        for rank in 0..kmers.len() {
            if self.first[rank] == OccurrenceTable::NONE {
                continue;
            }
            (kmers[kept], self.first[kept]) = (kmers[rank], self.first[rank]);
            while let Some((other, _)) = self.more.get_mut(next_more).filter(|(other, _)| *other as usize == rank) {
                *other = kept as u32;
                next_more += 1;
            }
            kept += 1;
        }
        kmers.truncate(kept);
        self.first.truncate(kept);
        kmers.shrink_to_fit();
        self.first.shrink_to_fit();
        kmers
    }
}
