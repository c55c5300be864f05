//! What became of a variant that somebody asks for: stage by stage, what was seen of it and why it went no further.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use genuma_kmers::encode::{kmers, unpack};
use genuma_reads::dna::revcomp;
use genuma_reads::fasta::Reference;
use genuma_reads::packed::Codes;
use genuma_reads::{NORMAL, Pair, TUMOUR};

use crate::assemble::Contig;
use crate::change::{Breakend, Change, STRUCTURAL, Side};
use crate::event::Event;
use crate::gather::Followed;
use crate::label::hits;
use crate::locus::{Call, Locus};
use crate::place::Placed;
use crate::select::{Pick, by_kmer};
use crate::sought::{KmerHit, Looking, Sought};
use crate::tract;
use crate::worth::Unworthy;

/// A variant asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// As it was asked.
    pub text: String,
    /// What changes, in the reference: two for an inversion, one otherwise.
    pub changes: Vec<Change>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// As it was asked.
    pub question: String,
    /// One line a finding, in the order of the stages.
    pub lines: Vec<String>,
}

/// Bases beside a change that are looked at.
const FLANK: usize = 150;
/// Ends of a junction this near are the same.
const NEAR: usize = 20;

/// One question being followed.
struct Asked {
    question: Question,
    lines: Vec<String>,
    /// Ranks of the k-mers that only the changed sequence has, and of those that only the unchanged has.
    own: Vec<u32>,
    others: Vec<u32>,
    /// Contigs that hold one of its own, as they are numbered after assembling.
    contigs: Vec<usize>,
}

/// All questions being followed.
pub struct Why {
    k: u32,
    asked: Vec<Asked>,
    kmers: Vec<u64>,
    sought: Sought,
    counts: Vec<[AtomicU32; 2]>,
}

/// Bases up to a breakend, as read towards the junction.
fn towards(end: &Breakend, genome: &Reference, n: usize) -> Vec<u8> {
    let seq = &genome.contigs[end.chrom].seq;
    match end.side {
        Side::Left => seq[(end.pos + 1).saturating_sub(n)..(end.pos + 1).min(seq.len())].to_vec(),
        Side::Right => revcomp(&seq[end.pos.min(seq.len())..(end.pos + n).min(seq.len())]),
    }
}

/// The changed sequence between its flanks, and what stands there without the change.
fn spelled(change: &Change, genome: &Reference) -> (Vec<u8>, Vec<Vec<u8>>) {
    match change {
        Change::Allele { chrom, pos, reference, alternative } => {
            let seq = &genome.contigs[*chrom].seq;
            let end = pos + reference.len();
            let (before, after) =
                (&seq[pos.saturating_sub(FLANK)..*pos], &seq[end..(end + FLANK).min(seq.len())]);
            ([before, alternative, after].concat(), vec![[before, reference, after].concat()])
        }
        Change::Junction { ends: [a, b], inserted, .. } => {
            let (left, right) = (towards(a, genome, FLANK), revcomp(&towards(b, genome, FLANK)));
            let across = |end: &Breakend| {
                let seq = &genome.contigs[end.chrom].seq;
                seq[end.pos.saturating_sub(FLANK)..(end.pos + FLANK).min(seq.len())].to_vec()
            };
            ([&left[..], inserted, &right].concat(), vec![across(a), across(b)])
        }
        Change::Novel { end, sequence } => {
            let seq = &genome.contigs[end.chrom].seq;
            let across = seq[end.pos.saturating_sub(FLANK)..(end.pos + FLANK).min(seq.len())].to_vec();
            ([&towards(end, genome, FLANK)[..], sequence].concat(), vec![across])
        }
    }
}

/// Canonical k-mers of a sequence, and the spellings of its long repeats.
fn canonical(seq: &[u8], k: u32) -> HashSet<u64> {
    let mut all: HashSet<u64> = kmers(seq, k).map(|(_, kmer)| kmer.canonical()).collect();
    let mut read = Codes::default();
    read.load(seq, seq, 0);
    tract::for_each(seq, read.packed(), |t| all.extend(tract::spell(seq, t, k).map(|s| s.kmer)));
    all
}

/// `1` or `1-5`.
fn range(counts: impl Iterator<Item = u32>) -> String {
    let (low, high) = counts.fold((u32::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
    if low >= high { format!("{high}") } else { format!("{low}-{high}") }
}

impl Why {
    /// Follows `questions`; `None` when there are none.
    pub fn new(questions: &[Question], genome: &Reference, k: u32) -> Option<Why> {
        if questions.is_empty() {
            return None;
        }
        let sets: Vec<[HashSet<u64>; 2]> = questions
            .iter()
            .map(|question| {
                let (mut own, mut others) = (HashSet::new(), HashSet::new());
                for change in &question.changes {
                    let (changed, unchanged) = spelled(change, genome);
                    own.extend(canonical(&changed, k));
                    unchanged.iter().for_each(|seq| others.extend(canonical(seq, k)));
                }
                let both: HashSet<u64> = own.intersection(&others).copied().collect();
                [own, others].map(|set| set.difference(&both).copied().collect())
            })
            .collect();
        let mut kmers: Vec<u64> = sets.iter().flatten().flatten().copied().collect();
        kmers.sort_unstable();
        kmers.dedup();
        let ranks = |set: &HashSet<u64>| {
            let mut ranks: Vec<u32> = set.iter().map(|&x| kmers.partition_point(|&y| y < x) as u32).collect();
            ranks.sort_unstable();
            ranks
        };
        let asked = questions
            .iter()
            .zip(&sets)
            .map(|(question, [own, others])| Asked {
                question: question.clone(),
                lines: Vec::new(),
                own: ranks(own),
                others: ranks(others),
                contigs: Vec::new(),
            })
            .collect();
        let sought = Sought::new(k, kmers.iter().copied());
        let counts = kmers.iter().map(|_| Default::default()).collect();
        Some(Why { k, asked, kmers, sought, counts })
    }

    /// Counts the k-mers asked for in one pair.
    pub fn pair(&self, pair: Pair<'_>, sample: u8, looking: &mut Looking, found: &mut Vec<KmerHit>) {
        found.clear();
        for mate in pair.mates {
            hits(mate.seq, &self.sought, looking, found);
        }
        for hit in found.iter() {
            self.counts[hit.rank as usize][usize::from(sample != NORMAL)].fetch_add(1, Relaxed);
        }
    }

    fn seen(&self, ranks: &[u32], sample: u8) -> String {
        range(ranks.iter().map(|&r| self.counts[r as usize][usize::from(sample)].load(Relaxed)))
    }

    /// After counting: how often its k-mers are there, and which were picked.
    pub fn picked(&mut self, picks: &[Pick]) {
        let mut said = Vec::with_capacity(self.asked.len());
        for asked in &self.asked {
            let mut lines = vec![format!(
                "count: {} k-mers of its own, {} times in the tumour, {} in the normal; {} of the unchanged sequence, {} and {}",
                asked.own.len(),
                self.seen(&asked.own, TUMOUR),
                self.seen(&asked.own, NORMAL),
                asked.others.len(),
                self.seen(&asked.others, TUMOUR),
                self.seen(&asked.others, NORMAL),
            )];
            let pick = |&r: &u32| {
                let kmer = self.kmers[r as usize];
                let same = &picks[picks.partition_point(|p| p.kmer < kmer)..];
                let same = &same[..same.iter().take_while(|p| p.kmer == kmer).count()];
                same.iter().find(|p| p.parting()).or(same.first())
            };
            let found: Vec<&Pick> = asked.own.iter().filter_map(pick).collect();
            let parting = found.iter().filter(|p| p.parting()).count();
            lines.push(format!("select: {} of them picked, {parting} where the samples part", found.len()));
            for &r in asked.own.iter().filter(|r| pick(r).is_none()) {
                let counts = self.counts[r as usize].each_ref().map(|n| n.load(Relaxed));
                lines.push(format!(
                    "  not picked: {} (tumour {}, normal {})",
                    String::from_utf8_lossy(&unpack(self.kmers[r as usize], self.k)),
                    counts[usize::from(TUMOUR)],
                    counts[usize::from(NORMAL)]
                ));
            }
            said.push(lines);
        }
        self.say(said);
    }

    fn say(&mut self, said: Vec<Vec<String>>) {
        for (asked, lines) in self.asked.iter_mut().zip(said) {
            asked.lines.extend(lines);
        }
    }

    /// Which of the picks are of its own, by question.
    pub(crate) fn ranks_among(&self, picks: &[Pick]) -> Vec<HashSet<u32>> {
        let kmers: Vec<u64> = by_kmer(picks).map(|same| same[0].kmer).collect();
        let rank = |&r: &u32| kmers.binary_search(&self.kmers[r as usize]).ok().map(|at| at as u32);
        self.asked.iter().map(|asked| asked.own.iter().filter_map(rank).collect()).collect()
    }

    /// After labelling and grouping: pairs that carry its k-mers, and the groups they are in, by question.
    pub fn grouped(&mut self, followed: &[Followed]) {
        let said = followed.iter().map(|Followed { pairs, groups }| {
            let mut lines = vec![format!("label: {pairs} pairs of the tumour carry them, errors left out")];
            for (group, here, of) in groups {
                lines.push(format!("group {group}: {here} of them among {of} pairs"));
            }
            if *pairs > 0 && groups.is_empty() {
                lines.push("group: none that parts the samples or has pairs enough".to_owned());
            }
            lines
        });
        let said = said.collect();
        self.say(said);
    }

    /// After assembling: contigs that hold its k-mers.
    pub fn assembled(&mut self, contigs: &[Contig]) {
        for (c, contig) in contigs.iter().enumerate() {
            let here: HashSet<u64> = canonical(&contig.seq, self.k);
            let mut pairs: Vec<u32> = contig.reads.iter().map(|r| r.pair).collect();
            pairs.sort_unstable();
            pairs.dedup();
            for asked in &mut self.asked {
                let held = asked.own.iter().filter(|&&r| here.contains(&self.kmers[r as usize])).count();
                if held > 0 {
                    asked.contigs.push(c);
                    asked.lines.push(format!(
                        "assemble: contig {c} of {} bases and {} pairs holds {held} of its k-mers",
                        contig.seq.len(),
                        pairs.len()
                    ));
                }
            }
        }
        for asked in self.asked.iter_mut().filter(|a| a.contigs.is_empty()) {
            asked.lines.push("assemble: no contig holds any of its k-mers".to_owned());
        }
    }

    /// The contigs that hold something of a variant that is followed.
    pub fn contigs(&self) -> BTreeSet<usize> {
        self.asked.iter().flat_map(|asked| &asked.contigs).copied().collect()
    }

    /// After comparing: what its contigs were taken for, those among all that were placed.
    pub fn compared(&mut self, placed: &[Placed], genome: &Reference) {
        for asked in &mut self.asked {
            for &c in &asked.contigs {
                let Ok(at) = placed.binary_search_by_key(&c, |placed| placed.number) else { continue };
                let Placed { compared, unworthy, .. } = &placed[at];
                let found: Vec<String> = compared
                    .findings
                    .iter()
                    .map(|f| format!("{} (placed with {})", shown(&f.change, genome), f.mapq))
                    .collect();
                let found = if found.is_empty() { "nothing changed".to_owned() } else { found.join(", ") };
                let left_out = unworthy.map_or("", Unworthy::of_one);
                asked.lines.push(format!("compare: contig {c}: {found}{left_out}"));
            }
        }
    }

    /// Before recruiting: those of all contigs that reads are not looked for.
    pub fn not_looked_for(&mut self, contigs: impl Iterator<Item = usize>) {
        for c in contigs {
            for asked in self.asked.iter_mut().filter(|asked| asked.contigs.contains(&c)) {
                asked.lines.push(format!(
                    "recruit: contig {c} lies in a repeat of so many copies that no read tells which of them changed"
                ));
            }
        }
    }

    /// After judging: the calls that are it, or lie where it lies.
    pub fn judged(&mut self, loci: &[Locus], events: &[Event], genome: &Reference) {
        for asked in &mut self.asked {
            let mut none = true;
            for (e, event) in events.iter().enumerate() {
                for call in &event.calls {
                    let any = |alike: fn(&Change, &Change) -> bool| {
                        asked.question.changes.iter().any(|change| alike(change, &call.change))
                    };
                    let words = if any(same) {
                        "this is"
                    } else if any(part_of) {
                        "this is part of"
                    } else if any(beside) {
                        "near is"
                    } else {
                        continue;
                    };
                    none = false;
                    asked.lines.push(verdict(e, call, &loci[call.locus], words, genome));
                }
            }
            if none {
                asked.lines.push("judge: no call here".to_owned());
            }
        }
    }

    /// What became of all of them.
    pub fn answers(self) -> Vec<Answer> {
        self.asked.into_iter().map(|a| Answer { question: a.question.text, lines: a.lines }).collect()
    }
}

fn verdict(e: usize, call: &Call, locus: &Locus, words: &str, genome: &Reference) -> String {
    let g = &call.genotype;
    let filters: Vec<&str> = g.filters.iter().map(|f| f.name()).collect();
    format!(
        "judge: {words} g{}: {}, t{}, {} reads laid; molecules unchanged/changed: tumour {}/{}, normal {}/{}; quality {:.1}; {}",
        e + 1,
        shown(&call.change, genome),
        call.locus + 1,
        locus.laid,
        g.tumour.reference,
        g.tumour.alternative,
        g.normal.reference,
        g.normal.alternative,
        g.quality,
        if filters.is_empty() { "PASS".to_owned() } else { filters.join(";") }
    )
}

/// A change in words a VCF reader knows.
pub fn shown(change: &Change, genome: &Reference) -> String {
    let name = |chrom: usize| &genome.contigs[chrom].name;
    let cut = |bases: &[u8]| match bases.len() {
        n if n > 30 => format!("{}..({n})", String::from_utf8_lossy(&bases[..10])),
        _ => String::from_utf8_lossy(bases).into_owned(),
    };
    let end = |e: &Breakend| {
        format!("{}:{}{}", name(e.chrom), e.pos + 1, if e.side == Side::Left { '+' } else { '-' })
    };
    match change {
        Change::Allele { chrom, pos, reference, alternative } => {
            format!("{}:{}:{}>{}", name(*chrom), pos + 1, cut(reference), cut(alternative))
        }
        Change::Junction { ends: [a, b], inserted, .. } => {
            format!("{}/{} [{}]", end(a), end(b), cut(inserted))
        }
        Change::Novel { end: e, sequence } => format!("{}/novel {}", end(e), cut(sequence)),
    }
}

fn ends_of(change: &Change) -> Vec<(usize, usize)> {
    match change {
        Change::Allele { chrom, pos, reference, alternative } => {
            let mut ends = vec![(*chrom, *pos)];
            if reference.len() >= alternative.len() + STRUCTURAL {
                ends.push((*chrom, pos + reference.len()));
            }
            ends
        }
        Change::Junction { ends, .. } => ends.iter().map(|e| (e.chrom, e.pos)).collect(),
        Change::Novel { end, .. } => vec![(end.chrom, end.pos)],
    }
}

/// Whether a call is what was asked for; a long deletion is one as an allele and as a junction.
fn same(asked: &Change, call: &Change) -> bool {
    if matches!((asked, call), (Change::Allele { .. }, Change::Allele { .. })) {
        return asked == call;
    }
    let (a, b) = (ends_of(asked), ends_of(call));
    a.len() == 2 && b.len() == 2 && a.iter().zip(&b).all(|(x, y)| x.0 == y.0 && x.1.abs_diff(y.1) <= NEAR)
}

/// Whether a substitution is called together with its neighbours.
fn part_of(asked: &Change, call: &Change) -> bool {
    let (
        Change::Allele { chrom, pos, reference, alternative },
        Change::Allele { chrom: c, pos: p, reference: r, alternative: a },
    ) = (asked, call)
    else {
        return false;
    };
    let substitutes = reference.len() == alternative.len() && r.len() == a.len();
    let within = |from: usize| {
        r.get(from..from + reference.len()) == Some(reference)
            && a.get(from..from + alternative.len()) == Some(alternative)
    };
    substitutes && chrom == c && pos.checked_sub(*p).is_some_and(within)
}

fn beside(asked: &Change, call: &Change) -> bool {
    ends_of(asked).iter().any(|x| ends_of(call).iter().any(|y| x.0 == y.0 && x.1.abs_diff(y.1) <= NEAR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_of_several_that_changed_together_is_part_of_them() {
        let change = |chrom, pos, reference: &[u8], alternative: &[u8]| Change::Allele {
            chrom,
            pos,
            reference: reference.to_vec(),
            alternative: alternative.to_vec(),
        };
        let call = change(0, 100, b"GGC", b"ATT");
        for (asked, is) in [
            (change(0, 100, b"G", b"A"), true),
            (change(0, 101, b"GC", b"TT"), true),
            (change(0, 101, b"G", b"A"), false),
            (change(1, 101, b"G", b"T"), false),
            (change(0, 99, b"G", b"A"), false),
            (change(0, 103, b"G", b"A"), false),
            (change(0, 101, b"GC", b"T"), false),
        ] {
            assert_eq!(part_of(&asked, &call), is, "{asked:?}");
        }
    }
}
