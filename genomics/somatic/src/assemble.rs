//! Reads of a group → tumour contigs, by anchored consensus.
//!
//! Every read that carries the same tumour-only k-mer comes from the same place on the same haplotype, and Illumina
//! reads hardly ever gain or lose a base. So a read's interesting k-mers fix its offset, the reads are stacked without
//! gaps, and each column votes. Unlike a de Bruijn graph this keeps short tandem repeats longer than k in one piece.
//!
//! A contig grows from the k-mer most reads carry and no further than [`REACH`], so that what it costs depends on the
//! reads of its own place, however many places a repeat or a germline k-mer has brought into one group.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use genuma_kmers::MAX_K;
use genuma_reads::dna::revcomp;
use serde::{Deserialize, Serialize};

use crate::branch::{self, Branches};
use crate::columns::Columns;
use crate::label::Labelled;
use crate::molecule::lot;
use crate::packed::{Packed, Read};
use crate::select::beyond_errors;
use crate::sought::KmerHit;

/// A read laid on a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Index of its pair among those that its group was assembled with.
    pub pair: u32,
    /// Which mate.
    pub mate: u8,
    /// Whether the read runs with the contig.
    pub forward: bool,
    /// Contig position of the first base of the (oriented) read; negative when it begins before the contig.
    pub at: i32,
}

/// The assembled sequence of a tumour allele with its flanks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contig {
    /// Upper-case bases.
    pub seq: Vec<u8>,
    /// For each base, whether a tumour-only k-mer covers it.
    pub novel: Vec<bool>,
    /// For each base, the qualities of the reads that have it, summed up.
    pub weight: Vec<u16>,
    /// Reads the consensus was made from.
    pub reads: Vec<Placed>,
    /// Bases of mates of these reads that lie beyond the contig's left and right end, turned to run with it: some of them.
    pub beyond: [Vec<Vec<u8>>; 2],
}

impl Contig {
    /// Pairs that its reads are of.
    pub fn pairs(&self) -> usize {
        let pairs: std::collections::BTreeSet<u32> = self.reads.iter().map(|read| read.pair).collect();
        pairs.len()
    }
}

/// Fewest distinct pairs that a contig rests on.
pub const FEWEST: usize = 2;

/// What came of a group, or of several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assembled {
    /// Contigs, the best supported first.
    pub contigs: Vec<Contig>,
    /// Stacks of fewer pairs than a contig needs.
    pub few: u64,
    /// Stacks in which too few pairs have good bases where the change is.
    pub poor: u64,
    /// Times that a read was not stacked, as there were enough with the same k-mer or beside it.
    pub deep: u64,
}

impl Assembled {
    /// Adds what came of another group.
    pub fn add(&mut self, Assembled { mut contigs, few, poor, deep }: Assembled) {
        self.contigs.append(&mut contigs);
        self.few += few;
        self.poor += poor;
        self.deep += deep;
    }
}

/// Bases from the first k-mer of a contig up to which it grows, on each side.
const REACH: i32 = 1500;

/// Mates kept of the reads at each end of a contig: as many as it takes to tell one place of a repeat from another.
const MATES: usize = 12;

/// A read with its hits, waiting to be laid.
struct Member<'a> {
    pair: u32,
    mate: u8,
    read: &'a Packed,
    hits: &'a [KmerHit],
    /// The number of each hit's k-mer in the group.
    numbers: Vec<u32>,
}

/// A read that is laid: which member, and where.
struct Stacked {
    member: u32,
    placed: Placed,
    /// Turned to run with the contig.
    read: Read,
}

impl Stacked {
    /// From which column on which bases.
    fn laid(&self) -> (i32, &Read) {
        (self.placed.at, &self.read)
    }
}

/// A stack and what it votes for.
struct Voted<'a> {
    stack: Vec<&'a Stacked>,
    columns: Columns,
    consensus: Vec<u8>,
}

impl<'a> Voted<'a> {
    /// Those of a stack that agree with most of it.
    fn of(stack: Vec<&'a Stacked>) -> Voted<'a> {
        let columns = |stack: &[&Stacked]| Columns::vote(stack.iter().map(|s| s.laid()));
        let all = columns(&stack);
        let (stack, others): (Vec<_>, Vec<_>) =
            stack.into_iter().partition(|s| all.fits(s.placed.at, &s.read));
        let columns = if others.is_empty() { all } else { columns(&stack) };
        Voted { consensus: columns.consensus(), stack, columns }
    }

    /// Leaves out reads that have fewer bases than a seed in a range of the consensus.
    fn keep(&mut self, range: &Range<usize>, seed: i32) {
        let mut columns = Columns::wide_enough(self.stack.iter().map(|s| s.laid()));
        let (from, to) = (columns.start + range.start as i32, columns.start + range.end as i32);
        self.stack
            .retain(|s| (s.placed.at + s.read.seq.len() as i32).min(to) - s.placed.at.max(from) >= seed);
        self.stack.iter().for_each(|s| columns.add(s.placed.at, &s.read));
        self.columns = columns;
    }
}

/// Bases beyond a seed from which on what is new there is an insertion, and no base that changed.
const INSERTION: usize = 100;

/// What is read off a consensus.
struct ReadOff {
    /// Interesting k-mers that stand on it, and where.
    windows: Vec<(u32, Range<usize>)>,
    /// How far it is told.
    range: Range<usize>,
    /// Where the seed stands.
    seeds: Range<usize>,
}

impl ReadOff {
    /// The bases around the seed that interesting k-mers cover without a gap.
    fn inserted(&self) -> Range<usize> {
        let mut windows: Vec<&Range<usize>> = self.windows.iter().map(|w| &w.1).collect();
        windows.sort_unstable_by_key(|w| w.start);
        let right =
            windows.iter().fold(self.seeds.end, |end, w| if w.start <= end { end.max(w.end) } else { end });
        let left = windows
            .iter()
            .rev()
            .fold(self.seeds.start, |start, w| if w.end >= start { start.min(w.start) } else { start });
        left..right
    }

    /// On which sides of the seed an insertion begins.
    fn insertion(&self) -> [bool; 2] {
        let new = self.inserted();
        [self.seeds.start - new.start >= INSERTION, new.end - self.seeds.end >= INSERTION]
    }

    fn begins_insertion(&self) -> bool {
        self.insertion().contains(&true)
    }

    fn branches(&self, reached: &[Stacked], voted: &Voted<'_>) -> Branches {
        let all = reached.iter().map(Stacked::laid).filter(|(at, read)| {
            let from = *at - voted.columns.start;
            from >= 0 && from as usize + read.seq.len() <= voted.consensus.len()
        });
        let [left, right] = self.insertion();
        let found = Branches::of(all, voted.columns.start, &voted.consensus, &self.seeds);
        Branches { left: found.left.filter(|_| left), right: found.right.filter(|_| right), ..found }
    }

    /// Whether sequence begins at the seed that stands elsewhere, too.
    fn is_border(&self, reached: &[Stacked], voted: &Voted<'_>) -> bool {
        self.begins_insertion() || self.branches(reached, voted).within
    }

    /// Whether reads part within what begins at the seed.
    fn parts(&self, reached: &[Stacked], voted: &Voted<'_>) -> bool {
        if !self.begins_insertion() {
            return false;
        }
        let within = |c: usize| self.range.contains(&c);
        let Branches { left, right, .. } = self.branches(reached, voted);
        left.is_some_and(within) || right.is_some_and(within)
    }

    /// The same up to where reads part.
    fn cut(self, reached: &[Stacked], voted: &Voted<'_>) -> ReadOff {
        let Branches { left, right, .. } = self.branches(reached, voted);
        let range = self.range.start.max(left.unwrap_or(0))..self.range.end.min(right.unwrap_or(usize::MAX));
        let mut windows = self.windows;
        windows.retain(|(_, w)| w.start >= range.start && w.end <= range.end);
        ReadOff { windows, range, seeds: self.seeds }
    }
}

/// The reads of a group and which of them carry each k-mer.
struct Group<'a> {
    labelled: &'a [Labelled],
    members: Vec<Member<'a>>,
    /// By k-mer number: members, ascending, [`DEEP`] at most, and a hit of the first of them.
    carriers: Vec<(Vec<u32>, KmerHit)>,
    /// Places of members beyond those in `carriers`.
    beyond: u64,
}

/// Reads of one k-mer that are stacked, those whose pairs' names have the smallest hashes: a consensus gets no better by more, and at a
/// place of thousands of copies it would cost by their square.
const DEEP: usize = 4096;
/// Bases of a contig in which no more reads than that may begin.
const STRETCH: i32 = 64;

/// Why a stack makes no contig.
enum Refused {
    Few,
    Poor,
}

/// Where an interesting k-mer stands on the contig being built.
#[derive(Clone, Copy)]
struct Anchor {
    at: i32,
    span: i32,
    forward: bool,
}

/// The k-mers and reads that have their place on the contig being built; keeps its memory between contigs.
struct Anchors {
    by_number: Vec<Option<Anchor>>,
    reached: Vec<u32>,
    /// By member, whether it is laid.
    laid: Vec<bool>,
    /// Reads not laid as so many begin beside them.
    passed: u64,
}

impl Anchors {
    fn get(&self, number: u32) -> Option<Anchor> {
        self.by_number[number as usize]
    }

    fn put(&mut self, number: u32, anchor: Anchor) {
        self.by_number[number as usize] = Some(anchor);
        self.reached.push(number);
    }

    fn clear(&mut self) {
        self.reached.drain(..).for_each(|number| self.by_number[number as usize] = None);
    }
}

impl<'a> Group<'a> {
    fn new(group: &[u32], labelled: &'a [Labelled]) -> Group<'a> {
        let mates = |&pair: &u32| {
            let p = &labelled[pair as usize];
            [0u8, 1].map(|mate| (pair, mate, &p.mates[usize::from(mate)], &p.hits[usize::from(mate)][..]))
        };
        let mates: Vec<_> = group.iter().flat_map(mates).filter(|m| !m.3.is_empty()).collect();
        let mut ranks: Vec<u32> = mates.iter().flat_map(|m| m.3).map(|h| h.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        // Where a group has more hits than there are ranks up to its last, as when the tumour is another species', a table pays.
        let hits: usize = mates.iter().map(|m| m.3.len()).sum();
        let last = ranks.last().map_or(0, |&r| r as usize);
        let mut table = vec![0; if hits > last { last + 1 } else { 0 }];
        if !table.is_empty() {
            (0..).zip(&ranks).for_each(|(number, &rank)| table[rank as usize] = number);
        }
        let number = |hit: &KmerHit| match table.get(hit.rank as usize) {
            Some(&number) => number,
            None => ranks.partition_point(|&r| r < hit.rank) as u32,
        };
        let members: Vec<Member> = mates
            .into_iter()
            .map(|(pair, mate, read, hits)| Member {
                pair,
                mate,
                read,
                hits,
                numbers: hits.iter().map(number).collect(),
            })
            .collect();
        let mut carriers: Vec<(Vec<u32>, Option<KmerHit>)> = vec![Default::default(); ranks.len()];
        for (i, member) in (0..).zip(&members) {
            for (hit, &number) in member.hits.iter().zip(&member.numbers) {
                let (carriers, first) = &mut carriers[number as usize];
                first.get_or_insert(*hit);
                if carriers.last() != Some(&i) {
                    carriers.push(i);
                }
            }
        }
        let mut beyond = 0;
        let hash = |&i: &u32| lot(&labelled[members[i as usize].pair as usize].name);
        for (carriers, _) in carriers.iter_mut().filter(|c| c.0.len() > DEEP) {
            beyond += (carriers.len() - DEEP) as u64;
            carriers.sort_by_cached_key(|i| (hash(i), *i));
            carriers.truncate(DEEP);
            carriers.sort_unstable();
        }
        let carriers = carriers.into_iter().filter_map(|(members, first)| Some((members, first?))).collect();
        Group { labelled, members, carriers, beyond }
    }

    fn carried_by(&self, number: u32) -> &[u32] {
        &self.carriers[number as usize].0
    }
}

/// Assembles the contigs of one group, the best supported first. `parting` tells of each k-mer, by rank, whether the samples part there:
/// only from there on contigs grow, as one that holds no such place shows no change.
pub fn assemble(group: &[u32], labelled: &[Labelled], parting: &[bool]) -> Assembled {
    let group = Group::new(group, labelled);
    let kmers = group.carriers.len();
    let parts = |&n: &u32| parting[group.carriers[n as usize].1.rank as usize];
    let mut seeds: Vec<u32> = (0..kmers as u32).filter(parts).collect();
    seeds.sort_by_key(|&n| (Reverse(group.carried_by(n).len()), n));
    let mut used = vec![false; kmers];
    let laid = vec![false; group.members.len()];
    let mut anchors = Anchors { by_number: vec![None; kmers], reached: Vec::new(), laid, passed: 0 };
    let mut assembled = Assembled { deep: group.beyond, ..Assembled::default() };
    for seed in seeds {
        if used[seed as usize] || group.carried_by(seed).len() < FEWEST {
            continue;
        }
        match group.lay(seed, &mut used, &mut anchors) {
            Ok(contig) => assembled.contigs.push(contig),
            Err(Refused::Few) => assembled.few += 1,
            Err(Refused::Poor) => assembled.poor += 1,
        }
        used[seed as usize] = true;
    }
    assembled.deep += anchors.passed;
    assembled
}

impl Group<'_> {
    /// Lays every read that can be reached from `seed` through k-mers not used yet, and reads off the consensus. What that
    /// accounts for is marked as used.
    fn lay(&self, seed: u32, used: &mut [bool], anchors: &mut Anchors) -> Result<Contig, Refused> {
        let reached = self.reach(seed, used, anchors);
        let read = |voted: &Voted<'_>| self.read_off(voted, seed, anchors);
        let all = Voted::of(reached.iter().collect());
        let told = read(&all);
        // What begins here may stand elsewhere, too: then reads of all those places meet in it, and may be more than those of this one.
        let (voted, told) = match told {
            Some(told) if !told.parts(&reached, &all) => (all, told),
            told => {
                let carries = |i: usize| self.members[reached[i].member as usize].numbers.contains(&seed);
                let stack: Vec<(i32, &Read)> = reached.iter().map(Stacked::laid).collect();
                let span = self.carriers[seed as usize].1.span as i32;
                let own = branch::along(&stack, carries, &(0..span));
                let mut own = Voted::of(own.into_iter().map(|i| &reached[i]).collect());
                let cut = read(&own)
                    .filter(|told| told.is_border(&reached, &own))
                    .map(|told| told.cut(&reached, &own));
                match (cut, told) {
                    (Some(cut), _) => {
                        own.keep(&cut.range, span);
                        (own, cut)
                    }
                    (None, Some(told)) => (all, told),
                    (None, None) => return Err(Refused::Few),
                }
            }
        };
        let Voted { stack, columns, consensus } = voted;
        let ReadOff { windows, range, seeds } = told;
        // A tandem repeat with its flanks tells no base that changed.
        let k = seeds.len();
        let mut plain = k <= MAX_K as usize;
        let (mut novel, mut core) = (vec![false; range.len()], 0..usize::MAX);
        for (number, window) in windows {
            used[number as usize] = true;
            plain &= window.len() == k;
            core = core.start.max(window.start)..core.end.min(window.end);
            novel[window.start - range.start..window.end - range.start].fill(true);
        }
        self.mark_errors(&stack, &columns, used);
        let mut pairs: Vec<u32> = stack.iter().map(|s| s.placed.pair).collect();
        pairs.sort_unstable();
        pairs.dedup();
        if pairs.len() < FEWEST {
            return Err(Refused::Few);
        }
        let core = columns.start + core.start as i32..columns.start + core.end as i32;
        if !well_read(&stack, &core) {
            return Err(Refused::Poor);
        }
        let poor = |at: usize| columns.weight_of(at, consensus[at]) < BELIEVED;
        if plain && changed_base(&novel, k, range.start, &stack, &columns).is_some_and(poor) {
            return Err(Refused::Poor);
        }
        let shift = columns.start + range.start as i32;
        let reads: Vec<Placed> =
            stack.iter().map(|s| Placed { at: s.placed.at - shift, ..s.placed }).collect();
        let beyond = self.beyond(&reads);
        let weight = range.clone().map(|at| columns.weight_of(at, consensus[at])).collect();
        Ok(Contig { seq: consensus[range].to_vec(), novel, weight, reads, beyond })
    }

    /// What a stack reached from `seed` tells; nothing where the seed is not what most of it has.
    fn read_off(&self, voted: &Voted<'_>, seed: u32, anchors: &Anchors) -> Option<ReadOff> {
        let Voted { stack, columns, consensus } = voted;
        let window = |number: u32| {
            let anchor = anchors.get(number)?;
            let from = usize::try_from(anchor.at - columns.start).ok()?;
            let range = from..from + anchor.span as usize;
            self.carried(number, consensus.get(range.clone())?).then_some(range)
        };
        let seeds = window(seed).filter(|_| !stack.is_empty())?;
        let range = columns.trusted(seeds.start, seeds.len());
        let range = columns.read_across(range, seeds.clone(), consensus, stack.iter().map(|s| s.laid()));
        let within = |w: &Range<usize>| w.start >= range.start && w.end <= range.end;
        let on = |&number: &u32| Some((number, window(number).filter(within)?));
        let windows = anchors.reached.iter().filter_map(on).collect();
        Some(ReadOff { windows, range, seeds })
    }

    /// Gives the k-mers that reads lead to from `seed` on their places, and lays those reads, each turned to run with the seed.
    fn reach(&self, seed: u32, used: &[bool], anchors: &mut Anchors) -> Vec<Stacked> {
        anchors.clear();
        let span = self.carriers[seed as usize].1.span as i32;
        anchors.put(seed, Anchor { at: 0, span, forward: true });
        let mut laid: Vec<(u32, Placed)> = Vec::new();
        // Reads that begin in each stretch of the contig: a repeat of many copies would lay all of them, side by side.
        let (mut begun, mut passed): (HashMap<i32, usize>, Vec<u32>) = (HashMap::new(), Vec::new());
        let mut next = 0;
        while next < anchors.reached.len() {
            for &i in self.carried_by(anchors.reached[next]) {
                if anchors.laid[i as usize] {
                    continue;
                }
                let member = &self.members[i as usize];
                let Some(placed) = self.offset(member, anchors) else { continue };
                anchors.laid[i as usize] = true;
                let begun = begun.entry(placed.at.div_euclid(STRETCH)).or_default();
                *begun += 1;
                if *begun > DEEP {
                    passed.push(i);
                    continue;
                }
                laid.push((i, placed));
                for (hit, &number) in member.hits.iter().zip(&member.numbers) {
                    let at = placed.at + oriented(hit, member.read.len(), placed.forward);
                    if !used[number as usize] && at.abs() <= REACH && anchors.get(number).is_none() {
                        let forward = hit.forward == placed.forward;
                        anchors.put(number, Anchor { at, span: hit.span as i32, forward });
                    }
                }
            }
            next += 1;
        }
        laid.iter().map(|(i, _)| i).chain(&passed).for_each(|&i| anchors.laid[i as usize] = false);
        anchors.passed += passed.len() as u64;
        laid.sort_unstable_by_key(|(i, _)| *i);
        let turned = |(member, placed): (u32, Placed)| {
            let read = self.members[member as usize].read.unpack();
            Stacked { member, placed, read: if placed.forward { read } else { read.reversed() } }
        };
        laid.into_iter().map(turned).collect()
    }

    /// Mates of the stacked reads that are not stacked themselves, by the end beyond which they lie.
    fn beyond(&self, reads: &[Placed]) -> [Vec<Vec<u8>>; 2] {
        let stacked: HashSet<(u32, u8)> = reads.iter().map(|r| (r.pair, r.mate)).collect();
        let mut beyond: [Vec<Vec<u8>>; 2] = Default::default();
        for read in reads.iter().filter(|r| !stacked.contains(&(r.pair, 1 - r.mate))) {
            // Mates face each other: that of a read that runs with the contig lies to its right and runs against it.
            let mate = &self.labelled[read.pair as usize].mates[1 - read.mate as usize];
            let side = &mut beyond[usize::from(read.forward)];
            if side.len() < MATES && !mate.is_empty() {
                let seq = mate.bases(0..mate.len());
                side.push(if read.forward { revcomp(&seq) } else { seq });
            }
        }
        beyond
    }

    /// Whether the consensus window is that k-mer, read off one of its carriers.
    fn carried(&self, number: u32, window: &[u8]) -> bool {
        let (members, hit) = &self.carriers[number as usize];
        let read = self.members[members[0] as usize].read;
        let text = read.bases(hit.at as usize..(hit.at + hit.span) as usize);
        text == window || revcomp(&text) == window
    }

    /// The offset most of the read's anchored k-mers agree on.
    fn offset(&self, member: &Member, anchors: &Anchors) -> Option<Placed> {
        let mut votes: BTreeMap<(i32, bool), u32> = BTreeMap::new();
        for (hit, &number) in member.hits.iter().zip(&member.numbers) {
            if let Some(anchor) = anchors.get(number) {
                let forward = hit.forward == anchor.forward;
                let at = anchor.at - oriented(hit, member.read.len(), forward);
                *votes.entry((at, forward)).or_default() += 1;
            }
        }
        let ((at, forward), _) = votes.into_iter().max_by_key(|&(_, n)| n)?;
        Some(Placed { pair: member.pair, mate: member.mate, forward, at })
    }

    /// Marks k-mers of the stacked reads that are not on the consensus and too seldom for the depth of the stack to be
    /// anything but wrong bases: they would each make a contig of their own, at a deep place hundreds.
    fn mark_errors(&self, stack: &[&Stacked], columns: &Columns, used: &mut [bool]) {
        for Stacked { member, placed, read } in stack {
            let member = &self.members[*member as usize];
            for (hit, &number) in member.hits.iter().zip(&member.numbers) {
                if used[number as usize] {
                    continue;
                }
                let middle = placed.at + oriented(hit, read.seq.len(), placed.forward) + hit.span as i32 / 2;
                let depth = columns.depth((middle - columns.start) as usize);
                used[number as usize] =
                    (self.carried_by(number).len() as f64) < beyond_errors(f64::from(depth));
            }
        }
    }
}

/// Sum of base qualities from which a changed base is believed: two good ones.
pub const BELIEVED: u16 = 50;

/// Quality of a base that a sequencing error seldom has.
const GOOD: u8 = 20;

/// Whether enough pairs have good bases where all the interesting k-mers overlap: there the change itself lies. With
/// no such place (a long change) there is nothing to doubt.
fn well_read(stack: &[&Stacked], core: &Range<i32>) -> bool {
    if core.is_empty() {
        return true;
    }
    let good = |Stacked { placed, read, .. }: &&&Stacked| {
        let (from, to) = (core.start - placed.at, core.end - placed.at);
        from >= 0
            && to <= read.seq.len() as i32
            && read.qual[from as usize..to as usize].iter().filter(|&&q| q < GOOD).count() * 8 <= core.len()
    };
    let mut pairs: Vec<u32> = stack.iter().filter(good).map(|s| s.placed.pair).collect();
    pairs.dedup();
    pairs.len() >= FEWEST
}

/// The column of the base that a stack differs in from the normal, where it is one base as far as the stack tells.
///
/// A changed base makes a row of novel k-mers: it is the last base of the first of them and the first base of the last. Either end of the
/// row tells which base it is, unless the k-mer beyond is not novel because fewer than [`FEWEST`] reads have it. Two ends that tell
/// different bases are of another change, and so may be several rows.
fn changed_base(
    novel: &[bool],
    k: usize,
    from: usize,
    stack: &[&Stacked],
    columns: &Columns,
) -> Option<usize> {
    let start = novel.iter().position(|&n| n)?;
    let end = start + novel[start..].iter().position(|&n| !n).unwrap_or(novel.len() - start);
    if novel[end..].contains(&true) || end - start < k {
        return None;
    }
    let (start, end) = (from + start, from + end);
    let read = |window: Range<usize>| {
        let covers = |s: &&&Stacked| {
            let at = (s.placed.at - columns.start) as usize;
            at <= window.start && at + s.read.seq.len() >= window.end
        };
        stack.iter().filter(covers).take(FEWEST).count() == FEWEST
    };
    let left = (start > 0 && read(start - 1..start - 1 + k)).then(|| start + k - 1);
    let right = read(end + 1 - k..end + 1).then(|| end - k);
    match (left, right) {
        (Some(left), Some(right)) => (left == right).then_some(left),
        (left, right) => left.or(right),
    }
}

/// Start of a hit in the oriented read.
fn oriented(hit: &KmerHit, len: usize, forward: bool) -> i32 {
    if forward { hit.at as i32 } else { len as i32 - (hit.at + hit.span) as i32 }
}
