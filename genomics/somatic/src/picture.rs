//! The reads of all samples laid on the two alleles of a change: what the report draws.
//!
//! A picture is a table of columns: up to [`FLANK`] that both alleles share, the change, up to [`FLANK`] shared again.
//!
//! - Substituted bases stand above each other; of an insertion or deletion one allele has the bases, the other `-`.
//! - A junction is drawn like a deletion of unknown length. The normal's line goes on beyond the left end for
//!   [`EDGE`] bases, then `…`, then come the [`EDGE`] bases before the right end; the tumour's line has `-` there. So
//!   the normal's reads are whole on either side. Bases inserted at the junction stand before that, in columns of
//!   their own.
//! - Where novel sequence begins, both lines run on beside each other to the end of the window.
//! - Of a change longer than two edges the middle is left out, marked by one `…`.
//!
//! A read that favours the tumour's allele is laid on its line, every other one on the normal's.

use std::cmp::Reverse;

use crate::change::Change;
use crate::compare::{Compared, Finding};
use crate::lay::Recruit;
use crate::outcome::{Picture, Row};
use crate::packed::Read;
use crate::recruit::Kept;
use crate::vote::Vote;

/// Columns shown of the sequence beside a change.
const FLANK: usize = 60;
/// Columns shown of each end of a long change.
const EDGE: usize = 24;
/// Most reads drawn of one sample.
const READS: usize = 30;
/// Stands for the columns left out.
const MORE: char = '…';

/// A change and the reads that were weighed for it.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The contig that shows the change.
    pub contig: &'a Compared,
    /// The change: one of the contig's findings.
    pub finding: &'a Finding,
    /// Reads laid on the contig, ordered by pair.
    pub recruits: &'a [Recruit],
    /// The pairs that recruits and votes point into, ordered by sample and name.
    pub pairs: &'a [Kept],
    /// One vote a pair, PCR copies among them.
    pub votes: &'a [Vote],
}

/// What one allele has in one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// The base of its sequence at this index.
    Base(usize),
    /// Nothing, where the other allele has a base.
    Gap,
    /// Bases that are left out.
    More,
    /// The sequence is not shown here at all.
    Outside,
}

/// A sequence, and where its bases stand among the columns.
struct Line<'a> {
    seq: &'a [u8],
    cells: Vec<Cell>,
    /// What to add to a contig offset to get one on `seq`: one for reads anchored left of the change, one for right.
    shifts: [i32; 2],
}

/// All columns of a picture.
struct Columns<'a> {
    tumour: Line<'a>,
    /// The normal's sequence; in two lines for a junction, which has one for each end.
    normal: Vec<Line<'a>>,
    change: (usize, usize),
}

/// A read laid on a line.
struct Laid<'s> {
    line: &'s Line<'s>,
    /// Index on the line's sequence of the read's first base.
    at: i32,
    score: i32,
}

/// Draws a change with at most 30 reads of each sample: first those that have it, then the others, by name.
/// `is_copy` tells whether the pair of that index was left out as a PCR copy.
pub fn picture(scene: &Scene<'_>, is_copy: impl Fn(u32) -> bool) -> Picture {
    let columns = Columns::of(&scene.contig.seq, scene.finding);
    let mut rows = Vec::new();
    let samples =
        scene.votes.iter().map(|v| scene.pairs[v.pair as usize].sample).max().unwrap_or(genuma_reads::NORMAL);
    for sample in genuma_reads::NORMAL..=samples {
        let mut votes: Vec<&Vote> =
            scene.votes.iter().filter(|v| scene.pairs[v.pair as usize].sample == sample).collect();
        let group = |v: &Vote| if v.alternative() { 0 } else { 1 + u8::from(!v.reference()) };
        votes.sort_by_key(|v| (group(v), is_copy(v.pair), v.pair));
        let mut drawn: Vec<(u8, u32, Row)> = votes
            .into_iter()
            .filter_map(|v| Some((group(v), v.pair, columns.row(scene, v, is_copy(v.pair))?)))
            .take(READS)
            .collect();
        drawn.sort_by_key(|(group, pair, row)| (*group, row.copy, row.from, *pair));
        rows.extend(drawn.into_iter().map(|(_, _, row)| row));
    }
    let (from, to) = columns.change;
    Picture {
        normal: text(&columns.normal),
        tumour: text(std::slice::from_ref(&columns.tumour)),
        change: (from as u32, to as u32),
        rows,
    }
}

/// The letters of a line, or of two that take turns.
fn text(lines: &[Line<'_>]) -> String {
    let columns = lines.first().map_or(0, |l| l.cells.len());
    let letter = |c: usize| {
        lines
            .iter()
            .find_map(|line| match line.cells[c] {
                Cell::Base(i) => Some(char::from(line.seq[i])),
                Cell::More => Some(MORE),
                Cell::Gap => Some('-'),
                Cell::Outside => None,
            })
            .unwrap_or('-')
    };
    (0..columns).map(letter).collect()
}

impl<'a> Columns<'a> {
    fn of(contig: &'a [u8], finding: &'a Finding) -> Columns<'a> {
        match finding.change {
            Change::Allele { .. } => Columns::of_allele(contig, finding),
            Change::Junction { .. } => Columns::of_junction(contig, finding),
            Change::Novel { .. } => Columns::of_novel(contig, finding),
        }
    }

    fn of_allele(contig: &'a [u8], finding: &'a Finding) -> Columns<'a> {
        let (at, normal) = (&finding.at, &finding.left_normal);
        let after = (at.end as i32 + finding.right_shift).max(at.start as i32) as usize;
        let (tumour_bases, normal_bases) = (at.len(), after - at.start);
        let cell = |i: usize, bases: usize| if i < bases { Cell::Base(at.start + i) } else { Cell::Gap };
        let change: Vec<[Cell; 2]> = (0..tumour_bases.max(normal_bases))
            .map(|i| [cell(i, tumour_bases), cell(i, normal_bases)])
            .collect();
        let mut cells: Vec<[Cell; 2]> =
            (at.start.saturating_sub(FLANK)..at.start).map(|i| [Cell::Base(i); 2]).collect();
        let from = cells.len();
        cells.extend(shortened(change));
        let to = cells.len();
        let right = FLANK.min(contig.len() - at.end).min(normal.len().saturating_sub(after));
        cells.extend((0..right).map(|i| [Cell::Base(at.end + i), Cell::Base(after + i)]));
        let pick = |which: usize| cells.iter().map(|c| c[which]).collect();
        Columns {
            tumour: Line { seq: contig, cells: pick(0), shifts: [0; 2] },
            normal: vec![Line { seq: normal, cells: pick(1), shifts: [0, finding.right_shift] }],
            change: (from, to),
        }
    }

    fn of_junction(contig: &'a [u8], finding: &'a Finding) -> Columns<'a> {
        use Cell::{Base, Gap, More, Outside};
        let (at, left, right) = (&finding.at, &finding.left_normal, &finding.right_normal);
        let after = (at.end as i32 + finding.right_shift).max(0) as usize;
        // Cells of the tumour, of the normal through the left end, and of the normal through the right end.
        let mut cells: Vec<[Cell; 3]> =
            (at.start.saturating_sub(FLANK)..at.start).map(|i| [Base(i), Base(i), Outside]).collect();
        let from = cells.len();
        cells.extend(shortened(at.clone().map(|i| [Base(i), Gap, Outside]).collect()));
        cells.extend((at.start..left.len()).take(EDGE).map(|i| [Gap, Base(i), Outside]));
        cells.push([Gap, More, More]);
        cells.extend((after.saturating_sub(EDGE)..after.min(right.len())).map(|i| [Gap, Outside, Base(i)]));
        let to = cells.len();
        let shown = FLANK.min(contig.len() - at.end).min(right.len().saturating_sub(after));
        cells.extend((0..shown).map(|i| [Base(at.end + i), Outside, Base(after + i)]));
        let pick = |which: usize| cells.iter().map(|c| c[which]).collect();
        Columns {
            tumour: Line { seq: contig, cells: pick(0), shifts: [0; 2] },
            normal: vec![
                Line { seq: left, cells: pick(1), shifts: [0; 2] },
                Line { seq: right, cells: pick(2), shifts: [finding.right_shift; 2] },
            ],
            change: (from, to),
        }
    }

    fn of_novel(contig: &'a [u8], finding: &'a Finding) -> Columns<'a> {
        let known_left = finding.left_normal.get(..finding.at.start) == contig.get(..finding.at.start);
        let (normal, shift, edge) = if known_left {
            (&finding.left_normal, 0, finding.at.start)
        } else {
            (&finding.right_normal, finding.right_shift, finding.at.end)
        };
        let window = edge.saturating_sub(FLANK)..(edge + FLANK).min(contig.len());
        let beside = |i: usize| {
            usize::try_from(i as i64 + i64::from(shift))
                .ok()
                .filter(|&n| n < normal.len())
                .map_or(Cell::Gap, Cell::Base)
        };
        let here = edge - window.start;
        Columns {
            change: if known_left { (here, window.len()) } else { (0, here) },
            tumour: Line { seq: contig, cells: window.clone().map(Cell::Base).collect(), shifts: [0; 2] },
            normal: vec![Line { seq: normal, cells: window.map(beside).collect(), shifts: [shift; 2] }],
        }
    }

    /// The row of a vote: the mate that tells the alleles apart best, on the allele it favours. `None` when no base of
    /// it is in the window.
    fn row(&self, scene: &Scene<'_>, vote: &Vote, copy: bool) -> Option<Row> {
        let pair = &scene.pairs[vote.pair as usize];
        let from = scene.recruits.partition_point(|r| r.pair < vote.pair);
        let (_, read, laid) = scene.recruits[from..]
            .iter()
            .take_while(|r| r.pair == vote.pair)
            .filter(|r| r.forward == vote.forward)
            .filter_map(|recruit| {
                let mate = &pair.mates[recruit.mate as usize];
                let read = if recruit.forward { mate.clone() } else { mate.reversed() };
                let tumour = self.tumour.lay(&read, recruit);
                let normal = self
                    .normal
                    .iter()
                    .map(|line| line.lay(&read, recruit))
                    .min_by_key(|laid| Reverse(laid.score))?;
                let contrast = (tumour.score - normal.score).abs();
                Some((contrast, read, if vote.alternative() { tumour } else { normal }))
            })
            .min_by_key(|(contrast, ..)| Reverse(*contrast))?;
        let (from, cells) = laid.cells(&read)?;
        Some(Row {
            sample: pair.sample,
            alternative: if vote.alternative() { Some(true) } else { vote.reference().then_some(false) },
            forward: vote.forward,
            copy,
            from: from as u32,
            cells,
        })
    }
}

/// Columns with the middle left out if that makes them fewer.
fn shortened<const N: usize>(columns: Vec<[Cell; N]>) -> Vec<[Cell; N]> {
    if columns.len() <= 2 * EDGE + 1 {
        return columns;
    }
    let hidden = &columns[EDGE..columns.len() - EDGE];
    let mark = std::array::from_fn(|line| {
        let shows = |wanted: fn(&Cell) -> bool| hidden.iter().any(|c| wanted(&c[line]));
        if shows(|c| matches!(c, Cell::Base(_))) {
            Cell::More
        } else if shows(|c| matches!(c, Cell::Gap)) {
            Cell::Gap
        } else {
            Cell::Outside
        }
    });
    [&columns[..EDGE], &[mark], &columns[columns.len() - EDGE..]].concat()
}

impl Line<'_> {
    /// Lays a read without gaps where its k-mers say, at the offset that agrees best.
    fn lay(&self, read: &Read, recruit: &Recruit) -> Laid<'_> {
        let score = |at: i32| -> i32 {
            let from = (-at).max(0).min(read.seq.len() as i32);
            let bases = &read.seq[from as usize..];
            let beside = self.seq.get((at + from) as usize..).unwrap_or_default();
            bases.iter().zip(beside).map(|(b, s)| if b == s { 1 } else { -4 }).sum()
        };
        let (score, Reverse(at)) = recruit
            .at
            .iter()
            .flat_map(|at| self.shifts.map(|shift| at + shift))
            .map(|at| (score(at), Reverse(at)))
            .max()
            .unwrap_or((i32::MIN, Reverse(recruit.at[0])));
        Laid { line: self, at, score }
    }
}

impl Laid<'_> {
    /// First column and the letters from there on.
    fn cells(&self, read: &Read) -> Option<(usize, String)> {
        let within = |cell: &Cell| match *cell {
            Cell::Base(i) => {
                usize::try_from(i as i64 - i64::from(self.at)).ok().filter(|&r| r < read.seq.len())
            }
            _ => None,
        };
        let cells = &self.line.cells;
        let mut from = cells.iter().position(|c| within(c).is_some())?;
        let mut to = cells.iter().rposition(|c| within(c).is_some())? + 1;
        // A read that goes on where columns are left out shows the mark.
        let begins_before = within(&cells[from]).is_some_and(|r| r > 0);
        let goes_on = within(&cells[to - 1]).is_some_and(|r| r + 1 < read.seq.len());
        from -= usize::from(begins_before && from > 0 && cells[from - 1] == Cell::More);
        to += usize::from(goes_on && cells.get(to) == Some(&Cell::More));
        let letters = cells[from..to].iter().map(|cell| match (cell, within(cell)) {
            (Cell::Base(i), Some(r)) if read.seq[r] == self.line.seq[*i] => '.',
            (_, Some(r)) => char::from(read.seq[r]),
            (Cell::More, None) => MORE,
            (_, None) => '-',
        });
        Some((from, letters.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Breakend, Side};
    use crate::lay::OFFSETS;

    /// Bases without repeats of any length that matters here.
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

    /// A contig with one finding and reads to lay on it.
    struct Set {
        contig: Compared,
        finding: Finding,
        recruits: Vec<Recruit>,
        pairs: Vec<Kept>,
        votes: Vec<Vote>,
    }

    impl Set {
        fn new(seq: Vec<u8>, finding: Finding) -> Set {
            let contig = Compared {
                novel: vec![true; seq.len()],
                weight: vec![100; seq.len()],
                assembled: 0..seq.len(),
                depth: 3,
                findings: vec![finding.clone()],
                diagonals: [None; 2],
                seq,
            };
            Set { contig, finding, recruits: Vec::new(), pairs: Vec::new(), votes: Vec::new() }
        }

        /// left + tumour + right in the tumour, left + normal + right in the normal.
        fn allele(left: &[u8], tumour: &[u8], normal: &[u8], right: &[u8]) -> Set {
            let without = [left, normal, right].concat();
            Set::new(
                [left, tumour, right].concat(),
                Finding {
                    change: Change::Allele {
                        chrom: 0,
                        pos: left.len(),
                        reference: normal.to_vec(),
                        alternative: tumour.to_vec(),
                    },
                    at: left.len()..left.len() + tumour.len(),
                    left_normal: without.clone(),
                    right_normal: without,
                    right_shift: normal.len() as i32 - tumour.len() as i32,
                    mapq: 60,
                },
            )
        }

        /// Adds a pair of which one mate (read from the other strand when not `forward`) has these bases, laid by
        /// its k-mers at contig offset `at`.
        fn read(&mut self, sample: u8, seq: &[u8], at: i32, log_odds: f64, forward: bool) {
            let read = Read { seq: seq.to_vec(), qual: vec![37; seq.len()] };
            let pair = self.pairs.len() as u32;
            self.pairs.push(Kept {
                name: format!("r{pair}").into_bytes(),
                sample,
                mates: [if forward { read } else { read.reversed() }, Read::default()],
                id: 0,
                contigs: vec![0],
            });
            self.recruits.push(Recruit { pair, mate: 0, forward, at: [at; OFFSETS] });
            self.votes.push(Vote {
                pair,
                log_odds,
                forward,
                first_forward: forward,
                from_end: 20,
                quality: 37,
                copies: 0,
            });
        }

        fn draw(&self, copies: &[u32]) -> Picture {
            let scene = Scene {
                contig: &self.contig,
                finding: &self.finding,
                recruits: &self.recruits,
                pairs: &self.pairs,
                votes: &self.votes,
            };
            let picture = picture(&scene, |pair| copies.contains(&pair));
            let width = picture.normal.chars().count();
            assert_eq!(picture.tumour.chars().count(), width);
            for row in &picture.rows {
                assert!(row.from as usize + row.cells.chars().count() <= width, "{row:?} leaves the picture");
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
        assert_eq!((row(0).sample, row(0).from, row(0).alternative), (0, 0, Some(false)));
        assert_eq!(row(0).cells, ".".repeat(90));
        assert_eq!((row(1).sample, row(1).from, row(1).forward), (1, 10, true));
        assert_eq!(row(1).cells, format!("{}{}", char::from(wrong[0]), ".".repeat(99)));
        assert_eq!((row(2).from, row(2).forward, row(2).copy), (40, false, false));
        assert_eq!(row(2).cells, ".".repeat(81));
        assert_eq!((row(3).alternative, row(3).copy), (Some(true), true), "copies come last of their group");
        assert_eq!((row(4).alternative, row(5).alternative), (Some(false), None));
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
        assert_eq!((picture.rows[0].from, picture.rows[0].cells.as_str()), (20, ".".repeat(80).as_str()));
        assert_eq!((picture.rows[1].from, picture.rows[1].cells.as_str()), (40, ".".repeat(80).as_str()));
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
        let cells: Vec<(u32, &str)> = picture.rows.iter().map(|r| (r.from, r.cells.as_str())).collect();
        let crossing = format!("{}{}{}", ".".repeat(40), "-".repeat(49), ".".repeat(30));
        assert_eq!(cells[0], (20, crossing.as_str()));
        assert_eq!(cells[1], (50, format!("{}…", ".".repeat(34)).as_str()));
        assert_eq!(cells[2], (84, format!("…{}", ".".repeat(54)).as_str()));
    }

    #[test]
    fn a_junction_keeps_the_normal_whole_on_both_sides() {
        let (left, beyond, before, right) = (bases(150, 9), bases(300, 10), bases(300, 11), bases(150, 12));
        let end = |pos, side| Breakend { chrom: 0, pos, side };
        let finding = Finding {
            change: Change::Junction {
                ends: [end(1000, Side::Left), end(9000, Side::Right)],
                inserted: b"AC".to_vec(),
                homology: 0,
            },
            at: 150..152,
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
        assert_eq!(
            picture.tumour,
            format!("{}AC{}{}", string(&left[90..]), "-".repeat(49), string(&right[..60]))
        );
        let apart = format!("{}…{}", string(&beyond[..24]), string(&before[276..]));
        assert_eq!(picture.normal, format!("{}--{apart}{}", string(&left[90..]), string(&right[..60])));
        assert_eq!(picture.change, (60, 111));
        let cells: Vec<(u32, &str)> = picture.rows.iter().map(|r| (r.from, r.cells.as_str())).collect();
        assert_eq!(cells[0], (10, format!("{}--{}…", ".".repeat(50), ".".repeat(24)).as_str()));
        assert_eq!(cells[1], (86, format!("…{}", ".".repeat(74)).as_str()));
        assert_eq!(
            cells[2],
            (20, format!("{}{}{}", ".".repeat(42), "-".repeat(49), ".".repeat(58)).as_str())
        );
    }

    #[test]
    fn novel_sequence_runs_beside_the_genome() {
        let (known, novel, genome) = (bases(100, 13), bases(50, 14), bases(300, 15));
        let end = Breakend { chrom: 0, pos: 500, side: Side::Left };
        let normal = [&known[..], &genome].concat();
        let finding = Finding {
            change: Change::Novel { end, sequence: novel.clone() },
            at: 100..100,
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
        assert!(right.rows.iter().all(|r| r.from == 30 && r.cells == ".".repeat(80)), "{:?}", right.rows);

        let normal = [&genome[..], &known].concat();
        let finding = Finding {
            change: Change::Novel { end: Breakend { side: Side::Right, ..end }, sequence: novel.clone() },
            at: 50..50,
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
        assert_eq!((left.rows[0].from, left.rows[0].cells.len()), (20, 90));
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
        assert!(picture.rows[..10].iter().all(|r| r.alternative == Some(true)));
        assert!(picture.rows[10..].iter().all(|r| r.alternative == Some(false)));
        assert_eq!(picture, set.draw(&[]));
    }
}
