//! Pairs of a place → molecules: what each says, and which bases round substitutions are wrong.

use genuma_reads::dna;
use genuma_somatic::molecule::Molecules;

use crate::change::Class;
use crate::look::{CLEAR, CLEAR_LENGTH, SAYS};
use crate::place::{Place, WATCHED};
use crate::seen::{Letters, Seen};

/// Positions watched round a substitution.
const POSITIONS: usize = 2 * WATCHED;
/// Share of the molecules that show a base from which on it is an allele, and fewest of them.
const ALLELE: f64 = 0.05;
const FEWEST: u32 = 3;

/// A kind of substitution, by the bases before and behind it, as the strand says that read 1 shows: `64` contexts of four bases each.
pub const KINDS: usize = 256;

/// The kind of a substitution of `middle` by `new` between two bases, for molecules whose read 1 runs with the reference or against it. `None` beside letters that are
/// no bases.
pub fn kind([before, middle, behind]: [u8; 3], new: u8, first_forward: bool) -> Option<usize> {
    let turned = |code: u8| if first_forward { code } else { 3 - code };
    let all = [before, middle, behind].map(dna::code);
    if all.iter().any(|&code| code > 3) || new > 3 {
        return None;
    }
    let [a, b, c] = if first_forward { all } else { [all[2], all[1], all[0]] };
    let index = [a, b, c, new].iter().fold(0, |index, &code| index << 2 | usize::from(turned(code)));
    Some(index)
}

/// Molecules of a place in one sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Votes {
    /// With the change, by whether read 1 runs with the place.
    pub changed: [u32; 2],
    /// Without it, the same; where both ends of a junction are places of their own, the mean of them.
    pub unchanged: [f64; 2],
    /// Pairs that count as copies of others.
    pub copies: u32,
    /// Molecules whose reads contradict each other.
    pub torn: u32,
    /// Molecules of which no read says enough.
    pub unclear: u32,
}

impl Votes {
    /// Molecules with the change.
    pub fn with(&self) -> u64 {
        self.changed.iter().map(|&n| u64::from(n)).sum()
    }

    /// All molecules that say something.
    pub fn all(&self) -> u64 {
        self.with() + self.unchanged.iter().sum::<f64>().round() as u64
    }
}

/// How often bases round a substitution were right and wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Molecules by kind of substitution that their base might have shown.
    pub seen: Vec<u32>,
    /// Those that showed it.
    pub wrong: Vec<u32>,
    /// By position and base: molecules by orientation that were watched, their kinds, and those that were wrong.
    pub cells: Vec<Spot>,
}

/// A base that a position might have shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spot {
    /// Molecules by orientation.
    pub seen: [u32; 2],
    /// The kind of substitution in either orientation.
    pub kinds: [u8; 2],
    /// Molecules that showed it.
    pub wrong: u32,
}

/// Adds up what one molecule says: `None` when its reads contradict each other.
fn sum(copies: &[&Seen], frame: usize) -> Option<i32> {
    let odds = || copies.iter().map(|s| i32::from(s.odds[frame]));
    let torn = odds().any(|o| o >= SAYS) && odds().any(|o| o <= -SAYS);
    (!torn).then(|| odds().sum())
}

/// Judges the pairs of one place and sample.
pub fn of(place: &Place, seen: &[Seen]) -> (Votes, Option<Watched>) {
    let letters: Vec<Letters> = seen.iter().map(Letters::of).collect();
    let members: Vec<u32> = (0..seen.len() as u32).collect();
    let mut votes = Votes::default();
    let mut tally = place.is_substitution().then(|| Tally::new(place));
    let clear = if place.is_substitution() { CLEAR } else { CLEAR_LENGTH };
    for molecule in Molecules::among(&members, &letters).groups() {
        let copies: Vec<&Seen> = molecule.iter().map(|&i| &seen[i as usize]).collect();
        votes.copies += copies.len() as u32 - 1;
        let side = usize::from(copies[0].first_forward);
        let frames = [sum(&copies, 0), sum(&copies, 1)];
        let clearly = |way: i32| frames.map(|f| f.is_some_and(|odds| odds * way >= clear));
        let (with, without) = (clearly(1), clearly(-1));
        let against = with.contains(&true) && without.contains(&true);
        if copies.iter().any(|s| s.torn) || frames.contains(&None) || against {
            votes.torn += 1;
        } else if with.contains(&true) {
            votes.changed[side] += 1;
        } else if without.contains(&true) {
            // Both ends of a small change are one place; others have molecules of their own.
            let ends =
                if place.gap.is_some() || place.left.is_none() || place.right.is_none() { 1.0 } else { 0.5 };
            let n = without.iter().filter(|w| **w).count() as f64;
            votes.unchanged[side] += if ends == 1.0 { 1.0 } else { ends * n };
        } else if copies.iter().any(|s| s.odds != [0; 2]) {
            votes.unclear += 1;
        }
        if let Some(tally) = &mut tally {
            tally.add(&copies, side);
        }
    }
    (votes, tally.map(|tally| tally.watched(place)))
}

/// Molecules round a substitution.
struct Tally {
    /// By position and orientation.
    right: Vec<[u32; 2]>,
    /// By position, base and orientation.
    wrong: Vec<[[u32; 2]; 4]>,
    /// Positions that other changes touch.
    touched: u128,
}

impl Tally {
    fn new(place: &Place) -> Tally {
        // Where one base is looked for its place is watched for the others; several bases are a change of their own.
        let own = u128::from(place.class == Class::Snv) << WATCHED;
        let touched = place.touched & !own;
        Tally { right: vec![[0; 2]; POSITIONS], wrong: vec![[[0; 2]; 4]; POSITIONS], touched }
    }

    /// Adds a molecule: a base that its reads agree on.
    fn add(&mut self, copies: &[&Seen], side: usize) {
        let mut good = copies.iter().fold(0, |good, s| good | s.good);
        for s in copies {
            for wrong in &s.wrong[..usize::from(s.wrongs)] {
                let others = || {
                    copies.iter().flat_map(|c| &c.wrong[..usize::from(c.wrongs)]).filter(|w| w.at == wrong.at)
                };
                // The first copy that has it speaks for all.
                let first = others().next().is_some_and(|w| std::ptr::eq(w, wrong));
                let agree = others().all(|w| w.base == wrong.base);
                let odds: i32 = others().map(|w| i32::from(w.odds)).sum();
                if good >> wrong.at & 1 == 1 || !agree {
                    good &= !(1u128 << wrong.at);
                } else if first && odds >= CLEAR {
                    self.wrong[usize::from(wrong.at)][usize::from(wrong.base)][side] += 1;
                }
            }
        }
        good &= !self.touched;
        while good != 0 {
            self.right[good.trailing_zeros() as usize][side] += 1;
            good &= good - 1;
        }
    }

    /// What is left when alleles are taken out: those of the germline, and the changes that are looked for.
    fn watched(self, place: &Place) -> Watched {
        let mut watched = Watched { seen: vec![0; KINDS], wrong: vec![0; KINDS], cells: Vec::new() };
        let Some((reference, cut)) = &place.left else { return watched };
        for at in 0..POSITIONS {
            let Some(middle) = (cut + at).checked_sub(WATCHED).filter(|&m| m > 0 && m + 1 < reference.len())
            else {
                continue;
            };
            let inside = at >= WATCHED && at < WATCHED + place.inserted();
            if self.touched >> at & 1 == 1 {
                continue;
            }
            let context = [reference[middle - 1], reference[middle], reference[middle + 1]];
            let wrong = &self.wrong[at];
            let right = self.right[at];
            let all: u32 = right.iter().sum::<u32>() + wrong.iter().flatten().sum::<u32>();
            let own = inside.then(|| dna::code(place.alternative[place.cuts[0] + at - WATCHED]));
            let others = || (0..4u8).filter(|&base| Some(base) != own);
            let most = others().map(|base| wrong[usize::from(base)].iter().sum::<u32>()).max().unwrap_or(0);
            if most >= FEWEST && f64::from(most) >= ALLELE * f64::from(all) {
                continue;
            }
            for base in others().filter(|&base| base != dna::code(context[1])) {
                let found = wrong[usize::from(base)];
                let mut spot = Spot { seen: [0; 2], kinds: [0; 2], wrong: found.iter().sum() };
                for side in 0..2 {
                    let Some(kind) = kind(context, base, side == 1) else { continue };
                    spot.seen[side] = right[side] + found[side];
                    spot.kinds[side] = kind as u8;
                    watched.seen[kind] += spot.seen[side];
                    watched.wrong[kind] += found[side];
                }
                watched.cells.push(spot);
            }
        }
        watched
    }
}
