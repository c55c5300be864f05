//! Planted reads of both alleles → recruited, laid, weighed, judged.
mod common;

use std::collections::HashSet;

use common::{K, READ, Rng, canonical, lend, novel, pair, replaced};
use genuma_align::{CigarKind, CigarOp, Hit, Strand};
use genuma_reads::dna::revcomp;
use genuma_reads::fasta::{self, Reference};
use genuma_reads::{NORMAL, TUMOUR};
use genuma_somatic::assemble::Contig;
use genuma_somatic::compare::{Compared, compare};
use genuma_somatic::duplicates;
use genuma_somatic::evidence::{Qualities, Tally, Vote, votes};
use genuma_somatic::genotype::{Filter, Genotype, Params, judge};
use genuma_somatic::label::Labelled;
use genuma_somatic::recruit::{Index, Seen};

/// A locus of 2,000 bases with one change at its middle.
struct Locus {
    normal: Vec<u8>,
    tumour: Vec<u8>,
    /// What the change replaced, and how long it is in the tumour.
    at: usize,
    removed: usize,
    added: usize,
}

impl Locus {
    fn new(normal: Vec<u8>, at: usize, removed: usize, added: &[u8]) -> Locus {
        let tumour = replaced(&normal, at, removed, added);
        Locus { normal, tumour, at, removed, added: added.len() }
    }

    /// The contig that assembly would give, compared with the normal sequence. The hit is that of the left flank.
    fn compared(&self) -> Compared {
        let genome =
            Reference::from_contigs(vec![fasta::Contig { name: "normal".into(), seq: self.normal.clone() }]);
        let (from, to) = (self.at - 200, self.at + self.added + 200);
        let seq = self.tumour[from..to].to_vec();
        let contig = Contig { novel: novel(&seq, &canonical(&[&self.normal])), seq, reads: Vec::new() };
        let flank = |query: usize, start: usize, primary: bool| hit(query, start, primary);
        let hits = [flank(0, from, true), flank(200 + self.added, self.at + self.removed, false)];
        let compared = compare(&contig, &hits, &genome);
        assert_eq!(compared.findings.len(), 1, "{:?}", compared.findings);
        compared
    }
}

/// 200 bases that match.
fn hit(query: usize, start: usize, primary: bool) -> Hit {
    Hit {
        tid: 0,
        contig: None,
        ref_start: start as i64,
        ref_end: start as i64 + 200,
        query_start: query as i32,
        query_end: query as i32 + 200,
        strand: Strand::Forward,
        mapq: 60,
        score: 200,
        n_sub: 0,
        blen: 200,
        mlen: 200,
        proper_pair: false,
        is_primary: primary,
        is_secondary: false,
        is_supplementary: !primary,
        cigar: vec![CigarOp { kind: CigarKind::Match, len: 200 }],
    }
}

/// Pairs of which just one mate covers `haplotype[core]`, with `margin` bases or more on both sides.
struct Planter {
    rng: Rng,
    made: usize,
}

impl Planter {
    fn plant(
        &mut self,
        n: usize,
        sample: u8,
        haplotype: &[u8],
        core: std::ops::Range<usize>,
        margin: usize,
    ) -> Vec<Labelled> {
        assert!(core.len() + 2 * margin < READ);
        let mut starts: Vec<usize> = (core.end + margin - READ..=core.start - margin).collect();
        self.rng.shuffle(&mut starts);
        assert!(starts.len() >= n, "no two pairs may start at one place");
        starts[..n]
            .iter()
            .map(|&from| {
                let forward = self.rng.chance(0.5);
                let covering = haplotype[from..from + READ].to_vec();
                // The mate lies wholly beside the change, on the other strand.
                let insert = self.rng.within(450..550);
                let mates = if forward {
                    [covering, revcomp(&haplotype[from + insert - READ..from + insert])]
                } else {
                    [revcomp(&covering), haplotype[from + READ - insert..from + 2 * READ - insert].to_vec()]
                };
                self.made += 1;
                let mut made = pair(&format!("p{}", self.made), sample, mates);
                if self.rng.chance(0.5) {
                    made.mates.reverse();
                }
                made
            })
            .collect()
    }
}

/// Votes of each sample, PCR copies apart, and how many of those.
struct Weighed {
    votes: [Vec<Vote>; 2],
    copies: [u32; 2],
}

impl Weighed {
    fn counts(&self, sample: u8) -> (usize, usize) {
        let votes = &self.votes[sample as usize];
        (votes.iter().filter(|v| v.reference()).count(), votes.iter().filter(|v| v.alternative()).count())
    }

    fn judged(&self) -> Genotype {
        judge(&self.votes[0], &self.votes[1], self.copies, Params::default())
    }
}

fn weigh(compared: &Compared, pairs: &[Labelled]) -> Weighed {
    let index = Index::new(std::slice::from_ref(compared), K, 1000);
    let seen = Seen::new(&index);
    let mut scratch = [Vec::new(), Vec::new()];
    let kept: Vec<Labelled> = pairs
        .iter()
        .filter_map(|p| lend(p, |lent| index.recruit(lent, p.sample, &seen, &mut scratch)))
        .collect();
    for pair in &kept {
        let original = pairs.iter().find(|p| p.name == pair.name).unwrap();
        assert_eq!((&pair.mates, pair.sample), (&original.mates, original.sample));
    }
    let laid = index.lay(&kept, &seen.into_counts(), 1).remove(0);
    let found = votes(
        &compared.findings[0],
        &compared.seq,
        &laid,
        |r| r.oriented(&kept),
        &Qualities::of(&Tally::default()),
    );
    let copies = duplicates::mark(&kept.iter().collect::<Vec<_>>());
    let mut weighed = Weighed { votes: [Vec::new(), Vec::new()], copies: [0; 2] };
    let mut voters = HashSet::new();
    for vote in found {
        assert!(voters.insert(vote.pair), "a pair votes once");
        let sample = kept[vote.pair as usize].sample as usize;
        if copies[vote.pair as usize] {
            weighed.copies[sample] += 1;
        } else {
            weighed.votes[sample].push(vote);
        }
    }
    weighed
}

/// Plants 11 and 17 pairs of the tumour's two alleles and 21 of the normal and finds just these.
fn counts_what_was_planted(
    locus: &Locus,
    margin: usize,
    normal: std::ops::Range<usize>,
    tumour: std::ops::Range<usize>,
) {
    let compared = locus.compared();
    for seed in 0..10 {
        let mut planter = Planter { rng: Rng(seed), made: 0 };
        let pairs = [
            planter.plant(11, TUMOUR, &locus.tumour, tumour.clone(), margin),
            planter.plant(17, TUMOUR, &locus.normal, normal.clone(), margin),
            planter.plant(21, NORMAL, &locus.normal, normal.clone(), margin),
        ]
        .concat();
        let weighed = weigh(&compared, &pairs);
        assert_eq!(weighed.counts(TUMOUR), (17, 11), "seed {seed}");
        assert_eq!(weighed.counts(NORMAL), (21, 0), "seed {seed}");
        assert_eq!(weighed.copies, [0, 0]);
        let judged = weighed.judged();
        assert!(judged.filters.is_empty(), "{:?}", judged.filters);
        assert!(judged.quality > 30.0);
    }
}

#[test]
fn both_alleles_of_a_substitution_are_counted() {
    let mut rng = Rng(51);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    counts_what_was_planted(&Locus::new(normal, 1000, 1, &[base]), 30, 1000..1001, 1000..1001);
}

#[test]
fn both_alleles_of_an_indel_in_a_tandem_repeat_are_counted() {
    for (repeats, unit, shorter) in
        [(10, &b"CA"[..], true), (10, b"CA", false), (12, b"A", true), (12, b"A", false)]
    {
        let mut rng = Rng(52);
        let mut normal = rng.sequence(2000);
        let repeat = unit.repeat(repeats);
        let end = 1000 + repeat.len();
        normal[1000..end].copy_from_slice(&repeat);
        (normal[999], normal[end]) = (b'G', b'T');
        let locus = if shorter {
            Locus::new(normal, 1000, unit.len(), b"")
        } else {
            Locus::new(normal, 1000, 0, unit)
        };
        let tumour = 1000..end + locus.added - locus.removed;
        counts_what_was_planted(&locus, 30, 1000..end, tumour);
    }
}

#[test]
fn both_alleles_of_a_tandem_duplication_are_counted() {
    let normal = Rng(53).sequence(2000);
    let copied = normal[1000..1090].to_vec();
    let locus = Locus::new(normal, 1000, 0, &copied);
    // Only a read across the border of the copies, and only one across all of the single copy, can tell.
    counts_what_was_planted(&locus, 20, 1000..1090, 1070..1110);
    // Reads from the flanks into a copy, and from inside a copy, say nothing.
    let mut planter = Planter { rng: Rng(9), made: 0 };
    let silent = [
        planter.plant(10, NORMAL, &locus.normal, 920..1010, 25),
        planter.plant(10, TUMOUR, &locus.normal, 1080..1160, 25),
    ]
    .concat();
    let weighed = weigh(&locus.compared(), &silent);
    assert_eq!((weighed.counts(NORMAL).1, weighed.counts(TUMOUR).1), (0, 0));
}

#[test]
fn pcr_copies_are_counted_once() {
    let mut rng = Rng(54);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    let locus = Locus::new(normal, 1000, 1, &[base]);
    let mut planter = Planter { rng: Rng(55), made: 0 };
    let mut pairs = planter.plant(5, TUMOUR, &locus.tumour, 1000..1001, 40);
    pairs.extend(planter.plant(8, NORMAL, &locus.normal, 1000..1001, 40));
    // Two copies of each of the tumour's: one read from the other strand, one with errors at its start.
    let copies: Vec<Labelled> = pairs[..5]
        .iter()
        .flat_map(|p| {
            let (mut turned, mut worn) = (p.clone(), p.clone());
            turned.mates.reverse();
            turned.name.extend(b"turned");
            worn.mates[0].seq[3] = rng.another(worn.mates[0].seq[3]);
            worn.mates[0].qual[3] = 8;
            worn.name.extend(b"worn");
            [turned, worn]
        })
        .collect();
    pairs.extend(copies);
    let weighed = weigh(&locus.compared(), &pairs);
    assert_eq!(weighed.counts(TUMOUR), (0, 5));
    assert_eq!(weighed.counts(NORMAL), (8, 0));
    assert_eq!(weighed.copies, [0, 10]);
    assert_eq!(weighed.judged().tumour.copies, 10);
}

#[test]
fn strangers_and_reads_of_another_change_do_not_vote_for_it() {
    let mut rng = Rng(56);
    let normal = rng.sequence(2000);
    let base = rng.another(normal[1000]);
    let other = b"ACGT".iter().copied().find(|&b| b != base && b != normal[1000]).unwrap();
    let locus = Locus::new(normal, 1000, 1, &[base]);
    let third = replaced(&locus.normal, 1000, 1, &[other]);
    let mut planter = Planter { rng: Rng(57), made: 0 };
    let pairs = planter.plant(10, TUMOUR, &third, 1000..1001, 40);
    let weighed = weigh(&locus.compared(), &pairs);
    // A third base speaks for neither allele.
    assert_eq!(weighed.counts(TUMOUR), (0, 0));
    // Paralogous sequence: but for the nearest bases, one in six differs.
    let mut strange = locus.tumour.clone();
    for i in (0..strange.len()).step_by(6).filter(|i| !(975..1025).contains(i)) {
        strange[i] = rng.another(strange[i]);
    }
    let weighed = weigh(&locus.compared(), &planter.plant(10, TUMOUR, &strange, 1000..1001, 40));
    assert_eq!(weighed.counts(TUMOUR), (0, 0));
}

/// Votes as good reads give them: `reference` and `alternative` of them, half on each strand, well inside.
fn ballot(reference: usize, alternative: usize) -> Vec<Vote> {
    (0..reference + alternative)
        .map(|i| Vote {
            pair: i as u32,
            log_odds: if i < reference { -9.0 } else { 9.0 },
            forward: i % 2 == 0,
            from_end: 40,
            quality: 37,
        })
        .collect()
}

fn reasons(normal: &[Vote], tumour: &[Vote]) -> Vec<Filter> {
    judge(normal, tumour, [0, 0], Params::default()).filters.into_iter().collect()
}

#[test]
fn clear_somatic_changes_pass() {
    for (reference, alternative) in [(15, 15), (22, 8), (24, 6), (0, 30), (40, 10)] {
        let judged = judge(&ballot(30, 0), &ballot(reference, alternative), [1, 2], Params::default());
        assert!(judged.filters.is_empty(), "{reference} {alternative}: {judged:?}");
        assert_eq!((judged.normal.reference, judged.normal.alternative, judged.normal.copies), (30, 0, 1));
        assert_eq!(
            (judged.tumour.reference, judged.tumour.alternative),
            (reference as u32, alternative as u32)
        );
        assert_eq!((judged.tumour.copies, judged.tumour.forward), (2, (alternative / 2) as u32));
    }
    // More support is more quality.
    let quality = |n: usize| judge(&ballot(30, 0), &ballot(30 - n, n), [0, 0], Params::default()).quality;
    assert!((3..15).all(|n| quality(n) <= quality(n + 1)));
}

#[test]
fn germline_variants_are_named() {
    for (normal, tumour) in [((15, 15), (14, 16)), ((0, 30), (0, 30)), ((20, 9), (10, 20))] {
        let found = reasons(&ballot(normal.0, normal.1), &ballot(tumour.0, tumour.1));
        assert!(found.contains(&Filter::Germline), "{found:?}");
        assert!(!found.contains(&Filter::TumourInNormal), "{found:?}");
    }
}

#[test]
fn slight_contamination_passes() {
    assert_eq!(reasons(&ballot(59, 1), &ballot(30, 30)), []);
    assert_eq!(reasons(&ballot(29, 1), &ballot(15, 15)), []);
}

#[test]
fn the_same_small_share_in_both_is_named() {
    for n in [1, 2] {
        let found = reasons(&ballot(30, n), &ballot(30, 4));
        assert!(found.contains(&Filter::TumourInNormal), "{found:?}");
        assert!(!found.contains(&Filter::Germline), "{found:?}");
    }
}

#[test]
fn thin_or_one_sided_support_is_named() {
    let clean = ballot(30, 0);
    assert!(reasons(&clean, &ballot(20, 2)).contains(&Filter::FewReads));
    assert!(!reasons(&clean, &ballot(20, 3)).contains(&Filter::FewReads));
    assert!(reasons(&ballot(5, 0), &ballot(15, 15)).contains(&Filter::NormalDepth));
    assert!(!reasons(&ballot(6, 0), &ballot(15, 15)).contains(&Filter::NormalDepth));
    let with = |change: fn(&mut Vote)| {
        let mut votes = ballot(15, 15);
        votes.iter_mut().skip(15).for_each(change);
        reasons(&clean, &votes)
    };
    assert_eq!(with(|v| v.from_end = 5), [Filter::ReadEnds]);
    assert_eq!(with(|v| v.quality = 12), [Filter::BaseQuality]);
    assert_eq!(with(|v| v.forward = true), [Filter::StrandBias]);
    assert_eq!(with(|v| v.forward = false), [Filter::StrandBias]);
    // One read well inside is enough.
    let mut votes = ballot(15, 15);
    votes.iter_mut().skip(16).for_each(|v| v.from_end = 5);
    assert_eq!(reasons(&clean, &votes), []);
    // Votes that say too little count for neither.
    let unsure: Vec<Vote> =
        ballot(15, 15).into_iter().map(|v| Vote { log_odds: v.log_odds / 9.0, ..v }).collect();
    let judged = judge(&clean, &unsure, [0, 0], Params::default());
    assert_eq!(judged.tumour.depth(), 0);
    assert!(judged.filters.contains(&Filter::FewReads) && judged.filters.contains(&Filter::LowQuality));
}

#[test]
fn no_reads_at_all_are_no_call() {
    let judged = judge(&[], &[], [0, 0], Params::default());
    assert_eq!((judged.quality, judged.tumour.fraction()), (0.0, 0.0));
    assert!(judged.filters.contains(&Filter::LowQuality) && judged.filters.contains(&Filter::NormalDepth));
    let repeat = Params { mapq: 0, ..Params::default() };
    assert!(judge(&ballot(30, 0), &ballot(15, 15), [0, 0], repeat).filters.contains(&Filter::Repeat));
}

#[test]
fn qualities_that_promise_too_much_are_lowered_to_what_the_reads_show() {
    use genuma_somatic::label::Read;
    let mut rng = Rng(97);
    let seq = rng.sequence(400);
    let contig = Contig { novel: vec![false; seq.len()], seq: seq.clone(), reads: Vec::new() };
    let compared = Compared::unplaced(&contig);
    // One base in 250 wrong, all called Q40; and a germline variant at 200 in every second read.
    let reads: Vec<(i32, Read)> = (0..400)
        .map(|i| {
            let at = i * 37 % 290;
            let mut bases = seq[at..at + READ.min(110)].to_vec();
            for (j, base) in bases.iter_mut().enumerate() {
                if (i * 131 + j * 17) % 250 == 0 || (i % 2 == 0 && at + j == 200) {
                    *base = if *base == b'A' { b'C' } else { b'A' };
                }
            }
            let qual = vec![40; bases.len()];
            (at as i32, Read { seq: bases, qual })
        })
        .collect();
    let tally = Tally::of(&compared, &reads);
    let rate = tally.error_rate(40).unwrap();
    assert!((0.0005..0.01).contains(&rate), "{rate}");
    assert_eq!(tally.error_rate(30), None);
}
