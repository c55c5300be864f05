//! Detection of read pairs from telomeres: a mate contains a telomere motif at least six times on one strand. Not all
//! copies need be contiguous, but a quick test requires a run of them.

use genuma_kmers::run_with_widest_simd;
use genuma_reads::packed_bases::{PackedBases, WORD_BASES, mask_of_bits_after_bases};
use genuma_reads::{Mate, ReadPair, dna};

/// A telomere motif and the taxon whose telomeres consist of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TelomereMotif {
    /// The motif on the strand that runs 5' to 3' towards the end of the chromosome, such as `TTAGGG`.
    pub bases: &'static [u8],
    /// Taxon whose telomeres consist of this motif.
    pub taxon: &'static str,
}

/// The telomere motifs that are searched for.
pub(crate) const TELOMERE_MOTIFS: [TelomereMotif; 3] = [
    TelomereMotif { bases: b"TTAGGG", taxon: "vertebrates" },
    TelomereMotif { bases: b"TTTAGGG", taxon: "plants" },
    TelomereMotif { bases: b"TTAGG", taxon: "insects" },
];

/// Minimum number of copies of the motif in a mate to count the pair.
pub(crate) const MIN_MOTIF_COPIES: usize = 6;

/// Minimum number of consecutive bases that equal the base one motif length later. Four motif copies in a row contain
/// such a run in any window.
const MIN_RUN_BASES: u32 = 10;
/// Step from one searched window to the next, in bases.
const WINDOW_STEP_BASES: usize = WORD_BASES / 2;

/// Bit mask of the positions in a window of 32 bases from which [`MIN_RUN_BASES`] bases equal those `unit` bases later;
/// 0 if there are none.
#[inline(always)]
fn repeat_runs(window: u64, unit: usize) -> u64 {
    let differ = window ^ (window << (2 * unit));
    let mut repeat_runs = !(differ | (differ >> 1)) & 0x5555_5555_5555_5555;
    // Runs of 2, 4, 8 and 10.
    for step in [1, 2, 4, MIN_RUN_BASES - 8] {
        repeat_runs &= repeat_runs << (2 * step);
    }
    // Bases beyond the window have nothing to equal.
    repeat_runs & !mask_of_bits_after_bases(WORD_BASES - unit - MIN_RUN_BASES as usize + 1)
}

/// Length in bases of a stretch that is tested as a whole: four motif copies in a row contain a whole stretch.
const STRETCH_BASES: usize = 16;
/// Distance between the starts of two tested stretches, in bases.
const STRETCH_STEP_BASES: usize = 8;

/// Packed bases that are not a repeat, used beyond the end of a read.
const NON_REPEAT_PACKED_BASES: u32 = 0x1b1b_1b1b;

/// Number of stretches that are tested together (SIMD lanes); the same number of stretches, shifted by half a stretch,
/// is tested as well.
const SIMD_LANES: usize = 8;

/// Whether any stretch in the first `bases` bases is a tandem repeat with a unit of 5, 6 or 7 bases.
#[inline(always)]
fn has_repeat(words: &[u64], bases: usize) -> bool {
    // Minimum over the stretches of the bases that differ from those one unit later; 0 if all agree.
    let mut least = [u32::MAX; SIMD_LANES];
    for from in (0..bases).step_by(SIMD_LANES * STRETCH_BASES) {
        let mut halves = [0; SIMD_LANES + 2];
        for (both, word) in halves.as_chunks_mut::<2>().0.iter_mut().zip(&words[from / WORD_BASES..]) {
            *both = [(word >> 32) as u32, *word as u32];
        }
        for (lane, least) in least.iter_mut().enumerate() {
            let (here, next) = (halves[lane], halves[lane + 1]);
            let between = here << (2 * STRETCH_STEP_BASES) | next >> (2 * (STRETCH_BASES - STRETCH_STEP_BASES));
            let end = from + (lane + 1) * STRETCH_BASES;
            for (stretch, end) in [(here, end), (between, end + STRETCH_STEP_BASES)] {
                let x = if end <= bases { stretch } else { NON_REPEAT_PACKED_BASES };
                // The last bases have none after them.
                *least = (*least).min((x ^ x << 10) >> 10).min((x ^ x << 12) >> 12).min((x ^ x << 14) >> 14);
            }
        }
    }
    least.contains(&0)
}

/// All rotations of a motif and of its reverse complement, each as packed bases.
const fn motif_rotations<const N: usize>(motif: &[u8; N]) -> [[u64; N]; 2] {
    let mut words = [[0; N]; 2];
    let mut from = 0;
    while from < N {
        let mut i = 0;
        while i < N {
            let code = match motif[(from + i) % N] {
                b'A' => 0,
                b'C' => 1,
                b'G' => 2,
                _ => 3,
            };
            words[0][from] |= code << (2 * (N - 1 - i));
            words[1][from] |= (3 - code) << (2 * i);
            i += 1;
        }
        from += 1;
    }
    words
}

const ROTATIONS_OF_5: [[u64; 5]; 2] = motif_rotations(b"TTAGG");
const ROTATIONS_OF_6: [[u64; 6]; 2] = motif_rotations(b"TTAGGG");
const ROTATIONS_OF_7: [[u64; 7]; 2] = motif_rotations(b"TTTAGGG");

/// Whether the first tandem repeat in a window of 32 bases is a rotation of the motif.
fn window_has_motif(window: u64, unit: usize, motif_rotations: &[u64]) -> bool {
    let repeat_runs = repeat_runs(window, unit);
    let from = repeat_runs.leading_zeros() / 2 * 2;
    repeat_runs != 0 && motif_rotations.contains(&((window << from) >> (WORD_BASES * 2 - 2 * unit)))
}

/// Quick test that a read may contain a motif at least six times: it has a tandem repeat, and the repeat unit is a
/// motif.
fn may_contain_motif(read: PackedBases<'_>, bases: usize) -> bool {
    let mut repeats = false;
    run_with_widest_simd(
        #[inline(always)]
        || repeats = has_repeat(read.words(), bases),
    );
    repeats
        && (0..bases).step_by(WINDOW_STEP_BASES).any(|at| {
            let window = read.word_from_base(at);
            window_has_motif(window, 6, ROTATIONS_OF_6.as_flattened())
                || window_has_motif(window, 7, ROTATIONS_OF_7.as_flattened())
                || window_has_motif(window, 5, ROTATIONS_OF_5.as_flattened())
        })
}

/// Returns the index in `TELOMERE_MOTIFS` of the motif that a mate of the pair contains at least six times, if any; of
/// several such motifs, that with the longest run.
#[inline]
pub(crate) fn find_telomere_motif_index(pair: ReadPair<'_>, packed: [PackedBases<'_>; 2]) -> Option<usize> {
    let may = |(mate, packed): (&Mate<'_>, PackedBases<'_>)| may_contain_motif(packed, mate.seq.len());
    if pair.mates.iter().zip(packed).any(may) { find_longest_motif(pair) } else { None }
}

fn find_longest_motif(pair: ReadPair<'_>) -> Option<usize> {
    let held = |motif: &TelomereMotif| {
        let turned = dna::reverse_complement(motif.bases);
        let mut most = pair.mates.iter().flat_map(|mate| [motif.bases, &turned].map(|m| count_motif(mate.seq, m)));
        most.any(|n| n >= MIN_MOTIF_COPIES)
    };
    // A longer motif can contain a shorter one, so the motif with the longest contiguous run is taken.
    let mut rows = TELOMERE_MOTIFS.iter().enumerate().filter(|(_, motif)| held(motif)).map(|(i, motif)| {
        let turned = dna::reverse_complement(motif.bases);
        let rows =
            pair.mates.iter().flat_map(|mate| [motif.bases, &turned].map(|m| max_consecutive_copies(mate.seq, m)));
        (rows.max().unwrap_or(0) * motif.bases.len(), i)
    });
    let first = rows.next()?;
    Some(rows.fold(first, |best, other| if other.0 > best.0 { other } else { best }).1)
}

/// Number of non-overlapping copies of a motif in a sequence.
fn count_motif(seq: &[u8], motif: &[u8]) -> usize {
    let (mut at, mut n) = (0, 0);
    while let Some(here) = seq.get(at..at + motif.len()) {
        let is = here == motif;
        n += usize::from(is);
        at += if is { motif.len() } else { 1 };
    }
    n
}

/// Largest number of contiguous copies of a motif in a sequence.
fn max_consecutive_copies(seq: &[u8], motif: &[u8]) -> usize {
    let copies = |from: usize| seq[from..].chunks_exact(motif.len()).take_while(|copy| copy == &motif).count();
    (0..seq.len()).map(copies).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::packed_bases::CodesAndPackedBases;

    /// Stretches are tested together, and none is left out.
    #[test]
    fn repeating_stretches_are_found_at_any_position() {
        let mut state = 5u64;
        let mut base = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(state >> 62) as usize]
        };
        for bases in (0..40).chain([63, 64, 65, 127, 128, 129, 150, 151, 250, 300]) {
            for (at, unit) in (0..bases + STRETCH_STEP_BASES)
                .step_by(STRETCH_STEP_BASES)
                .flat_map(|at| [5, 6, 7].map(|unit| (at, unit)))
            {
                let mut seq: Vec<u8> = (0..bases).map(|_| base()).collect();
                for i in at + unit..(at + STRETCH_BASES).min(bases) {
                    seq[i] = seq[i - unit];
                }
                let stretch_repeats = |stretch: &[u8]| {
                    [5, 6, 7].iter().any(|unit| stretch.iter().zip(&stretch[*unit..]).all(|(a, b)| a == b))
                };
                let all = (0..).step_by(STRETCH_STEP_BASES).map_while(|at| seq.get(at..at + STRETCH_BASES));
                let expected = all.clone().any(stretch_repeats);
                assert!(expected || at + STRETCH_BASES > bases);
                let mut codes = CodesAndPackedBases::default();
                codes.encode_bases(&seq, &seq, 0);
                assert_eq!(has_repeat(codes.packed_bases().words(), bases), expected, "{bases} {at} {unit}");
            }
        }
    }

    fn motif_of(one: &[u8], two: &[u8]) -> Option<usize> {
        let mates = [one, two].map(|seq| Mate { seq, qual: seq });
        let [a, b] = [one, two].map(|seq| {
            let mut codes = CodesAndPackedBases::default();
            codes.encode_bases(seq, seq, 0);
            codes
        });
        find_telomere_motif_index(ReadPair { name: b"", mates }, [a.packed_bases(), b.packed_bases()])
    }

    #[test]
    fn six_copies_on_either_strand_of_either_mate_make_a_telomere() {
        let other = b"GATTACCTGAGTCCATGCAAGTCCGTAACTGACCATTGCAGGATCCGTTAGCATTACGGCTA";
        for (i, motif) in TELOMERE_MOTIFS.iter().enumerate() {
            for from in 0..40 {
                let [six, five] = [6, 5].map(|n| [&other[..from], &motif.bases.repeat(n), &other[..9]].concat());
                assert_eq!(motif_of(&six, other), Some(i), "{from}");
                assert_eq!(motif_of(other, &dna::reverse_complement(&six)), Some(i));
                assert_eq!(motif_of(&five, other), None);
            }
        }
        // Not contiguous, with errors in between.
        let broken = [&b"TTAGGG".repeat(3)[..], b"TTACGG", &b"TTAGGG".repeat(4), b"ACGTTAGC"].concat();
        assert_eq!(motif_of(other, &broken), Some(0));
        assert_eq!(motif_of(&b"TTAGG".repeat(30), &b"A".repeat(150)), Some(2));
        assert_eq!(motif_of(&b"CAG".repeat(50), &b"A".repeat(150)), None);
        assert_eq!(motif_of(b"", b""), None);
    }
}
