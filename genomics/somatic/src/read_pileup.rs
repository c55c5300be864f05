//! Draws a read pileup for the report: the reads of all samples aligned with both alleles of a change.
//!
//! A pileup is a table of columns: up to [`FLANK_COLUMNS`] shared by both alleles, the change, and up to
//! [`FLANK_COLUMNS`] shared columns again.
//!
//! - Substituted bases are in the same columns. For an insertion or deletion one allele has the bases and the other one
//!   `-`.
//! - A junction is drawn like a deletion of unknown length. The normal's line continues beyond the left end for
//!   [`EDGE_COLUMNS`] bases, then `…`, then the [`EDGE_COLUMNS`] bases before the right end. The tumour's line has `-`
//!   there. So the normal's reads are shown whole on either side. Bases inserted at the junction are before that, in
//!   separate columns.
//! - Where novel sequence begins, both lines continue in parallel to the end of the window.
//! - The middle of a change longer than two edges is left out and marked by one `…`.
//!
//! A read that supports the tumour's allele is aligned with the tumour's line, every other read with the normal's.

use std::cmp::Reverse;

use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::call_summary::{EventPileup, PileupRow};
use crate::change::Change;
use crate::molecule_vote::MoleculeVote;
use crate::packed::OwnedRead;
use crate::read_placement::PlacedRead;
use crate::recruit::RecruitedPair;

/// Maximum number of columns of the sequence on each side of a change.
const FLANK_COLUMNS: usize = 60;
/// Number of columns of a long change that are shown at each of its ends.
const EDGE_COLUMNS: usize = 24;
/// Maximum number of reads of one sample in a pileup.
const MAX_READS_PER_SAMPLE: usize = 30;
/// Character shown where columns are left out.
const OMITTED_MARK: char = '…';

/// A change, and the reads on it with their votes.
#[derive(Debug, Clone, Copy)]
pub struct PileupInput<'a> {
    /// The contig with the change.
    pub contig: &'a AlignedContig,
    /// The change: one of the contig's changes.
    pub change: &'a ContigChange,
    /// Reads placed on the contig, sorted by pair.
    pub reads: &'a [PlacedRead],
    /// The pairs that reads and votes refer to: those of the normal, then those of all tumours by name.
    pub pairs: &'a [RecruitedPair],
    /// One vote for each read pair, duplicates included.
    pub votes: &'a [MoleculeVote],
}

/// Content of one column in the line of an allele.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PileupCell {
    /// A base: index in the sequence of the allele.
    Base(usize),
    /// A gap, because only the other allele has a base in this column.
    Gap,
    /// Bases of the allele are left out in this column.
    Omitted,
    /// The sequence does not extend to this column.
    Outside,
}

/// The line of one allele: its sequence, and what each column shows of it.
struct AlleleLine<'a> {
    seq: &'a [u8],
    cells: Vec<PileupCell>,
    /// Numbers that convert a contig offset of a read into an offset on `seq`: for reads placed by bases left of the
    /// change, and for reads placed by bases right of it.
    shifts: [i32; 2],
}

struct PileupColumns<'a> {
    tumour: AlleleLine<'a>,
    /// The line of the normal's sequence. For a junction there are two lines, one for each end.
    normal: Vec<AlleleLine<'a>>,
    change: (usize, usize),
}

/// A read aligned with the sequence of an [`AlleleLine`].
struct AlignedRead<'s> {
    line: &'s AlleleLine<'s>,
    /// Index on the sequence of the line at which the read's first base is.
    start: i32,
    score: i32,
}

/// Builds the read pileup of a change with at most 30 reads of each sample: first the reads with the change, then those
/// without it, then undecided ones; in each group duplicates last. `is_copy` returns whether the pair with a given
/// index is a duplicate of another pair.
pub fn build_pileup(input: &PileupInput<'_>, is_copy: impl Fn(u32) -> bool) -> EventPileup {
    let columns = PileupColumns::for_change(&input.contig.seq, input.change);
    let mut rows = Vec::new();
    let samples =
        input.votes.iter().map(|v| input.pairs[v.pair as usize].sample).max().unwrap_or(genuma_reads::NORMAL_SAMPLE);
    for sample in genuma_reads::NORMAL_SAMPLE..=samples {
        let mut votes: Vec<&MoleculeVote> =
            input.votes.iter().filter(|v| input.pairs[v.pair as usize].sample == sample).collect();
        let group =
            |v: &MoleculeVote| if v.supports_tumour_allele() { 0 } else { 1 + u8::from(!v.supports_normal_allele()) };
        votes.sort_by_key(|v| (group(v), is_copy(v.pair), v.pair));
        let mut drawn: Vec<(u8, u32, PileupRow)> = votes
            .into_iter()
            .filter_map(|v| Some((group(v), v.pair, columns.row(input, v, is_copy(v.pair))?)))
            .take(MAX_READS_PER_SAMPLE)
            .collect();
        drawn.sort_by_key(|(group, pair, row)| (*group, row.is_duplicate, row.start, *pair));
        rows.extend(drawn.into_iter().map(|(_, _, row)| row));
    }
    let (from, to) = columns.change;
    EventPileup {
        normal: line_text(&columns.normal),
        tumour: line_text(std::slice::from_ref(&columns.tumour)),
        change: (from as u32, to as u32),
        rows,
    }
}

/// Text of an allele line; of two lines, each column shows the one that is visible there.
fn line_text(lines: &[AlleleLine<'_>]) -> String {
    let columns = lines.first().map_or(0, |l| l.cells.len());
    let letter = |c: usize| {
        lines
            .iter()
            .find_map(|line| match line.cells[c] {
                PileupCell::Base(i) => Some(char::from(line.seq[i])),
                PileupCell::Omitted => Some(OMITTED_MARK),
                PileupCell::Gap => Some('-'),
                PileupCell::Outside => None,
            })
            .unwrap_or('-')
    };
    (0..columns).map(letter).collect()
}

impl<'a> PileupColumns<'a> {
    fn for_change(contig: &'a [u8], contig_change: &'a ContigChange) -> PileupColumns<'a> {
        match contig_change.change {
            Change::Allele { .. } => PileupColumns::for_allele(contig, contig_change),
            Change::Junction { .. } => PileupColumns::for_junction(contig, contig_change),
            Change::Novel { .. } => PileupColumns::for_novel(contig, contig_change),
        }
    }

    fn for_allele(contig: &'a [u8], contig_change: &'a ContigChange) -> PileupColumns<'a> {
        let (at, normal) = (&contig_change.contig_range, &contig_change.left_normal);
        let after = (at.end as i32 + contig_change.right_shift).max(at.start as i32) as usize;
        let (tumour_bases, normal_bases) = (at.len(), after - at.start);
        let cell = |i: usize, bases: usize| if i < bases { PileupCell::Base(at.start + i) } else { PileupCell::Gap };
        let change: Vec<[PileupCell; 2]> =
            (0..tumour_bases.max(normal_bases)).map(|i| [cell(i, tumour_bases), cell(i, normal_bases)]).collect();
        let mut cells: Vec<[PileupCell; 2]> =
            (at.start.saturating_sub(FLANK_COLUMNS)..at.start).map(|i| [PileupCell::Base(i); 2]).collect();
        let from = cells.len();
        cells.extend(omit_middle(change));
        let to = cells.len();
        let right = FLANK_COLUMNS.min(contig.len() - at.end).min(normal.len().saturating_sub(after));
        cells.extend((0..right).map(|i| [PileupCell::Base(at.end + i), PileupCell::Base(after + i)]));
        let pick = |which: usize| cells.iter().map(|c| c[which]).collect();
        PileupColumns {
            tumour: AlleleLine { seq: contig, cells: pick(0), shifts: [0; 2] },
            normal: vec![AlleleLine { seq: normal, cells: pick(1), shifts: [0, contig_change.right_shift] }],
            change: (from, to),
        }
    }

    fn for_junction(contig: &'a [u8], contig_change: &'a ContigChange) -> PileupColumns<'a> {
        use PileupCell::{Base, Gap, Omitted, Outside};
        let (at, left, right) = (&contig_change.contig_range, &contig_change.left_normal, &contig_change.right_normal);
        let after = (at.end as i32 + contig_change.right_shift).max(0) as usize;
        // Cells of the tumour, of the normal through the left end, and of the normal through the right end.
        let mut cells: Vec<[PileupCell; 3]> =
            (at.start.saturating_sub(FLANK_COLUMNS)..at.start).map(|i| [Base(i), Base(i), Outside]).collect();
        let from = cells.len();
        cells.extend(omit_middle(at.clone().map(|i| [Base(i), Gap, Outside]).collect()));
        cells.extend((at.start..left.len()).take(EDGE_COLUMNS).map(|i| [Gap, Base(i), Outside]));
        cells.push([Gap, Omitted, Omitted]);
        cells.extend((after.saturating_sub(EDGE_COLUMNS)..after.min(right.len())).map(|i| [Gap, Outside, Base(i)]));
        let to = cells.len();
        let shown = FLANK_COLUMNS.min(contig.len() - at.end).min(right.len().saturating_sub(after));
        cells.extend((0..shown).map(|i| [Base(at.end + i), Outside, Base(after + i)]));
        let pick = |which: usize| cells.iter().map(|c| c[which]).collect();
        PileupColumns {
            tumour: AlleleLine { seq: contig, cells: pick(0), shifts: [0; 2] },
            normal: vec![
                AlleleLine { seq: left, cells: pick(1), shifts: [0; 2] },
                AlleleLine { seq: right, cells: pick(2), shifts: [contig_change.right_shift; 2] },
            ],
            change: (from, to),
        }
    }

    fn for_novel(contig: &'a [u8], contig_change: &'a ContigChange) -> PileupColumns<'a> {
        let known_left = contig_change.left_normal.get(..contig_change.contig_range.start)
            == contig.get(..contig_change.contig_range.start);
        let (normal, shift, edge) = if known_left {
            (&contig_change.left_normal, 0, contig_change.contig_range.start)
        } else {
            (&contig_change.right_normal, contig_change.right_shift, contig_change.contig_range.end)
        };
        let window = edge.saturating_sub(FLANK_COLUMNS)..(edge + FLANK_COLUMNS).min(contig.len());
        let allele_bases = |i: usize| {
            usize::try_from(i as i64 + i64::from(shift))
                .ok()
                .filter(|&n| n < normal.len())
                .map_or(PileupCell::Gap, PileupCell::Base)
        };
        let here = edge - window.start;
        PileupColumns {
            change: if known_left { (here, window.len()) } else { (0, here) },
            tumour: AlleleLine { seq: contig, cells: window.clone().map(PileupCell::Base).collect(), shifts: [0; 2] },
            normal: vec![AlleleLine { seq: normal, cells: window.map(allele_bases).collect(), shifts: [shift; 2] }],
        }
    }

    /// The row of a vote: the mate that distinguishes the alleles best, aligned with the allele that it supports.
    /// `None` if none of its bases is in the window.
    fn row(&self, input: &PileupInput<'_>, vote: &MoleculeVote, copy: bool) -> Option<PileupRow> {
        let pair = &input.pairs[vote.pair as usize];
        let from = input.reads.partition_point(|r| r.pair < vote.pair);
        let (_, read, aligned) = input.reads[from..]
            .iter()
            .take_while(|r| r.pair == vote.pair)
            .filter(|r| r.forward == vote.forward)
            .filter_map(|placed_read| {
                let mate = &pair.mates[placed_read.mate as usize];
                let read = if placed_read.forward { mate.clone() } else { mate.reverse_complement() };
                let tumour = self.tumour.align_read(&read, placed_read);
                let normal = self
                    .normal
                    .iter()
                    .map(|line| line.align_read(&read, placed_read))
                    .min_by_key(|aligned| Reverse(aligned.score))?;
                let contrast = (tumour.score - normal.score).abs();
                Some((contrast, read, if vote.supports_tumour_allele() { tumour } else { normal }))
            })
            .min_by_key(|(contrast, ..)| Reverse(*contrast))?;
        let (from, cells) = aligned.letters(&read)?;
        Some(PileupRow {
            sample: pair.sample,
            supports_tumour_allele: if vote.supports_tumour_allele() {
                Some(true)
            } else {
                vote.supports_normal_allele().then_some(false)
            },
            forward: vote.forward,
            is_duplicate: copy,
            start: from as u32,
            cells,
        })
    }
}

/// Replaces the columns in the middle of a long change by a single omitted column.
fn omit_middle<const N: usize>(columns: Vec<[PileupCell; N]>) -> Vec<[PileupCell; N]> {
    if columns.len() <= 2 * EDGE_COLUMNS + 1 {
        return columns;
    }
    let hidden = &columns[EDGE_COLUMNS..columns.len() - EDGE_COLUMNS];
    let mark = std::array::from_fn(|line| {
        let shows = |wanted: fn(&PileupCell) -> bool| hidden.iter().any(|c| wanted(&c[line]));
        if shows(|c| matches!(c, PileupCell::Base(_))) {
            PileupCell::Omitted
        } else if shows(|c| matches!(c, PileupCell::Gap)) {
            PileupCell::Gap
        } else {
            PileupCell::Outside
        }
    });
    [&columns[..EDGE_COLUMNS], &[mark], &columns[columns.len() - EDGE_COLUMNS..]].concat()
}

impl AlleleLine<'_> {
    /// Aligns a read without gaps with the sequence of this line, at the candidate offset with the highest score.
    fn align_read(&self, read: &OwnedRead, placed_read: &PlacedRead) -> AlignedRead<'_> {
        let score = |at: i32| -> i32 {
            let from = (-at).max(0).min(read.seq.len() as i32);
            let bases = &read.seq[from as usize..];
            let allele_bases = self.seq.get((at + from) as usize..).unwrap_or_default();
            bases.iter().zip(allele_bases).map(|(b, s)| if b == s { 1 } else { -4 }).sum()
        };
        let (score, Reverse(at)) = placed_read
            .offsets
            .iter()
            .flat_map(|at| self.shifts.map(|shift| at + shift))
            .map(|at| (score(at), Reverse(at)))
            .max()
            .unwrap_or((i32::MIN, Reverse(placed_read.offsets[0])));
        AlignedRead { line: self, start: at, score }
    }
}

impl AlignedRead<'_> {
    /// Number of the first column of the read, and the read's characters from there on: `.` for a base equal to the
    /// allele.
    fn letters(&self, read: &OwnedRead) -> Option<(usize, String)> {
        let within = |cell: &PileupCell| match *cell {
            PileupCell::Base(i) => {
                usize::try_from(i as i64 - i64::from(self.start)).ok().filter(|&r| r < read.seq.len())
            }
            _ => None,
        };
        let cells = &self.line.cells;
        let mut from = cells.iter().position(|c| within(c).is_some())?;
        let mut to = cells.iter().rposition(|c| within(c).is_some())? + 1;
        // A read that continues where columns are left out shows the mark.
        let begins_before = within(&cells[from]).is_some_and(|r| r > 0);
        let goes_on = within(&cells[to - 1]).is_some_and(|r| r + 1 < read.seq.len());
        from -= usize::from(begins_before && from > 0 && cells[from - 1] == PileupCell::Omitted);
        to += usize::from(goes_on && cells.get(to) == Some(&PileupCell::Omitted));
        let letters = cells[from..to].iter().map(|cell| match (cell, within(cell)) {
            (PileupCell::Base(i), Some(r)) if read.seq[r] == self.line.seq[*i] => '.',
            (_, Some(r)) => char::from(read.seq[r]),
            (PileupCell::Omitted, None) => OMITTED_MARK,
            (_, None) => '-',
        });
        Some((from, letters.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Breakend, RetainedSide};
    use crate::read_placement::MAX_CANDIDATE_OFFSETS_PER_READ;

    /// Pseudorandom bases without long repeats.
    fn bases(n: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            b"ACGT"[(state >> 33) as usize & 3]
        };
        (0..n).map(|_| next()).collect()
    }

    fn string(seq: &[u8]) -> String {
        String::from_utf8(seq.to_vec()).unwrap()
    }

    /// A contig with one change and reads to draw.
    struct Set {
        contig: AlignedContig,
        finding: ContigChange,
        recruits: Vec<PlacedRead>,
        pairs: Vec<RecruitedPair>,
        votes: Vec<MoleculeVote>,
    }

    impl Set {
        fn new(seq: Vec<u8>, finding: ContigChange) -> Set {
            let contig = AlignedContig {
                novel: vec![true; seq.len()],
                quality_sums: vec![100; seq.len()],
                assembled: 0..seq.len(),
                num_reads: 3,
                changes: vec![finding.clone()],
                diagonals: [None; 2],
                family_alleles: Vec::new(),
                other_loci: Default::default(),
                explanations: Vec::new(),
                seq,
            };
            Set { contig, finding, recruits: Vec::new(), pairs: Vec::new(), votes: Vec::new() }
        }

        /// left + tumour + right in the tumour, left + normal + right in the normal.
        fn allele(left: &[u8], tumour: &[u8], normal: &[u8], right: &[u8]) -> Set {
            let without = [left, normal, right].concat();
            Set::new(
                [left, tumour, right].concat(),
                ContigChange {
                    change: Change::Allele {
                        chrom: 0,
                        pos: left.len(),
                        reference: normal.to_vec(),
                        alternative: tumour.to_vec(),
                    },
                    contig_range: left.len()..left.len() + tumour.len(),
                    left_normal: without.clone(),
                    right_normal: without,
                    right_shift: normal.len() as i32 - tumour.len() as i32,
                    mapq: 60,
                },
            )
        }

        /// Adds a pair with one mate of these bases (read from the other strand if not `forward`), placed by its
        /// k-mers at contig offset `at`.
        fn read(&mut self, sample: u8, seq: &[u8], at: i32, log_odds: f64, forward: bool) {
            let read = OwnedRead { seq: seq.to_vec(), qual: vec![37; seq.len()] };
            let pair = self.pairs.len() as u32;
            self.pairs.push(RecruitedPair {
                name: format!("r{pair}").into_bytes(),
                sample,
                mates: [if forward { read } else { read.reverse_complement() }, OwnedRead::default()],
                id: 0,
                contigs: vec![0],
            });
            self.recruits.push(PlacedRead { pair, mate: 0, forward, offsets: [at; MAX_CANDIDATE_OFFSETS_PER_READ] });
            self.votes.push(MoleculeVote {
                pair,
                log_odds,
                forward,
                is_f1r2: forward,
                distance_from_end: 20,
                quality: 37,
                duplicates: 0,
                counts_in_fraction: true,
            });
        }

        fn draw(&self, copies: &[u32]) -> EventPileup {
            let scene = PileupInput {
                contig: &self.contig,
                change: &self.finding,
                reads: &self.recruits,
                pairs: &self.pairs,
                votes: &self.votes,
            };
            let picture = build_pileup(&scene, |pair| copies.contains(&pair));
            let width = picture.normal.chars().count();
            assert_eq!(picture.tumour.chars().count(), width);
            for row in &picture.rows {
                assert!(row.start as usize + row.cells.chars().count() <= width, "{row:?} leaves the picture");
            }
            picture
        }
    }

    #[test]
    fn a_substitution_shows_both_bases_and_the_reads_in_order() {
        let (left, right) = (bases(200, 1), bases(200, 2));
        let mut set = Set::allele(&left, b"T", b"C", &right);
        let (tumour, normal) = (set.contig.seq.clone(), set.finding.left_normal.clone());
        let mut wrong = tumour[150..250].to_vec();
        wrong[0] = if wrong[0] == b'A' { b'C' } else { b'A' };
        set.read(0, &normal[130..230], 130, -9.0, true);
        set.read(1, &normal[180..280], 180, -9.0, true);
        set.read(1, &tumour[180..280], 180, 9.0, false);
        set.read(1, &wrong, 150, 9.0, true);
        set.read(1, &tumour[150..250], 150, 9.0, true);
        set.read(1, &tumour[190..201], 190, 0.5, true);
        let picture = set.draw(&[4]);
        assert_eq!(picture.normal, string(&normal[140..261]));
        assert_eq!(picture.tumour, string(&tumour[140..261]));
        assert_eq!(picture.change, (60, 61));
        let row = |i: usize| &picture.rows[i];
        assert_eq!((row(0).sample, row(0).start, row(0).supports_tumour_allele), (0, 0, Some(false)));
        assert_eq!(row(0).cells, ".".repeat(90));
        assert_eq!((row(1).sample, row(1).start, row(1).forward), (1, 10, true));
        assert_eq!(row(1).cells, format!("{}{}", char::from(wrong[0]), ".".repeat(99)));
        assert_eq!((row(2).start, row(2).forward, row(2).is_duplicate), (40, false, false));
        assert_eq!(row(2).cells, ".".repeat(81));
        assert_eq!(
            (row(3).supports_tumour_allele, row(3).is_duplicate),
            (Some(true), true),
            "copies come last of their group"
        );
        assert_eq!((row(4).supports_tumour_allele, row(5).supports_tumour_allele), (Some(false), None));
        assert_eq!(row(5).cells, "..........T", "an unclear read is laid on the normal's allele");
    }

    #[test]
    fn a_deletion_puts_gaps_in_the_tumours_reads() {
        let (left, gone, right) = (bases(120, 3), bases(7, 4), bases(120, 5));
        let mut set = Set::allele(&left, b"", &gone, &right);
        let (tumour, normal) = (set.contig.seq.clone(), set.finding.left_normal.clone());
        set.read(0, &normal[80..160], 80, -9.0, true);
        // Anchored on the right flank: contig coordinates there are seven less.
        set.read(0, &normal[100..180], 93, -9.0, true);
        set.read(1, &tumour[100..150], 100, 9.0, true);
        let picture = set.draw(&[]);
        assert_eq!(picture.tumour, string(&left[60..]) + "-------" + &string(&right[..60]));
        assert_eq!(picture.normal, string(&normal[60..187]));
        assert_eq!(picture.change, (60, 67));
        assert_eq!((picture.rows[0].start, picture.rows[0].cells.as_str()), (20, ".".repeat(80).as_str()));
        assert_eq!((picture.rows[1].start, picture.rows[1].cells.as_str()), (40, ".".repeat(80).as_str()));
        assert_eq!(picture.rows[2].cells, format!("{}-------{}", ".".repeat(20), ".".repeat(30)));
    }

    #[test]
    fn a_long_insertion_shows_its_ends() {
        let (left, new, right) = (bases(120, 6), bases(200, 7), bases(40, 8));
        let mut set = Set::allele(&left, &new, b"", &right);
        let (tumour, normal) = (set.contig.seq.clone(), set.finding.left_normal.clone());
        set.read(0, &normal[80..150], 80, -9.0, true);
        set.read(1, &tumour[110..170], 110, 9.0, true);
        set.read(1, &tumour[280..350], 280, 9.0, false);
        let picture = set.draw(&[]);
        let ends = format!("{}…{}", string(&new[..24]), string(&new[176..]));
        assert_eq!(picture.tumour, format!("{}{ends}{}", string(&left[60..]), string(&right)));
        assert_eq!(picture.normal, format!("{}{}{}", string(&left[60..]), "-".repeat(49), string(&right)));
        assert_eq!(picture.change, (60, 109));
        let cells: Vec<(u32, &str)> = picture.rows.iter().map(|r| (r.start, r.cells.as_str())).collect();
        let crossing = format!("{}{}{}", ".".repeat(40), "-".repeat(49), ".".repeat(30));
        assert_eq!(cells[0], (20, crossing.as_str()));
        assert_eq!(cells[1], (50, format!("{}…", ".".repeat(34)).as_str()));
        assert_eq!(cells[2], (84, format!("…{}", ".".repeat(54)).as_str()));
    }

    #[test]
    fn a_junction_keeps_the_normal_whole_on_both_sides() {
        let (left, beyond, before, right) = (bases(150, 9), bases(300, 10), bases(300, 11), bases(150, 12));
        let end = |pos, side| Breakend { chrom: 0, pos, side };
        let finding = ContigChange {
            change: Change::Junction {
                ends: [end(1000, RetainedSide::Left), end(9000, RetainedSide::Right)],
                inserted: b"AC".to_vec(),
                homology: 0,
            },
            contig_range: 150..152,
            left_normal: [&left[..], &beyond].concat(),
            right_normal: [&before[..], &right].concat(),
            right_shift: 300 - 152,
            mapq: 60,
        };
        let mut set = Set::new([&left[..], b"AC", &right].concat(), finding.clone());
        let tumour = set.contig.seq.clone();
        set.read(0, &finding.left_normal[100..200], 100, -9.0, true);
        set.read(0, &finding.right_normal[250..350], 250 - 148, -9.0, true);
        set.read(1, &tumour[110..210], 110, 9.0, true);
        let picture = set.draw(&[]);
        assert_eq!(picture.tumour, format!("{}AC{}{}", string(&left[90..]), "-".repeat(49), string(&right[..60])));
        let apart = format!("{}…{}", string(&beyond[..24]), string(&before[276..]));
        assert_eq!(picture.normal, format!("{}--{apart}{}", string(&left[90..]), string(&right[..60])));
        assert_eq!(picture.change, (60, 111));
        let cells: Vec<(u32, &str)> = picture.rows.iter().map(|r| (r.start, r.cells.as_str())).collect();
        assert_eq!(cells[0], (10, format!("{}--{}…", ".".repeat(50), ".".repeat(24)).as_str()));
        assert_eq!(cells[1], (86, format!("…{}", ".".repeat(74)).as_str()));
        assert_eq!(cells[2], (20, format!("{}{}{}", ".".repeat(42), "-".repeat(49), ".".repeat(58)).as_str()));
    }

    #[test]
    fn novel_sequence_runs_beside_the_genome() {
        let (known, novel, genome) = (bases(100, 13), bases(50, 14), bases(300, 15));
        let end = Breakend { chrom: 0, pos: 500, side: RetainedSide::Left };
        let normal = [&known[..], &genome].concat();
        let finding = ContigChange {
            change: Change::Novel { end, sequence: novel.clone() },
            contig_range: 100..100,
            left_normal: normal.clone(),
            right_normal: normal.clone(),
            right_shift: 0,
            mapq: 60,
        };
        let mut set = Set::new([&known[..], &novel].concat(), finding);
        set.read(0, &normal[70..170], 70, -9.0, true);
        set.read(1, &[&known[70..], &novel].concat(), 70, 9.0, true);
        let right = set.draw(&[]);
        assert_eq!(right.change, (60, 110));
        assert_eq!(right.tumour, string(&known[40..]) + &string(&novel));
        assert_eq!(right.normal, string(&normal[40..150]));
        assert!(right.rows.iter().all(|r| r.start == 30 && r.cells == ".".repeat(80)), "{:?}", right.rows);

        let normal = [&genome[..], &known].concat();
        let finding = ContigChange {
            change: Change::Novel { end: Breakend { side: RetainedSide::Right, ..end }, sequence: novel.clone() },
            contig_range: 50..50,
            left_normal: normal.clone(),
            right_normal: normal.clone(),
            right_shift: 250,
            mapq: 60,
        };
        let mut set = Set::new([&novel[..], &known].concat(), finding);
        set.read(0, &normal[270..370], 20, -9.0, true);
        let left = set.draw(&[]);
        assert_eq!(left.change, (0, 50));
        assert_eq!(left.normal, string(&normal[250..360]));
        assert_eq!((left.rows[0].start, left.rows[0].cells.len()), (20, 90));
    }

    #[test]
    fn at_most_thirty_reads_a_sample_those_with_the_change_first() {
        let (left, right) = (bases(100, 16), bases(100, 17));
        let mut set = Set::allele(&left, b"T", b"C", &right);
        let (tumour, normal) = (set.contig.seq.clone(), set.finding.left_normal.clone());
        for i in 0..50 {
            if i % 5 == 0 {
                set.read(1, &tumour[60 + i % 7..140], 60 + (i % 7) as i32, 9.0, true);
            } else {
                set.read(1, &normal[60 + i % 7..140], 60 + (i % 7) as i32, -9.0, true);
            }
        }
        let picture = set.draw(&[]);
        assert_eq!(picture.rows.len(), 30);
        assert!(picture.rows[..10].iter().all(|r| r.supports_tumour_allele == Some(true)));
        assert!(picture.rows[10..].iter().all(|r| r.supports_tumour_allele == Some(false)));
        assert_eq!(picture, set.draw(&[]));
    }
}
