//! Pairs from telomeres: a mate that holds a telomere's motif six times, one beside the other or not, on one strand.

use genuma_kmers::widest;
use genuma_reads::packed::{Packed, WORD, after};
use genuma_reads::{Mate, Pair, dna};

/// A telomere's motif, and who has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Motif {
    /// The strand that ends a chromosome.
    pub bases: &'static [u8],
    /// Who has it.
    pub of: &'static str,
}

/// Those that are told apart.
pub(crate) const MOTIFS: [Motif; 3] = [
    Motif { bases: b"TTAGGG", of: "vertebrates" },
    Motif { bases: b"TTTAGGG", of: "plants" },
    Motif { bases: b"TTAGG", of: "insects" },
];

/// How often a mate has to have the motif.
pub const COPIES: usize = 6;

/// Bases in a row that equal those a motif behind them: four copies show so many in a window, wherever they begin.
const RUN: u32 = 10;
/// How far windows are apart.
const APART: usize = WORD / 2;

/// Whether a window of 32 bases holds [`RUN`] in a row that equal those a `unit` behind: not nothing if so.
#[inline(always)]
fn runs(window: u64, unit: usize) -> u64 {
    let differ = window ^ (window << (2 * unit));
    let mut runs = !(differ | (differ >> 1)) & 0x5555_5555_5555_5555;
    // Runs of 2, 4, 8 and 10.
    for step in [1, 2, 4, RUN - 8] {
        runs &= runs << (2 * step);
    }
    // Behind the window there is nothing to be equal to.
    runs & !after(WORD - unit - RUN as usize + 1)
}

/// Bases of a stretch that is looked at whole, and how far these are apart: four copies in a row hold one, wherever they begin.
const STRETCH: usize = 16;
const STEP: usize = 8;

/// What does not repeat itself.
const OTHER: u32 = 0x1b1b_1b1b;

/// Stretches that are looked at together, and as many half way between them.
const LANES: usize = 8;

/// Whether a stretch in the first `bases` bases repeats itself.
#[inline(always)]
fn repeats_scalar(words: &[u64], bases: usize) -> bool {
    // The least of what differs from the bases a unit behind.
    let mut least = [u32::MAX; LANES];
    for from in (0..bases).step_by(LANES * STRETCH) {
        let mut halves = [0; LANES + 2];
        for (both, word) in halves.as_chunks_mut::<2>().0.iter_mut().zip(&words[from / WORD..]) {
            *both = [(word >> 32) as u32, *word as u32];
        }
        for (lane, least) in least.iter_mut().enumerate() {
            let (here, next) = (halves[lane], halves[lane + 1]);
            let between = here << (2 * STEP) | next >> (2 * (STRETCH - STEP));
            let end = from + (lane + 1) * STRETCH;
            for (stretch, end) in [(here, end), (between, end + STEP)] {
                let x = if end <= bases { stretch } else { OTHER };
                // The last bases have none behind.
                *least = (*least).min((x ^ x << 10) >> 10).min((x ^ x << 12) >> 12).min((x ^ x << 14) >> 14);
            }
        }
    }
    least.contains(&0)
}

/// The words that a motif and its reverse complement show, wherever one begins in a row of them.
const fn turns<const N: usize>(motif: &[u8; N]) -> [[u64; N]; 2] {
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

const FIVE: [[u64; 5]; 2] = turns(b"TTAGG");
const SIX: [[u64; 6]; 2] = turns(b"TTAGGG");
const SEVEN: [[u64; 7]; 2] = turns(b"TTTAGGG");

/// Whether what repeats first in a window is one of some motifs.
fn shows(window: u64, unit: usize, turns: &[u64]) -> bool {
    let runs = runs(window, unit);
    let from = runs.leading_zeros() / 2 * 2;
    runs != 0 && turns.contains(&((window << from) >> (WORD * 2 - 2 * unit)))
}

/// Whether the bases may hold a motif often enough: whether anything repeats, and then what.
fn may_hold(read: Packed<'_>, bases: usize) -> bool {
    let mut repeats = false;
    widest(
        #[inline(always)]
        || repeats = repeats_scalar(read.words(), bases),
    );
    repeats
        && (0..bases).step_by(APART).any(|at| {
            let window = read.word(at);
            shows(window, 6, SIX.as_flattened())
                || shows(window, 7, SEVEN.as_flattened())
                || shows(window, 5, FIVE.as_flattened())
        })
}

/// Which motif a pair holds often enough, if any.
#[inline]
pub fn of(pair: Pair<'_>, packed: [Packed<'_>; 2]) -> Option<usize> {
    let may = |(mate, packed): (&Mate<'_>, Packed<'_>)| may_hold(packed, mate.seq.len());
    if pair.mates.iter().zip(packed).any(may) { look(pair) } else { None }
}

fn look(pair: Pair<'_>) -> Option<usize> {
    let held = |motif: &Motif| {
        let turned = dna::revcomp(motif.bases);
        let mut most = pair.mates.iter().flat_map(|mate| [motif.bases, &turned].map(|m| count(mate.seq, m)));
        most.any(|n| n >= COPIES)
    };
    // A longer motif holds the shorter ones, so that what is told is the longest in a row.
    let mut rows = MOTIFS.iter().enumerate().filter(|(_, motif)| held(motif)).map(|(i, motif)| {
        let turned = dna::revcomp(motif.bases);
        let rows = pair.mates.iter().flat_map(|mate| [motif.bases, &turned].map(|m| in_a_row(mate.seq, m)));
        (rows.max().unwrap_or(0) * motif.bases.len(), i)
    });
    let first = rows.next()?;
    Some(rows.fold(first, |best, other| if other.0 > best.0 { other } else { best }).1)
}

/// How often a sequence holds a motif, without overlaps.
fn count(seq: &[u8], motif: &[u8]) -> usize {
    let (mut at, mut n) = (0, 0);
    while let Some(here) = seq.get(at..at + motif.len()) {
        let is = here == motif;
        n += usize::from(is);
        at += if is { motif.len() } else { 1 };
    }
    n
}

/// Most copies of a motif that stand side by side.
fn in_a_row(seq: &[u8], motif: &[u8]) -> usize {
    let copies =
        |from: usize| seq[from..].chunks_exact(motif.len()).take_while(|copy| copy == &motif).count();
    (0..seq.len()).map(copies).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::packed::Codes;

    /// Stretches are looked at side by side, and none is left out.
    #[test]
    fn stretches_that_repeat_are_found_wherever_they_are() {
        let mut state = 5u64;
        let mut base = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(state >> 62) as usize]
        };
        for bases in (0..40).chain([63, 64, 65, 127, 128, 129, 150, 151, 250, 300]) {
            for (at, unit) in (0..bases + STEP).step_by(STEP).flat_map(|at| [5, 6, 7].map(|unit| (at, unit)))
            {
                let mut seq: Vec<u8> = (0..bases).map(|_| base()).collect();
                for i in at + unit..(at + STRETCH).min(bases) {
                    seq[i] = seq[i - unit];
                }
                let stretch_repeats = |stretch: &[u8]| {
                    [5, 6, 7].iter().any(|unit| stretch.iter().zip(&stretch[*unit..]).all(|(a, b)| a == b))
                };
                let all = (0..).step_by(STEP).map_while(|at| seq.get(at..at + STRETCH));
                let expected = all.clone().any(stretch_repeats);
                assert!(expected || at + STRETCH > bases);
                let mut codes = Codes::default();
                codes.load(&seq, &seq, 0);
                assert_eq!(repeats_scalar(codes.packed().words(), bases), expected, "{bases} {at} {unit}");
            }
        }
    }

    fn motif_of(one: &[u8], two: &[u8]) -> Option<usize> {
        let mates = [one, two].map(|seq| Mate { seq, qual: seq });
        let [a, b] = [one, two].map(|seq| {
            let mut codes = Codes::default();
            codes.load(seq, seq, 0);
            codes
        });
        of(Pair { name: b"", mates }, [a.packed(), b.packed()])
    }

    #[test]
    fn six_copies_on_either_strand_of_either_mate_make_a_telomere() {
        let other = b"GATTACCTGAGTCCATGCAAGTCCGTAACTGACCATTGCAGGATCCGTTAGCATTACGGCTA";
        for (i, motif) in MOTIFS.iter().enumerate() {
            for from in 0..40 {
                let [six, five] =
                    [6, 5].map(|n| [&other[..from], &motif.bases.repeat(n), &other[..9]].concat());
                assert_eq!(motif_of(&six, other), Some(i), "{from}");
                assert_eq!(motif_of(other, &dna::revcomp(&six)), Some(i));
                assert_eq!(motif_of(&five, other), None);
            }
        }
        // Not side by side, with wrong bases between.
        let broken = [&b"TTAGGG".repeat(3)[..], b"TTACGG", &b"TTAGGG".repeat(4), b"ACGTTAGC"].concat();
        assert_eq!(motif_of(other, &broken), Some(0));
        assert_eq!(motif_of(&b"TTAGG".repeat(30), &b"A".repeat(150)), Some(2));
        assert_eq!(motif_of(&b"CAG".repeat(50), &b"A".repeat(150)), None);
        assert_eq!(motif_of(b"", b""), None);
    }
}
