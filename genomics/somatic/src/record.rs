//! Events → records: what a VCF says of each, as values. They are rendered once each, to the VCF ([`crate::vcf`]) and to tables
//! ([`crate::tables`]); the summary and the report show the first of each event. Sections cited are those of VCF 4.3.

use genuma_reads::dna::revcomp;
use genuma_reads::fasta::Reference;

use crate::change::{Breakend, Change, Side};
use crate::event::{Class, Event};
use crate::genotype::Genotype;
use crate::locus::Call;

/// One record. Positions are 1-based, as they are written.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Index of the event among all.
    pub event: usize,
    /// Its name: the event's, or that of one of its breakends.
    pub id: String,
    /// Index of the sequence.
    pub chrom: usize,
    /// Position.
    pub pos: usize,
    /// Last base that the record speaks of.
    pub end: usize,
    /// REF.
    pub reference: String,
    /// What the tumour has instead.
    pub alternative: Alternative,
    /// What is changed.
    pub class: Class,
    /// What is known of a structural variant beyond its alleles; nothing of others.
    pub structural: Option<Structural>,
    /// Index of the locus that shows it: the N - 1 of the contig tN.
    pub locus: usize,
    /// The verdict.
    pub genotype: Genotype,
    /// How many normals of the panel have it, where there is one.
    pub panel: Option<u32>,
    /// Position of the first record on the same haplotype, if others are known to be on it.
    pub phase_set: Option<usize>,
    /// Sequence screened for that the new sequence is of, and where in it.
    pub screen: Option<(String, u64)>,
}

/// ALT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alternative {
    /// These bases.
    Bases(String),
    /// What stands in angle brackets: the record's other fields say what it is.
    Symbolic(Class),
    /// The base at this end, joined to another end.
    Joined {
        /// The bases that stay on this side lie there.
        side: Side,
        /// Index of the other end's sequence.
        chrom: usize,
        /// Position of the other end.
        pos: usize,
        /// The bases that stay on the other side lie there.
        to: Side,
    },
}

/// What is known of a structural variant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Structural {
    /// Length difference of the alleles, bases, where it is known.
    pub len: Option<i64>,
    /// Last base of the event, where it has one end.
    pub end: Option<usize>,
    /// IDs of the mate, of a breakend.
    pub mate: Option<String>,
    /// Bases by which the junction may be shifted, as both sides have them.
    pub homology: usize,
    /// Those bases, on this strand, where the reference shows them on either side.
    pub shared: Option<Vec<u8>>,
    /// Bases put in at the junction, on this strand.
    pub inserted: Vec<u8>,
    /// The ends that are joined, once an event: of a breakend only by the first of the two mates. Positions are 0-based.
    pub junctions: Vec<[Breakend; 2]>,
    /// What is known of the left and right side of an insertion.
    pub sides: [Option<Vec<u8>>; 2],
}

/// What an event is called, by its index.
pub fn id(event: usize) -> String {
    format!("g{}", event + 1)
}

impl Record {
    /// Where a structural event ends, when that is elsewhere: index of the sequence and position.
    pub fn other(&self) -> Option<(usize, usize)> {
        if let Alternative::Joined { chrom, pos, .. } = self.alternative {
            return Some((chrom, pos));
        }
        let end = self.structural.as_ref()?.end?;
        (end != self.pos).then_some((self.chrom, end))
    }

    /// ALT as it is written.
    pub fn alternative(&self, genome: &Reference) -> String {
        match &self.alternative {
            Alternative::Bases(bases) => bases.clone(),
            Alternative::Symbolic(class) => format!("<{}>", class.name()),
            Alternative::Joined { side, chrom, pos, to } => {
                let bracket = if *to == Side::Right { '[' } else { ']' };
                let place = format!("{bracket}{}:{pos}{bracket}", genome.contigs[*chrom].name);
                // Inserted bases stand in INFO: with them in ALT (section 5.4.1) `bcftools norm` stops.
                match side {
                    Side::Left => format!("{}{place}", self.reference),
                    Side::Right => format!("{place}{}", self.reference),
                }
            }
        }
    }
}

/// All records, sorted by place and name. Each event has one at least.
pub fn records(events: &[Event], genome: &Reference) -> Vec<Record> {
    let of = |(event, of)| Maker { genome, event, of }.records();
    let mut records: Vec<Record> = events.iter().enumerate().flat_map(of).collect();
    records.sort_by(|a, b| (a.chrom, a.pos, a.end, &a.id).cmp(&(b.chrom, b.pos, b.end, &b.id)));
    records
}

/// Makes the records of an event.
struct Maker<'a> {
    genome: &'a Reference,
    event: usize,
    of: &'a Event,
}

/// The ends that stay on either side of a change, both of the bases named among them.
fn around(chrom: usize, before: usize, after: usize) -> [Breakend; 2] {
    [(before, Side::Left), (after, Side::Right)].map(|(pos, side)| Breakend { chrom, pos, side })
}

/// The ends that a junction joins.
fn joined(change: &Change) -> Option<[Breakend; 2]> {
    match change {
        Change::Junction { ends, .. } => Some(*ends),
        _ => None,
    }
}

fn text(bases: &[u8]) -> String {
    String::from_utf8_lossy(bases).into_owned()
}

impl Maker<'_> {
    fn records(&self) -> Vec<Record> {
        let call = &self.of.calls[0];
        match &call.change {
            Change::Allele { chrom, pos, reference, alternative } => {
                let end = pos + reference.len();
                let structural = matches!(self.of.class, Class::Del | Class::Ins).then(|| Structural {
                    len: Some(alternative.len() as i64 - reference.len() as i64),
                    end: Some(end),
                    junctions: vec![around(*chrom, *pos, end)],
                    ..Structural::default()
                });
                vec![Record {
                    end,
                    reference: text(reference),
                    alternative: Alternative::Bases(text(alternative)),
                    structural,
                    ..self.at(*chrom, pos + 1, call)
                }]
            }
            Change::Junction { ends, inserted, homology } => match self.of.class {
                Class::Del | Class::Dup | Class::Inv => vec![self.symbolic(call, ends, inserted, *homology)],
                _ => (0..).zip(&self.of.calls).flat_map(|(n, call)| self.breakends(n, call)).collect(),
            },
            Change::Novel { .. } => vec![self.insertion()],
        }
    }

    /// What all records of a call have; the allele is that of one base.
    fn at(&self, chrom: usize, pos: usize, call: &Call) -> Record {
        Record {
            event: self.event,
            id: id(self.event),
            chrom,
            pos,
            end: pos,
            reference: self.base(chrom, pos - 1).to_string(),
            alternative: Alternative::Symbolic(self.of.class),
            class: self.of.class,
            structural: None,
            locus: call.locus,
            genotype: call.genotype.clone(),
            panel: call.panel,
            phase_set: self.of.phase_set.map(|first| first + 1),
            screen: None,
        }
    }

    fn base(&self, chrom: usize, pos: usize) -> char {
        let base = self.genome.contigs[chrom].seq[pos];
        // REF admits A, C, G, T and N only (section 1.6.1).
        if b"ACGT".contains(&base) { base as char } else { 'N' }
    }

    /// `<DEL>`, `<DUP>`, `<INV>`: POS is the base before the event (section 1.6.1).
    fn symbolic(&self, call: &Call, ends: &[Breakend; 2], inserted: &[u8], homology: usize) -> Record {
        let (from, to) = match (ends[0].side, ends[1].side) {
            (Side::Left, Side::Right) => (ends[0].pos + 1, ends[1].pos),
            (Side::Right, Side::Left) => (ends[0].pos, ends[1].pos + 1),
            (Side::Left, Side::Left) => (ends[0].pos + 1, ends[1].pos + 1),
            (Side::Right, Side::Right) => (ends[0].pos, ends[1].pos),
        };
        // 0-based half-open [from, to) is the event; POS in 1-based is from, unless the event begins the sequence.
        let len = (to - from) as i64;
        let structural = Structural {
            len: Some(if self.of.class == Class::Del { -len } else { len }),
            end: Some(to),
            homology,
            shared: self.shared(ends, homology),
            inserted: inserted.to_vec(),
            junctions: self.of.calls.iter().filter_map(|call| joined(&call.change)).collect(),
            ..Structural::default()
        };
        Record { end: to, structural: Some(structural), ..self.at(ends[0].chrom, from.max(1), call) }
    }

    /// Two BND records that are each other's mates (section 5.4).
    fn breakends(&self, n: usize, call: &Call) -> Vec<Record> {
        let Change::Junction { ends, inserted, homology } = &call.change else {
            unreachable!("an event of a junction has calls of junctions only")
        };
        let name = |side: usize| format!("{}_{}{}", id(self.event), n + 1, ["a", "b"][side]);
        [0usize, 1]
            .map(|i| {
                let (here, there) = (&ends[i], &ends[1 - i]);
                // Kept as read from the first end outwards; written as this end's strand reads, towards the mate.
                let outwards = if i == 0 { inserted.clone() } else { revcomp(inserted) };
                let inserted = if here.side == Side::Left { outwards } else { revcomp(&outwards) };
                let structural = Structural {
                    mate: Some(name(1 - i)),
                    homology: *homology,
                    shared: self.shared(&[*here, *there], *homology),
                    inserted,
                    junctions: if i == 0 { vec![*ends] } else { Vec::new() },
                    ..Structural::default()
                };
                Record {
                    id: name(i),
                    alternative: Alternative::Joined {
                        side: here.side,
                        chrom: there.chrom,
                        pos: there.pos + 1,
                        to: there.side,
                    },
                    structural: Some(structural),
                    ..self.at(here.chrom, here.pos + 1, call)
                }
            })
            .to_vec()
    }

    /// A long insertion known from one or both sides.
    fn insertion(&self) -> Record {
        let mut sides = [None, None];
        let mut at: Option<(usize, usize)> = None;
        for call in &self.of.calls {
            let Change::Novel { end, sequence } = &call.change else { continue };
            // POS is the base before the insertion.
            let before = if end.side == Side::Left { end.pos } else { end.pos.saturating_sub(1) };
            match end.side {
                Side::Left => sides[0] = Some(sequence.clone()),
                Side::Right => sides[1] = Some(revcomp(sequence)),
            }
            at = Some(at.map_or((end.chrom, before), |a| (a.0, a.1.min(before))));
        }
        let (chrom, before) = at.unwrap_or_default();
        let structural = Structural {
            end: Some(before + 1),
            sides,
            junctions: vec![around(chrom, before, before + 1)],
            ..Structural::default()
        };
        Record {
            alternative: Alternative::Symbolic(Class::Ins),
            structural: Some(structural),
            ..self.at(chrom, before + 1, &self.of.calls[0])
        }
    }

    /// The bases by which a junction may be shifted, on the forward strand at the first end, where what lies beyond one end is what the other
    /// begins with: else nothing is said.
    fn shared(&self, ends: &[Breakend; 2], bases: usize) -> Option<Vec<u8>> {
        let turned = |seq: Vec<u8>| revcomp(&seq);
        let of = |end: &Breakend, from: Option<usize>| {
            let from = from?;
            Some(self.genome.contigs[end.chrom].seq.get(from..from + bases)?.to_vec())
        };
        // Away from an end, past what stays.
        let beyond = |end: &Breakend| match end.side {
            Side::Left => of(end, Some(end.pos + 1)),
            Side::Right => of(end, end.pos.checked_sub(bases)).map(turned),
        };
        // Into an end, from the junction.
        let within = |end: &Breakend| match end.side {
            Side::Right => of(end, Some(end.pos)),
            Side::Left => of(end, (end.pos + 1).checked_sub(bases)).map(turned),
        };
        let forward = |seq: Vec<u8>, reads_right: bool| if reads_right { seq } else { turned(seq) };
        let [here, there] = ends;
        if bases == 0 {
            return None;
        }
        let (out, into) = (beyond(here)?, within(there)?);
        if out == into {
            return Some(forward(out, here.side == Side::Left));
        }
        let (out, into) = (beyond(there)?, within(here)?);
        (out == into).then(|| forward(into, here.side == Side::Right))
    }
}
