//! Records of a VCF file as what they put side by side: junctions between two places of the reference, with bases between them.

use crate::error::Error;

/// Longest change of a few bases: what is lost of the reference and what takes its place, bp. Beyond, both ends are places of their own.
pub const SMALL: usize = 50;

/// What a VCF record says of one alternate allele.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// CHROM.
    pub chrom: String,
    /// POS, from 1.
    pub pos: usize,
    /// ID.
    pub id: String,
    /// REF, upper case.
    pub reference: String,
    /// ALT.
    pub alternate: String,
    /// END of INFO.
    pub end: Option<usize>,
    /// Bases inserted at the junction (SVINSSEQ), and what is known of either side of a long insertion (LEFT_SVINSSEQ, RIGHT_SVINSSEQ).
    pub inserted: [Option<String>; 3],
    /// Which ends are joined, as Delly says it (CT): `3to3`, `5to5` and so on.
    pub joined: Option<String>,
    /// The other chromosome and position of a breakend without a mate in ALT (CHR2, POS2 or END).
    pub mate: Option<(String, usize)>,
    /// Bases inserted that the record does not give (INSLEN).
    pub hidden: usize,
    /// Whether positions are guesses (IMPRECISE).
    pub imprecise: bool,
    /// Share of the first tumour's reads that have it.
    pub share: Option<f64>,
    /// Where it stands: the line of its file, from 0, and which of the line's alternate alleles it is.
    pub stands: (usize, usize),
}

impl Record {
    /// How it is named: CHROM:POS:REF>ALT, long alleles shortened.
    pub fn name(&self) -> String {
        let short = |bases: &str| match bases.char_indices().nth(24) {
            Some((at, _)) => format!("{}...({} bases)", &bases[..at], bases.len()),
            None => bases.to_owned(),
        };
        format!("{}:{}:{}>{}", self.chrom, self.pos, short(&self.reference), short(&self.alternate))
    }
}

/// Which part of the reference beside a breakend is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// What lies left of it, up to and with its base.
    Left,
    /// What lies right of it, from its base on.
    Right,
}

/// One end of a junction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Breakend {
    /// Name of the sequence.
    pub chrom: String,
    /// The last base that is kept, 0-based.
    pub pos: usize,
    /// Where the kept sequence lies.
    pub side: Side,
}

/// Two places of the reference that became neighbours. One of them may be unknown, as at either side of a long insertion.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Junction {
    /// Where it is read from.
    pub from: Option<Breakend>,
    /// Bases between, read from the one to the other.
    pub inserted: Vec<u8>,
    /// Where it is read to.
    pub to: Option<Breakend>,
}

impl Junction {
    /// The same read from the other side.
    fn turned(&self) -> Junction {
        let inserted = genuma_reads::dna::revcomp(&self.inserted);
        Junction { from: self.to.clone(), inserted, to: self.from.clone() }
    }

    /// Bases of the reference that are gone, where both ends lie so near that one read sees both.
    pub fn gap(&self) -> Option<usize> {
        let (a, b) = (self.from.as_ref()?, self.to.as_ref()?);
        let forward = a.chrom == b.chrom && a.side == Side::Left && b.side == Side::Right && b.pos > a.pos;
        forward.then(|| b.pos - a.pos - 1).filter(|gap| *gap <= SMALL)
    }
}

/// Kinds of changes, as far as reads err differently about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Class {
    /// One base for another.
    Snv,
    /// Several bases for as many.
    Mnv,
    /// Up to [`SMALL`] bases lost, put in, or both.
    Indel,
    /// All else.
    Sv,
}

impl Class {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Snv => "SNV",
            Class::Mnv => "MNV",
            Class::Indel => "INDEL",
            Class::Sv => "SV",
        }
    }
}

/// What a record is looked for by.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The record as it came.
    pub record: Record,
    /// Its kind.
    pub class: Class,
    /// What it puts side by side; any of it bears it out.
    pub junctions: Vec<Junction>,
    /// What the reference should have at POS.
    pub reference: Option<String>,
}

/// Why a record cannot be looked for.
pub type Why = &'static str;

fn bases(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b"ACGTN".contains(&b))
}

/// Whether all letters are bases, or stand for several (IUPAC).
fn letters(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b"ACGTNRYKMSWBDHV".contains(&b))
}

fn join(from: Breakend, inserted: &[u8], to: Breakend) -> Junction {
    Junction { from: Some(from), inserted: inserted.to_vec(), to: Some(to) }
}

impl Change {
    /// Understands a record.
    ///
    /// # Errors
    /// `Err` for a record that says nonsense, which whoever wrote it has to look at; `Ok(Err)` for one that cannot be tracked, and why.
    pub fn of(record: Record) -> Result<Result<Change, (Record, Why)>, Error> {
        let wrong = |what: &str| Err(Error::Record { record: record.name(), what: what.to_owned() });
        // A telomere, as other callers write breakends there.
        let Some(start) = record.pos.checked_sub(1) else {
            return Ok(Err((record, "stands before the first base")));
        };
        let end = |pos: usize, side: Side| Breakend { chrom: record.chrom.clone(), pos, side };
        let alternate = record.alternate.to_ascii_uppercase();
        let symbolic = alternate.starts_with('<');
        if symbolic && record.imprecise {
            return Ok(Err((record, "its positions are not exact (IMPRECISE)")));
        }
        if record.hidden > 0 && record.inserted[0].is_none() && symbolic {
            return Ok(Err((record, "bases inserted at its junction are not given")));
        }
        let inserted = record.inserted[0].as_deref().unwrap_or_default().to_ascii_uppercase().into_bytes();
        let last = record.end.filter(|&last| last > start + 1);
        use Side::{Left, Right};
        let mut class = Class::Sv;
        let mut expected = None;
        let junctions = match alternate.as_str() {
            "<DEL>" | "<DUP>" | "<DUP:TANDEM>" | "<INV>" => {
                let Some(last) = last else { return Ok(Err((record, "no END behind POS, and no SVLEN"))) };
                let left_to_left = || join(end(start, Left), &inserted, end(last - 1, Left));
                let right_to_right = || join(end(start + 1, Right), &inserted, end(last, Right));
                match alternate.as_str() {
                    "<DEL>" => vec![join(end(start, Left), &inserted, end(last, Right))],
                    "<INV>" => match record.joined.as_deref() {
                        Some("3to3") => vec![left_to_left()],
                        Some("5to5") => vec![right_to_right()],
                        _ => vec![left_to_left(), right_to_right()],
                    },
                    _ => vec![join(end(last - 1, Left), &inserted, end(start + 1, Right))],
                }
            }
            "<INS>" => {
                let known = |text: &Option<String>| {
                    text.as_deref().filter(|t| bases(&t.to_ascii_uppercase())).map(str::to_ascii_uppercase)
                };
                let [whole, before, behind] = record.inserted.each_ref().map(known);
                let (here, next) = (end(start, Left), end(start + 1, Right));
                if let Some(whole) = whole {
                    vec![join(here, whole.as_bytes(), next)]
                } else {
                    let before =
                        before.map(|b| Junction { from: Some(here), inserted: b.into_bytes(), to: None });
                    let behind =
                        behind.map(|b| Junction { from: None, inserted: b.into_bytes(), to: Some(next) });
                    let known: Vec<Junction> = before.into_iter().chain(behind).collect();
                    if known.is_empty() {
                        return Ok(Err((record, "an insertion without its sequence")));
                    }
                    known
                }
            }
            "<BND>" | "<TRA>" => {
                let (Some((chrom, pos)), Some(joined)) = (&record.mate, record.joined.as_deref()) else {
                    return Ok(Err((record, "a breakend without a mate's place and direction")));
                };
                let Some(there) = pos.checked_sub(1) else { return wrong("positions begin at 1") };
                let (one, other) = match joined {
                    "3to3" => (Left, Left),
                    "3to5" => (Left, Right),
                    "5to3" => (Right, Left),
                    _ => (Right, Right),
                };
                vec![join(
                    end(start, one),
                    &inserted,
                    Breakend { chrom: chrom.clone(), pos: there, side: other },
                )]
            }
            _ if symbolic => return Ok(Err((record, "a symbolic allele of another kind"))),
            _ if alternate.contains(['[', ']']) => match breakend(&record.alternate, end(start, Left)) {
                Some(junction) => vec![junction],
                None => return wrong("no breakend that can be understood"),
            },
            _ if alternate.starts_with('.') || alternate.ends_with('.') => {
                return Ok(Err((record, "a single breakend")));
            }
            _ => {
                if !letters(&record.reference) || !letters(&alternate) {
                    return wrong("alleles have other letters than those of bases");
                }
                if !bases(&record.reference) || !bases(&alternate) {
                    return Ok(Err((record, "alleles have letters that stand for several bases")));
                }
                expected = Some(record.reference.clone());
                let (old, new) = (record.reference.as_bytes(), alternate.as_bytes());
                let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
                let (old, new) = (&old[..old.len() - same_end], &new[..new.len() - same_end]);
                let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
                let (old, new) = (&old[same..], &new[same..]);
                if old.is_empty() && new.is_empty() {
                    return wrong("REF and ALT are the same");
                }
                class = match (old.len(), new.len()) {
                    (1, 1) => Class::Snv,
                    (a, b) if a == b && a <= SMALL => Class::Mnv,
                    (a, b) if a.max(b) <= SMALL => Class::Indel,
                    _ => Class::Sv,
                };
                let begin = start + same;
                let from = begin.checked_sub(1).map(|pos| end(pos, Left));
                vec![Junction { from, inserted: new.to_vec(), to: Some(end(begin + old.len(), Right)) }]
            }
        };
        Ok(Ok(Change { class, junctions, reference: expected, record }))
    }

    /// What two records that say the same have in common, whichever end they begin with.
    pub fn key(&self) -> Vec<Junction> {
        let mut all: Vec<Junction> = self.junctions.iter().map(|j| j.clone().min(j.turned())).collect();
        all.sort();
        all
    }
}

/// A breakend's ALT: `t[p[`, `t]p]`, `]p]t` or `[p[t` (VCF 4.3, section 5.4).
fn breakend(alternate: &str, here: Breakend) -> Option<Junction> {
    let first = alternate.starts_with(['[', ']']);
    let bracket = if alternate.contains('[') { '[' } else { ']' };
    let mut parts = alternate.split(bracket);
    let (before, mate, after) = (parts.next()?, parts.next()?, parts.next()?);
    let (chrom, pos) = mate.rsplit_once(':')?;
    let pos = pos.parse::<usize>().ok()?.checked_sub(1)?;
    let chrom = chrom.trim_start_matches('<').trim_end_matches('>').to_owned();
    let there = Breakend { chrom, pos, side: if bracket == '[' { Side::Right } else { Side::Left } };
    let letters = if first { after } else { before }.to_ascii_uppercase().into_bytes();
    if !letters.iter().all(|b| b"ACGTN".contains(b)) {
        return None;
    }
    // One letter is the base at the breakend itself; the others stand between the ends.
    Some(if first {
        let inserted = letters.split_last()?.1.to_vec();
        Junction { from: Some(there), inserted, to: Some(Breakend { side: Side::Right, ..here }) }
    } else {
        Junction { from: Some(here), inserted: letters.split_first()?.1.to_vec(), to: Some(there) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(alternate: &str, edit: impl FnOnce(&mut Record)) -> Change {
        let mut record = Record {
            chrom: "c".into(),
            pos: 5,
            reference: "A".into(),
            alternate: alternate.into(),
            ..Record::default()
        };
        edit(&mut record);
        Change::of(record).expect("understood").expect("trackable")
    }

    fn ends(junction: &Junction) -> [Option<(usize, Side)>; 2] {
        [&junction.from, &junction.to].map(|end| end.as_ref().map(|e| (e.pos, e.side)))
    }

    #[test]
    fn alleles_are_cut_to_what_differs() {
        use Side::{Left, Right};
        for (reference, alternate, class, from, inserted, to) in [
            ("A", "G", Class::Snv, 3, "G", 5),
            ("AC", "GT", Class::Mnv, 3, "GT", 6),
            ("ACC", "A", Class::Indel, 4, "", 7),
            ("A", "ATT", Class::Indel, 4, "TT", 5),
            ("ACG", "ATG", Class::Snv, 4, "T", 6),
        ] {
            let made = change(alternate, |r| r.reference = reference.into());
            assert_eq!(made.class, class, "{reference}>{alternate}");
            assert_eq!(ends(&made.junctions[0]), [Some((from, Left)), Some((to, Right))]);
            assert_eq!(made.junctions[0].inserted, inserted.as_bytes());
            assert_eq!(made.junctions[0].gap(), Some(to - from - 1));
        }
        let first = change("C", |r| r.pos = 1);
        assert_eq!(ends(&first.junctions[0]), [None, Some((1, Right))]);
    }

    #[test]
    fn symbolic_alleles_and_breakends_are_junctions() {
        use Side::{Left, Right};
        let ended = |r: &mut Record| r.end = Some(1015);
        let of = |made: &Change| made.junctions.iter().map(ends).collect::<Vec<_>>();
        assert_eq!(of(&change("<DEL>", ended)), [[Some((4, Left)), Some((1015, Right))]]);
        assert_eq!(of(&change("<DUP>", ended)), [[Some((1014, Left)), Some((5, Right))]]);
        let both = [[Some((4, Left)), Some((1014, Left))], [Some((5, Right)), Some((1015, Right))]];
        assert_eq!(of(&change("<INV>", ended)), both);
        let one = |r: &mut Record| (r.end, r.joined) = (Some(1015), Some("5to5".into()));
        assert_eq!(of(&change("<INV>", one)), both[1..]);
        assert_eq!(of(&change("AGG[d:9[", |_| ())), [[Some((4, Left)), Some((8, Right))]]);
        assert_eq!(change("AGG[d:9[", |_| ()).junctions[0].inserted, b"GG");
        assert_eq!(of(&change("]d:9]GCA", |_| ())), [[Some((8, Left)), Some((4, Right))]]);
        assert_eq!(change("]d:9]GCA", |_| ()).junctions[0].inserted, b"GC");
        assert_eq!(of(&change("[d:9[A", |_| ())), [[Some((8, Right)), Some((4, Right))]]);
        let half = change("<INS>", |r| r.inserted[1] = Some("ACGT".into()));
        assert_eq!(of(&half), [[Some((4, Left)), None]]);
    }

    #[test]
    fn both_records_of_a_junction_are_one_change() {
        let one = change("AG[d:9[", |_| ());
        let other = change("]c:5]GT", |r| (r.chrom, r.pos, r.reference) = ("d".into(), 9, "T".into()));
        assert_eq!(one.key(), other.key());
        assert_ne!(one.key(), change("AC[d:9[", |_| ()).key());
        // Turned round by both.
        let one = change("AG]d:9]", |_| ());
        let other = change("TC]c:5]", |r| (r.chrom, r.pos, r.reference) = ("d".into(), 9, "T".into()));
        assert_eq!(one.key(), other.key());
    }

    #[test]
    fn what_cannot_be_tracked_is_told_from_nonsense() {
        let of = |alternate: &str, end: Option<usize>| {
            let record = Record {
                chrom: "c".into(),
                pos: 5,
                reference: "A".into(),
                alternate: alternate.into(),
                end,
                ..Record::default()
            };
            Change::of(record)
        };
        assert!(matches!(of("<DEL>", None), Ok(Err((_, why))) if why.starts_with("no END")));
        for alternate in ["<INS>", "<CNV>", "<BND>", "A.", "<DEL:ME>", "AR"] {
            assert!(matches!(of(alternate, Some(99)), Ok(Err(_))), "{alternate}");
        }
        for alternate in ["A[d[", "A", "A!"] {
            let said = of(alternate, None).unwrap_err().to_string();
            assert!(said.starts_with(&format!("c:5:A>{alternate}: ")), "{said}");
        }
    }
}
