//! Where a molecule tells whether it has a change: the sequence with it, and the sequences without.
//!
//! A place has two frames. In the left one reads are laid by what stands before the junction, in the right one by what stands behind it; the
//! reference goes on from either in its own way. So a read need not have both sides, and one with an unknown variant on one side is laid by the other.

use std::collections::BTreeSet;

use crate::change::{Breakend, Change, Class, Junction, Side};
use crate::windows::{Wanted, Window};

/// Bases on each side of a junction.
pub const FLANK: usize = 160;

/// A junction of a change, spelled.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Index of the change.
    pub change: usize,
    /// Its kind.
    pub class: Class,
    /// The sequence with the change.
    pub alternative: Vec<u8>,
    /// Where in it the first side ends, and where the second begins.
    pub cuts: [usize; 2],
    /// The reference as it goes on behind the first side, and how many bases are before the cut; absent where there is no first side.
    pub left: Option<(Vec<u8>, usize)>,
    /// The reference as it comes to the second side, and how many bases are before that.
    pub right: Option<(Vec<u8>, usize)>,
    /// Bases of the reference between both sides, where one read sees both.
    pub gap: Option<usize>,
    /// Positions of the left frame, from 64 before the cut on, that other changes of the file touch.
    pub touched: u128,
    /// The tandem repeat whose length changes: bases of its unit, and of the repeat.
    pub repeat: Option<(usize, usize)>,
}

/// Bases before the cut of the first position that is watched for errors; as many are watched behind it.
pub(crate) const WATCHED: usize = 64;

impl Place {
    /// Whether the change is of as many bases as it takes the place of: then there is one frame.
    pub fn is_substitution(&self) -> bool {
        self.gap == Some(self.cuts[1] - self.cuts[0])
    }

    /// Bases of the alternative allele between both sides.
    pub fn inserted(&self) -> usize {
        self.cuts[1] - self.cuts[0]
    }
}

/// The stretches of the reference that a change is spelled of: two for each junction, one for what REF should be.
pub fn wanted(change: &Change) -> Vec<Wanted> {
    let around = |end: &Breakend| Wanted {
        chrom: end.chrom.clone(),
        from: (end.pos + 1).saturating_sub(2 * FLANK),
        to: end.pos + 2 * FLANK,
    };
    let record = &change.record;
    let start = record.pos - 1;
    let own = Wanted {
        chrom: record.chrom.clone(),
        from: start,
        to: start + change.reference.as_ref().map_or(1, String::len),
    };
    let nothing = || Wanted { chrom: record.chrom.clone(), from: start, to: start };
    let ends = change.junctions.iter().flat_map(|j| [&j.from, &j.to]);
    ends.map(|end| end.as_ref().map_or_else(nothing, around)).chain([own]).collect()
}

/// The kept bases at a breakend and those that the reference has beyond it, both read towards the junction's other side.
fn sides(end: &Breakend, window: &Window) -> [Vec<u8>; 2] {
    let (before, behind) = match end.side {
        Side::Left => (end.pos + 1 - FLANK.min(end.pos + 1)..end.pos + 1, end.pos + 1..end.pos + 1 + FLANK),
        Side::Right => (end.pos - FLANK.min(end.pos)..end.pos, end.pos..end.pos + FLANK),
    };
    let (before, behind) = (window.slice(before.start, before.end), window.slice(behind.start, behind.end));
    match end.side {
        Side::Left => [before.to_vec(), behind.to_vec()],
        Side::Right => [genuma_reads::dna::revcomp(behind), genuma_reads::dna::revcomp(before)],
    }
}

/// Spells a junction. `windows` are those of its two ends; `touched` the positions of the sequence that other changes touch.
pub fn spell(
    change: usize,
    of: &Change,
    junction: &Junction,
    windows: [&Window; 2],
    touched: &BTreeSet<usize>,
) -> Place {
    let [from, to] = [&junction.from, &junction.to];
    let first = from.as_ref().map(|end| sides(end, windows[0]));
    let second = to.as_ref().map(|end| {
        // Read away from the junction: turned round.
        let [kept, beyond] = sides(end, windows[1]);
        [genuma_reads::dna::revcomp(&kept), genuma_reads::dna::revcomp(&beyond)]
    });
    let part = |side: &Option<[Vec<u8>; 2]>, i: usize| side.as_ref().map_or(Vec::new(), |s| s[i].clone());
    let cut = part(&first, 0).len();
    let alternative = [part(&first, 0), junction.inserted.clone(), part(&second, 0)].concat();
    let mut place = Place {
        change,
        class: of.class,
        alternative,
        cuts: [cut, cut + junction.inserted.len()],
        left: first.as_ref().map(|[kept, beyond]| ([&kept[..], beyond].concat(), kept.len())),
        right: second.as_ref().map(|[kept, beyond]| ([&beyond[..], kept].concat(), beyond.len())),
        gap: junction.gap(),
        touched: 0,
        repeat: None,
    };
    if let (Some(from), true) = (from, place.is_substitution()) {
        let first = (from.pos + 1) as i64 - WATCHED as i64;
        for &pos in touched.range((first.max(0) as usize)..(first + 128) as usize) {
            place.touched |= 1 << (pos as i64 - first);
        }
    }
    place.repeat = repeat(&place);
    place
}

/// The tandem repeat that loses or gains bases, if there is one: its unit and its length in the reference, or with the change if it is longer then.
fn repeat(place: &Place) -> Option<(usize, usize)> {
    let (gap, inserted, (seq, cut)) = (place.gap?, place.inserted(), place.left.as_ref()?);
    let (longer, from, changed) = match (gap, inserted) {
        (gap, 0) if gap > 0 => (seq, *cut, gap),
        (0, inserted) if inserted > 0 => (&place.alternative, place.cuts[0], inserted),
        _ => return None,
    };
    let bases = longer.get(from..from + changed)?;
    let unit =
        (1..=changed).find(|&p| changed % p == 0 && bases.iter().zip(&bases[p..]).all(|(a, b)| a == b))?;
    let repeats = |i: usize| longer[i] == longer[i + unit];
    let before = (0..from).rev().take_while(|&i| repeats(i)).count();
    let behind = (from..longer.len() - unit).take_while(|&i| repeats(i)).count();
    let length = before + behind + unit;
    (length > changed.max(unit) && length >= 2 * unit).then_some((unit, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Record;

    /// 1 kb of random bases with a repeat of ten A at 500.
    fn genome() -> Vec<u8> {
        let mut x = 5u64;
        let mut seq: Vec<u8> = (0..1000)
            .map(|_| {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                b"ACGT"[(x >> 62) as usize]
            })
            .collect();
        seq[499..511].copy_from_slice(b"CAAAAAAAAAAG");
        seq
    }

    fn places(record: Record, touched: &[usize]) -> Vec<Place> {
        let change = Change::of(Record { chrom: "c".into(), ..record }).unwrap().unwrap();
        let windows: Vec<Window> = wanted(&change)
            .iter()
            .map(|w| Window { from: w.from, bases: genome()[w.from..w.to.min(1000)].to_vec(), there: true })
            .collect();
        let touched = touched.iter().copied().collect();
        let each = change.junctions.iter().enumerate();
        each.map(|(j, junction)| {
            spell(0, &change, junction, [&windows[2 * j], &windows[2 * j + 1]], &touched)
        })
        .collect()
    }

    #[test]
    fn alleles_are_spelled_with_what_stands_around_them() {
        let g = genome();
        let base = |pos: usize| (g[pos] as char).to_string();
        let other = if g[299] == b'A' { "C" } else { "A" };
        let snv = Record { pos: 300, reference: base(299), alternate: other.into(), ..Record::default() };
        let [place] = &places(snv, &[235, 290, 299, 362, 363])[..] else { panic!("one place") };
        assert!(place.is_substitution() && place.repeat.is_none());
        assert_eq!(place.alternative, [&g[139..299], other.as_bytes(), &g[300..460]].concat());
        assert_eq!(place.left.as_ref().unwrap().0, g[139..459]);
        assert_eq!(place.right.as_ref().unwrap(), &(g[140..460].to_vec(), 160));
        assert_eq!(place.touched, 1 | 1 << 55 | 1 << 64 | 1 << 127);
        // At the end of the sequence there is less.
        let last = Record { pos: 1000, reference: base(999), alternate: other.into(), ..Record::default() };
        let place = &places(last, &[])[0];
        assert_eq!((place.cuts, place.alternative.len()), ([160, 161], 161));
    }

    #[test]
    fn repeats_that_change_their_length_are_known() {
        let shorter = Record { pos: 500, reference: "CA".into(), alternate: "C".into(), ..Record::default() };
        assert_eq!(places(shorter, &[])[0].repeat, Some((1, 10)));
        let longer = Record { pos: 500, reference: "C".into(), alternate: "CAA".into(), ..Record::default() };
        assert_eq!(places(longer, &[])[0].repeat, Some((1, 12)));
        let novel =
            Record { pos: 500, reference: "C".into(), alternate: "CGTTGC".into(), ..Record::default() };
        assert_eq!(places(novel, &[])[0].repeat, None);
    }

    #[test]
    fn an_inversion_is_two_junctions_of_turned_sides() {
        let g = genome();
        let record = Record {
            pos: 300,
            reference: "N".into(),
            alternate: "<INV>".into(),
            end: Some(700),
            ..Record::default()
        };
        let [one, two] = &places(record, &[])[..] else { panic!("two places") };
        let turned = genuma_reads::dna::revcomp(&g[540..700]);
        assert_eq!(one.alternative, [&g[140..300], &turned].concat());
        assert_eq!(one.left.as_ref().unwrap().0, g[140..460]);
        assert_eq!(one.right.as_ref().unwrap().0, genuma_reads::dna::revcomp(&g[540..860]));
        assert_eq!(two.alternative, [&genuma_reads::dna::revcomp(&g[300..460]), &g[700..860]].concat());
        assert!(one.gap.is_none());
    }
}
