//! Groups the read pairs of a junction into molecules, and counts the molecules with each allele and the wrong bases
//! near substitutions.

use genuma_reads::dna;
use genuma_somatic::molecule::MoleculeAssignment;

use crate::change::ChangeClass;
use crate::mate_evidence::{
    MIN_EVIDENCE_LOG_ODDS, MIN_MOLECULE_LOG_ODDS_LENGTH_CHANGE, MIN_MOLECULE_LOG_ODDS_SUBSTITUTION,
};
use crate::pair_evidence::{JunctionPairEvidence, MateStartLetters};
use crate::tracked_junction::{ERROR_COUNTING_BASES_PER_SIDE, TrackedJunction};

/// Number of positions near a substitution at which errors are counted.
const NUM_WATCHED_POSITIONS: usize = 2 * ERROR_COUNTING_BASES_PER_SIDE;
/// Minimum share of molecules with a base at which the base counts as an allele, not as an error (empirical).
const MIN_ALLELE_SHARE: f64 = 0.05;
/// Minimum number of molecules with a base at which the base counts as an allele, not as an error.
const MIN_ALLELE_MOLECULES: u32 = 3;

/// Number of kinds of substitutions: 64 contexts (base before, reference base, base after) times four read bases, on
/// the strand of read 1.
pub(crate) const NUM_SUBSTITUTION_KINDS: usize = 256;

/// Kind of the substitution of `middle` between two neighbouring bases by `new` (base code 0 to 3), on the strand of
/// read 1. `first_forward`: whether read 1 is oriented like the reference. `None` if a neighbouring base is not A, C, G
/// or T.
pub(crate) fn substitution_kind_index(
    [before, middle, behind]: [u8; 3],
    new: u8,
    first_forward: bool,
) -> Option<usize> {
    let turned = |code: u8| if first_forward { code } else { 3 - code };
    let all = [before, middle, behind].map(dna::encode_base);
    if all.iter().any(|&code| code > 3) || new > 3 {
        return None;
    }
    let [a, b, c] = if first_forward { all } else { [all[2], all[1], all[0]] };
    let index = [a, b, c, new].iter().fold(0, |index, &code| index << 2 | usize::from(turned(code)));
    Some(index)
}

/// Numbers of molecules of one sample at one junction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct MoleculeCounts {
    /// Number of molecules with the change: with read 1 oriented against the junction, and with read 1 oriented like
    /// it.
    pub changed: [u32; 2],
    /// Number of molecules without the change: with read 1 oriented against the junction, and with read 1 oriented like
    /// it. If the two ends of the junction are separate loci, the mean of the numbers at both ends.
    pub unchanged: [f64; 2],
    /// Number of duplicate pairs.
    pub duplicates: u32,
    /// Number of molecules whose reads support different alleles.
    pub contradictory: u32,
    /// Number of molecules with too little evidence for an allele.
    pub unclear: u32,
}

impl MoleculeCounts {
    /// Number of molecules with the change, in both orientations.
    pub(crate) fn num_molecules_with_change(&self) -> u64 {
        self.changed.iter().map(|&n| u64::from(n)).sum()
    }

    /// Number of molecules with or without the change, in both orientations.
    pub(crate) fn num_informative_molecules(&self) -> u64 {
        self.num_molecules_with_change() + self.unchanged.iter().sum::<f64>().round() as u64
    }
}

/// Counts of correct and wrong bases near one substitution in one sample, from which background error rates are
/// estimated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlankErrorCounts {
    /// For each kind of substitution, the number of molecules in which it could have occurred.
    pub seen: Vec<u32>,
    /// For each kind of substitution, the number of molecules in which it occurred.
    pub wrong: Vec<u32>,
    /// Counts for each position near the substitution and each wrong base.
    pub sites: Vec<WrongBaseSiteCounts>,
}

/// Counts of one possible wrong base at one position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WrongBaseSiteCounts {
    /// Number of molecules at the position: with read 1 oriented against the junction, and with read 1 oriented like
    /// it.
    pub molecules: [u32; 2],
    /// Kind of the substitution if read 1 is oriented against the junction, and if it is oriented like it.
    pub kinds: [u8; 2],
    /// Number of molecules with the wrong base.
    pub wrong: u32,
}

/// Sum of the log-odds of all pairs of a molecule in one frame, in hundredths of natural-log units; `None` if pairs
/// support different alleles.
fn sum_log_odds(pairs: &[&JunctionPairEvidence], frame: usize) -> Option<i32> {
    let odds = || pairs.iter().map(|s| i32::from(s.log_odds[frame]));
    let torn = odds().any(|o| o >= MIN_EVIDENCE_LOG_ODDS) && odds().any(|o| o <= -MIN_EVIDENCE_LOG_ODDS);
    (!torn).then(|| odds().sum())
}

/// Groups the pairs of one junction in one sample into molecules and counts them by allele. For a substitution, also
/// returns the counts of wrong bases near it.
pub(crate) fn count_molecules(
    junction: &TrackedJunction,
    seen: &[JunctionPairEvidence],
) -> (MoleculeCounts, Option<FlankErrorCounts>) {
    let letters: Vec<MateStartLetters> = seen.iter().map(MateStartLetters::unpack_start_letters).collect();
    let members: Vec<u32> = (0..seen.len() as u32).collect();
    let mut votes = MoleculeCounts::default();
    let mut base_counts = junction.is_substitution().then(|| FlankBaseCounts::new(junction));
    let clear = if junction.is_substitution() {
        MIN_MOLECULE_LOG_ODDS_SUBSTITUTION
    } else {
        MIN_MOLECULE_LOG_ODDS_LENGTH_CHANGE
    };
    for molecule in MoleculeAssignment::assign_pairs_to_molecules(&members, &letters, &[]).pairs_by_molecule() {
        let pairs: Vec<&JunctionPairEvidence> = molecule.iter().map(|&i| &seen[i as usize]).collect();
        votes.duplicates += pairs.len() as u32 - 1;
        let side = usize::from(pairs[0].first_forward);
        let frames = [sum_log_odds(&pairs, 0), sum_log_odds(&pairs, 1)];
        let clearly = |way: i32| frames.map(|f| f.is_some_and(|odds| odds * way >= clear));
        let (with, without) = (clearly(1), clearly(-1));
        let against = with.contains(&true) && without.contains(&true);
        if pairs.iter().any(|s| s.is_contradictory) || frames.contains(&None) || against {
            votes.contradictory += 1;
        } else if with.contains(&true) {
            votes.changed[side] += 1;
        } else if without.contains(&true) {
            // Both sides of a small change are one locus; the sides of other junctions have separate molecules.
            let ends = if junction.deleted_len.is_some()
                || junction.left_reference_and_junction_offset().is_none()
                || junction.right_reference_and_junction_offset().is_none()
            {
                1.0
            } else {
                0.5
            };
            let n = without.iter().filter(|w| **w).count() as f64;
            votes.unchanged[side] += if ends == 1.0 { 1.0 } else { ends * n };
        } else if pairs.iter().any(|s| s.log_odds != [0; 2]) {
            votes.unclear += 1;
        }
        if let Some(base_counts) = &mut base_counts {
            base_counts.add_molecule(&pairs, side);
        }
    }
    (votes, base_counts.map(|base_counts| base_counts.into_error_counts(junction)))
}

/// Counts of correct and wrong bases near one substitution, by position.
struct FlankBaseCounts {
    /// Number of molecules with the reference base, by position and orientation of the pair.
    right: Vec<[u32; 2]>,
    /// Number of molecules with a wrong base, by position, base and orientation of the pair.
    wrong: Vec<[[u32; 2]; 4]>,
    /// Bit mask of positions that tracked changes affect. The position of the SNV itself is not in it, those of an MNV
    /// are.
    affected_positions: u128,
}

impl FlankBaseCounts {
    fn new(junction: &TrackedJunction) -> FlankBaseCounts {
        // At a tracked SNV the other two bases still count as errors; a tracked MNV's positions do not.
        let own = u128::from(junction.class == ChangeClass::Snv) << ERROR_COUNTING_BASES_PER_SIDE;
        let touched = junction.affected_positions & !own;
        FlankBaseCounts {
            right: vec![[0; 2]; NUM_WATCHED_POSITIONS],
            wrong: vec![[[0; 2]; 4]; NUM_WATCHED_POSITIONS],
            affected_positions: touched,
        }
    }

    /// Counts the bases of one molecule at the positions at which its reads agree.
    fn add_molecule(&mut self, pairs: &[&JunctionPairEvidence], side: usize) {
        let mut good = pairs.iter().fold(0, |good, s| good | s.reference_positions);
        for s in pairs {
            for wrong in &s.wrong_bases[..usize::from(s.num_wrong)] {
                let others = || {
                    pairs
                        .iter()
                        .flat_map(|c| &c.wrong_bases[..usize::from(c.num_wrong)])
                        .filter(|w| w.position == wrong.position)
                };
                // The first pair with the base represents the molecule.
                let first = others().next().is_some_and(|w| std::ptr::eq(w, wrong));
                let agree = others().all(|w| w.base == wrong.base);
                let odds: i32 = others().map(|w| i32::from(w.log_odds)).sum();
                if good >> wrong.position & 1 == 1 || !agree {
                    good &= !(1u128 << wrong.position);
                } else if first && odds >= MIN_MOLECULE_LOG_ODDS_SUBSTITUTION {
                    self.wrong[usize::from(wrong.position)][usize::from(wrong.base)][side] += 1;
                }
            }
        }
        good &= !self.affected_positions;
        while good != 0 {
            self.right[good.trailing_zeros() as usize][side] += 1;
            good &= good - 1;
        }
    }

    /// Converts the counts to error counts, without alleles (germline variants and tracked changes).
    fn into_error_counts(self, junction: &TrackedJunction) -> FlankErrorCounts {
        let mut watched = FlankErrorCounts {
            seen: vec![0; NUM_SUBSTITUTION_KINDS],
            wrong: vec![0; NUM_SUBSTITUTION_KINDS],
            sites: Vec::new(),
        };
        let Some((reference, cut)) = junction.left_reference_and_junction_offset() else { return watched };
        for at in 0..NUM_WATCHED_POSITIONS {
            let Some(middle) =
                (cut + at).checked_sub(ERROR_COUNTING_BASES_PER_SIDE).filter(|&m| m > 0 && m + 1 < reference.len())
            else {
                continue;
            };
            let inside = at >= ERROR_COUNTING_BASES_PER_SIDE
                && at < ERROR_COUNTING_BASES_PER_SIDE + junction.num_inserted_bases();
            if self.affected_positions >> at & 1 == 1 {
                continue;
            }
            let context = [reference[middle - 1], reference[middle], reference[middle + 1]];
            let wrong = &self.wrong[at];
            let right = self.right[at];
            let all: u32 = right.iter().sum::<u32>() + wrong.iter().flatten().sum::<u32>();
            let own = inside.then(|| {
                dna::encode_base(junction.alternative[junction.side_bounds[0] + at - ERROR_COUNTING_BASES_PER_SIDE])
            });
            let others = || (0..4u8).filter(|&base| Some(base) != own);
            let most = others().map(|base| wrong[usize::from(base)].iter().sum::<u32>()).max().unwrap_or(0);
            if most >= MIN_ALLELE_MOLECULES && f64::from(most) >= MIN_ALLELE_SHARE * f64::from(all) {
                continue;
            }
            for base in others().filter(|&base| base != dna::encode_base(context[1])) {
                let found = wrong[usize::from(base)];
                let mut site = WrongBaseSiteCounts { molecules: [0; 2], kinds: [0; 2], wrong: found.iter().sum() };
                for side in 0..2 {
                    let Some(kind) = substitution_kind_index(context, base, side == 1) else { continue };
                    site.molecules[side] = right[side] + found[side];
                    site.kinds[side] = kind as u8;
                    watched.seen[kind] += site.molecules[side];
                    watched.wrong[kind] += found[side];
                }
                watched.sites.push(site);
            }
        }
        watched
    }
}
