//! Converts VCF records to junctions: pairs of reference positions that become adjacent, with inserted bases between
//! them.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;

/// Maximum number of deleted bases, and of inserted bases, of a small change. The two ends of a larger change are
/// separate loci.
pub(crate) const MAX_SMALL_CHANGE_BP: usize = 50;

/// One alternate allele of a VCF record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VcfAlleleRecord {
    /// CHROM column: name of the contig. Records share it.
    pub chrom: Arc<str>,
    /// POS column, 1-based.
    pub pos: usize,
    /// ID column; `.` if missing.
    pub id: String,
    /// REF column, upper case.
    pub reference: String,
    /// One allele of the ALT column: bases, a symbolic allele, or a breakend.
    pub alternate: String,
    /// END of INFO, 1-based, inclusive; `None` if missing.
    pub end: Option<usize>,
    /// Bases inserted at the junction (SVINSSEQ), and the known bases at the left and right end of a long insertion
    /// (LEFT_SVINSSEQ, RIGHT_SVINSSEQ).
    pub inserted: [Option<String>; 3],
    /// Connection type of a junction as Delly writes it (INFO field CT): `3to3`, `5to5` and so on.
    pub connection_type: Option<String>,
    /// Chromosome and position of the mate breakend if ALT does not contain it (CHR2, POS2 or END).
    pub mate: Option<(String, usize)>,
    /// Number of inserted bases whose sequence the record does not contain (INSLEN).
    pub unlisted_inserted_len: usize,
    /// Whether the positions are uncertain (IMPRECISE).
    pub imprecise: bool,
    /// Allele fraction in the first tumour of the file; `None` if missing.
    pub allele_fraction: Option<f64>,
    /// Position in the file: 0-based line number, and index of the alternate allele in the record.
    pub file_position: (usize, usize),
}

impl VcfAlleleRecord {
    /// Formats the record for messages: CHROM:POS:REF>ALT, with long alleles shortened.
    pub fn format_for_messages(&self) -> String {
        let short = |bases: &str| match bases.char_indices().nth(24) {
            Some((at, _)) => format!("{}...({} bases)", &bases[..at], bases.len()),
            None => bases.to_owned(),
        };
        format!("{}:{}:{}>{}", self.chrom, self.pos, short(&self.reference), short(&self.alternate))
    }

    /// A breakend at a 0-based position of the contig of the record.
    fn breakend(&self, pos: usize, side: RetainedSide) -> Breakend {
        Breakend { chrom: self.chrom.clone(), pos, side }
    }
}

/// Side of a breakend on which the sequence of the reference is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RetainedSide {
    /// The sequence up to and including the breakend's position is kept.
    Left,
    /// The sequence from the breakend's position on is kept.
    Right,
}

/// One end of a junction, as the outermost base of the reference that is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Breakend {
    /// Name of the reference sequence.
    pub chrom: Arc<str>,
    /// 0-based position of the outermost base that is kept.
    pub pos: usize,
    /// Side of `pos` on which the sequence is kept.
    pub side: RetainedSide,
}

/// Two breakends on the reference that become adjacent. One of them may be unknown, as at each end of a long insertion.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Junction {
    /// Breakend at which the sequence of the junction starts; `None` if unknown.
    pub from: Option<Breakend>,
    /// Bases inserted between the breakends, in the direction from `from` to `to`.
    pub inserted: Vec<u8>,
    /// Breakend at which the sequence of the junction continues; `None` if unknown.
    pub to: Option<Breakend>,
}

impl Junction {
    /// The same junction in the direction from `to` to `from`.
    fn reversed(&self) -> Junction {
        let inserted = genuma_reads::dna::reverse_complement(&self.inserted);
        Junction { from: self.to.clone(), inserted, to: self.from.clone() }
    }

    /// Number of deleted reference bases, if one read can cover both ends (at most [`MAX_SMALL_CHANGE_BP`]); otherwise
    /// `None`.
    pub(crate) fn num_deleted_bases_if_small(&self) -> Option<usize> {
        let (a, b) = (self.from.as_ref()?, self.to.as_ref()?);
        let forward =
            a.chrom == b.chrom && a.side == RetainedSide::Left && b.side == RetainedSide::Right && b.pos > a.pos;
        forward.then(|| b.pos - a.pos - 1).filter(|gap| *gap <= MAX_SMALL_CHANGE_BP)
    }
}

/// Class of a tracked change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ChangeClass {
    /// Substitution of one base.
    Snv,
    /// Substitution of several adjacent bases, at most [`MAX_SMALL_CHANGE_BP`].
    Mnv,
    /// At most [`MAX_SMALL_CHANGE_BP`] bases deleted, inserted, or both.
    Indel,
    /// Any other change: structural variants.
    Sv,
}

impl ChangeClass {
    /// Name of the class in tables: SNV, MNV, INDEL or SV.
    pub fn class_name(self) -> &'static str {
        match self {
            ChangeClass::Snv => "SNV",
            ChangeClass::Mnv => "MNV",
            ChangeClass::Indel => "INDEL",
            ChangeClass::Sv => "SV",
        }
    }
}

/// A tracked change: one allele of the VCF file with its junctions, for which later samples are searched.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackedChange {
    /// The record of the VCF file, with one ALT allele.
    pub record: VcfAlleleRecord,
    /// Class of the change: SNV, MNV, indel or structural variant.
    pub class: ChangeClass,
    /// The junctions of the change. A molecule with any of them supports the change.
    pub junctions: Vec<Junction>,
    /// Whether REF and ALT are bases: not for symbolic alleles and breakends.
    pub has_sequence_alleles: bool,
}

/// Reason for messages why a record cannot be tracked.
pub(crate) type UntrackableReason = &'static str;

fn are_bases(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b"ACGTN".contains(&b))
}

/// Whether all characters are A, C, G, T or IUPAC codes of ambiguous bases.
fn are_iupac_codes(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b"ACGTNRYKMSWBDHV".contains(&b))
}

fn join_breakends(from: Breakend, inserted: &[u8], to: Breakend) -> Junction {
    Junction { from: Some(from), inserted: inserted.to_vec(), to: Some(to) }
}

impl TrackedChange {
    /// Converts a VCF record to a tracked change.
    ///
    /// # Errors
    /// `Err` for a record that is invalid; `Ok(Err)` with the reason for a valid record that cannot be tracked.
    pub fn from_record(
        record: VcfAlleleRecord,
    ) -> Result<Result<TrackedChange, (VcfAlleleRecord, UntrackableReason)>, Error> {
        match AlleleJunctions::of_record(&record) {
            Ok(AlleleJunctions { class, junctions, has_sequence_alleles }) => {
                Ok(Ok(TrackedChange { record, class, junctions, has_sequence_alleles }))
            }
            Err(Refusal::Untrackable(reason)) => Ok(Err((record, reason))),
            Err(Refusal::Invalid(what)) => {
                Err(Error::Record { record: record.format_for_messages(), what: what.to_owned() })
            }
        }
    }

    /// Expected bases of the reference at POS; `None` for symbolic alleles and breakends.
    pub(crate) fn expected_reference_bases(&self) -> Option<&str> {
        self.has_sequence_alleles.then_some(self.record.reference.as_str())
    }

    /// The junctions of the change in a canonical form, which is equal for two records of the same change, whichever
    /// breakend the records start from.
    pub(crate) fn canonical_junctions(&self) -> Vec<Junction> {
        let mut all: Vec<Junction> = self.junctions.iter().map(|j| j.clone().min(j.reversed())).collect();
        all.sort();
        all
    }
}

/// Why a record does not become a tracked change.
enum Refusal {
    /// The record is invalid.
    Invalid(&'static str),
    /// The record is valid, but cannot be tracked.
    Untrackable(UntrackableReason),
}

/// What one alternate allele changes; the fields are those of [`TrackedChange`].
struct AlleleJunctions {
    class: ChangeClass,
    junctions: Vec<Junction>,
    has_sequence_alleles: bool,
}

impl AlleleJunctions {
    fn of_record(record: &VcfAlleleRecord) -> Result<AlleleJunctions, Refusal> {
        // Telomere: some callers write breakends at position 0.
        let start = record.pos.checked_sub(1).ok_or(Refusal::Untrackable("its position is before the first base"))?;
        let alternate = record.alternate.to_ascii_uppercase();
        let junctions = if alternate.starts_with('<') {
            junctions_of_symbolic_allele(record, &alternate, start)?
        } else if alternate.contains(['[', ']']) {
            let junction = parse_breakend(&record.alternate, record.breakend(start, RetainedSide::Left));
            vec![junction.ok_or(Refusal::Invalid("its breakend cannot be parsed"))?]
        } else if alternate.starts_with('.') || alternate.ends_with('.') {
            return Err(Refusal::Untrackable("a single breakend"));
        } else {
            let (class, junction) = junction_of_sequence_alleles(record, &alternate, start)?;
            return Ok(AlleleJunctions { class, junctions: vec![junction], has_sequence_alleles: true });
        };
        Ok(AlleleJunctions { class: ChangeClass::Sv, junctions, has_sequence_alleles: false })
    }
}

/// Junctions of a symbolic allele, such as `<DEL>`. `start` is the 0-based position of the record.
fn junctions_of_symbolic_allele(
    record: &VcfAlleleRecord,
    alternate: &str,
    start: usize,
) -> Result<Vec<Junction>, Refusal> {
    use RetainedSide::{Left, Right};
    if record.imprecise {
        return Err(Refusal::Untrackable("its positions are not exact (IMPRECISE)"));
    }
    if record.unlisted_inserted_len > 0 && record.inserted[0].is_none() {
        return Err(Refusal::Untrackable("the bases inserted at its junction are not given"));
    }
    let inserted = record.inserted[0].as_deref().unwrap_or_default().to_ascii_uppercase().into_bytes();
    let end = |pos: usize, side: RetainedSide| record.breakend(pos, side);
    match alternate {
        "<DEL>" | "<DUP>" | "<DUP:TANDEM>" | "<INV>" => {
            let last = record.end.filter(|&last| last > start + 1);
            let last = last.ok_or(Refusal::Untrackable("no END after POS, and no SVLEN"))?;
            let left_to_left = || join_breakends(end(start, Left), &inserted, end(last - 1, Left));
            let right_to_right = || join_breakends(end(start + 1, Right), &inserted, end(last, Right));
            Ok(match (alternate, record.connection_type.as_deref()) {
                ("<DEL>", _) => vec![join_breakends(end(start, Left), &inserted, end(last, Right))],
                ("<INV>", Some("3to3")) => vec![left_to_left()],
                ("<INV>", Some("5to5")) => vec![right_to_right()],
                ("<INV>", _) => vec![left_to_left(), right_to_right()],
                _ => vec![join_breakends(end(last - 1, Left), &inserted, end(start + 1, Right))],
            })
        }
        "<INS>" => {
            let junctions = insertion_junctions(&record.inserted, end(start, Left), end(start + 1, Right));
            if junctions.is_empty() {
                return Err(Refusal::Untrackable("an insertion without its sequence"));
            }
            Ok(junctions)
        }
        "<BND>" | "<TRA>" => {
            let (Some((chrom, pos)), Some(joined)) = (&record.mate, record.connection_type.as_deref()) else {
                return Err(Refusal::Untrackable("a breakend without position and direction of its mate"));
            };
            let there = pos.checked_sub(1).ok_or(Refusal::Invalid("positions begin at 1"))?;
            let (one, other) = match joined {
                "3to3" => (Left, Left),
                "3to5" => (Left, Right),
                "5to3" => (Right, Left),
                _ => (Right, Right),
            };
            let mate = Breakend { chrom: chrom.as_str().into(), pos: there, side: other };
            Ok(vec![join_breakends(end(start, one), &inserted, mate)])
        }
        _ => Err(Refusal::Untrackable("a symbolic allele that is not supported")),
    }
}

/// Class and junction of a change whose alleles are bases. `start` is the 0-based position of the record.
fn junction_of_sequence_alleles(
    record: &VcfAlleleRecord,
    alternate: &str,
    start: usize,
) -> Result<(ChangeClass, Junction), Refusal> {
    if !are_iupac_codes(&record.reference) || !are_iupac_codes(alternate) {
        return Err(Refusal::Invalid("its alleles have letters that are not bases"));
    }
    if !are_bases(&record.reference) || !are_bases(alternate) {
        return Err(Refusal::Untrackable("its alleles have ambiguous bases"));
    }
    let changed = trim_common_ends(&record.reference, alternate, start);
    let (replaced, class, inserted) = changed.ok_or(Refusal::Invalid("REF and ALT are the same"))?;
    let from = replaced.start.checked_sub(1).map(|pos| record.breakend(pos, RetainedSide::Left));
    Ok((class, Junction { from, inserted, to: Some(record.breakend(replaced.end, RetainedSide::Right)) }))
}

/// Junctions of an insertion between two breakends: one if the whole inserted sequence is known, else those of the
/// known ends of the sequence. `inserted` is the whole sequence, its beginning and its end.
fn insertion_junctions(inserted: &[Option<String>; 3], here: Breakend, next: Breakend) -> Vec<Junction> {
    let known = |text: &Option<String>| {
        text.as_deref().filter(|t| are_bases(&t.to_ascii_uppercase())).map(str::to_ascii_uppercase)
    };
    let [whole, before, behind] = inserted.each_ref().map(known);
    if let Some(whole) = whole {
        return vec![join_breakends(here, whole.as_bytes(), next)];
    }
    let before = before.map(|b| Junction { from: Some(here), inserted: b.into_bytes(), to: None });
    let behind = behind.map(|b| Junction { from: None, inserted: b.into_bytes(), to: Some(next) });
    before.into_iter().chain(behind).collect()
}

/// Removes the bases that both alleles have at their end and at their beginning. Returns the range of reference
/// positions that are replaced, the class of the change, and the new bases; `None` if the alleles are equal.
fn trim_common_ends(reference: &str, alternate: &str, start: usize) -> Option<(Range<usize>, ChangeClass, Vec<u8>)> {
    let (old, new) = (reference.as_bytes(), alternate.as_bytes());
    let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - same_end], &new[..new.len() - same_end]);
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[same..], &new[same..]);
    if old.is_empty() && new.is_empty() {
        return None;
    }
    let class = match (old.len(), new.len()) {
        (1, 1) => ChangeClass::Snv,
        (a, b) if a == b && a <= MAX_SMALL_CHANGE_BP => ChangeClass::Mnv,
        (a, b) if a.max(b) <= MAX_SMALL_CHANGE_BP => ChangeClass::Indel,
        _ => ChangeClass::Sv,
    };
    let begin = start + same;
    Some((begin..begin + old.len(), class, new.to_vec()))
}

/// Parses the ALT column of a breakend record: `t[p[`, `t]p]`, `]p]t` or `[p[t` (VCF 4.3, section 5.4). `here` is the
/// breakend of the record itself.
fn parse_breakend(alternate: &str, here: Breakend) -> Option<Junction> {
    let first = alternate.starts_with(['[', ']']);
    let bracket = if alternate.contains('[') { '[' } else { ']' };
    let mut parts = alternate.split(bracket);
    let (before, mate, after) = (parts.next()?, parts.next()?, parts.next()?);
    let (chrom, pos) = mate.rsplit_once(':')?;
    let pos = pos.parse::<usize>().ok()?.checked_sub(1)?;
    let chrom = chrom.trim_start_matches('<').trim_end_matches('>').into();
    let there = Breakend { chrom, pos, side: if bracket == '[' { RetainedSide::Right } else { RetainedSide::Left } };
    let letters = if first { after } else { before }.to_ascii_uppercase().into_bytes();
    if !letters.iter().all(|b| b"ACGTN".contains(b)) {
        return None;
    }
    // One letter is the base at the breakend itself; the others are inserted bases.
    Some(if first {
        let inserted = letters.split_last()?.1.to_vec();
        Junction { from: Some(there), inserted, to: Some(Breakend { side: RetainedSide::Right, ..here }) }
    } else {
        Junction { from: Some(here), inserted: letters.split_first()?.1.to_vec(), to: Some(there) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(alternate: &str, edit: impl FnOnce(&mut VcfAlleleRecord)) -> TrackedChange {
        let mut record = VcfAlleleRecord {
            chrom: "c".into(),
            pos: 5,
            reference: "A".into(),
            alternate: alternate.into(),
            ..VcfAlleleRecord::default()
        };
        edit(&mut record);
        TrackedChange::from_record(record).expect("understood").expect("trackable")
    }

    fn ends(junction: &Junction) -> [Option<(usize, RetainedSide)>; 2] {
        [&junction.from, &junction.to].map(|end| end.as_ref().map(|e| (e.pos, e.side)))
    }

    #[test]
    fn alleles_are_cut_to_what_differs() {
        use RetainedSide::{Left, Right};
        for (reference, alternate, class, from, inserted, to) in [
            ("A", "G", ChangeClass::Snv, 3, "G", 5),
            ("AC", "GT", ChangeClass::Mnv, 3, "GT", 6),
            ("ACC", "A", ChangeClass::Indel, 4, "", 7),
            ("A", "ATT", ChangeClass::Indel, 4, "TT", 5),
            ("ACG", "ATG", ChangeClass::Snv, 4, "T", 6),
        ] {
            let made = change(alternate, |r| r.reference = reference.into());
            assert_eq!(made.class, class, "{reference}>{alternate}");
            assert_eq!(ends(&made.junctions[0]), [Some((from, Left)), Some((to, Right))]);
            assert_eq!(made.junctions[0].inserted, inserted.as_bytes());
            assert_eq!(made.junctions[0].num_deleted_bases_if_small(), Some(to - from - 1));
        }
        let first = change("C", |r| r.pos = 1);
        assert_eq!(ends(&first.junctions[0]), [None, Some((1, Right))]);
    }

    #[test]
    fn symbolic_alleles_and_breakends_are_junctions() {
        use RetainedSide::{Left, Right};
        let ended = |r: &mut VcfAlleleRecord| r.end = Some(1015);
        let of = |made: &TrackedChange| made.junctions.iter().map(ends).collect::<Vec<_>>();
        assert_eq!(of(&change("<DEL>", ended)), [[Some((4, Left)), Some((1015, Right))]]);
        assert_eq!(of(&change("<DUP>", ended)), [[Some((1014, Left)), Some((5, Right))]]);
        let both = [[Some((4, Left)), Some((1014, Left))], [Some((5, Right)), Some((1015, Right))]];
        assert_eq!(of(&change("<INV>", ended)), both);
        let one = |r: &mut VcfAlleleRecord| (r.end, r.connection_type) = (Some(1015), Some("5to5".into()));
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
        assert_eq!(one.canonical_junctions(), other.canonical_junctions());
        assert_ne!(one.canonical_junctions(), change("AC[d:9[", |_| ()).canonical_junctions());
        // Both records are written from the other side.
        let one = change("AG]d:9]", |_| ());
        let other = change("TC]c:5]", |r| (r.chrom, r.pos, r.reference) = ("d".into(), 9, "T".into()));
        assert_eq!(one.canonical_junctions(), other.canonical_junctions());
    }

    #[test]
    fn what_cannot_be_tracked_is_told_from_nonsense() {
        let of = |alternate: &str, end: Option<usize>| {
            let record = VcfAlleleRecord {
                chrom: "c".into(),
                pos: 5,
                reference: "A".into(),
                alternate: alternate.into(),
                end,
                ..VcfAlleleRecord::default()
            };
            TrackedChange::from_record(record)
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
