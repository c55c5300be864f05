//! Finds calls whose inserted sequence comes from a screened sequence, for example integration sites of a virus in the
//! tumour's genome.
//!
//! The FASTA file of the screened sequences is read once; its k-mers are looked up among the k-mers of the inserted
//! sequences of all calls, in the same way as those of the reference among candidate k-mers
//! ([`crate::reference_kmers`]).

use std::collections::HashMap;
use std::path::Path;

use genuma_kmers::encode::kmers;
use genuma_reads::Error;
use genuma_reads::fasta::{FastaEvent, Reference, read_fasta_events};
use serde::Serialize;

use crate::change::{Change, RetainedSide, change_sort_position};
use crate::event::Event;
use crate::kmer_lookup::{KmerHit, KmerLookup, KmerLookupBuffers};
use crate::vcf_record::{self, VcfRecord};

/// A call whose inserted sequence comes from a screened sequence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScreenHit {
    /// ID of the event: `g1` for the first.
    pub id: String,
    /// Name of the reference sequence on which the call is.
    pub chrom: String,
    /// Position of the call (1-based).
    pub pos: u64,
    /// Name of the screened sequence: the first word of its FASTA header.
    pub name: String,
    /// Position in the screened sequence (1-based) of the first base of the first shared k-mer, read from the retained
    /// bases on.
    pub sequence_pos: u64,
    /// Whether the inserted sequence, in the direction of the genome, continues along the forward strand of the
    /// screened sequence, as in the FASTA file.
    pub forward: bool,
    /// Number of k-mers of the inserted sequence that the screened sequence has, and number of all k-mers of the
    /// inserted sequence.
    pub kmers: [u64; 2],
}

/// Minimum number of k-mers of the inserted sequence that a screened sequence must have. Chosen; a higher value reports
/// fewer hits.
const MIN_HIT_KMERS: usize = 8;
/// Minimum share of the k-mers of the inserted sequence that a screened sequence must have. Chosen; a higher value
/// reports fewer hits.
const MIN_HIT_KMER_SHARE: f64 = 0.3;

/// The inserted sequences of an event, each read away from the retained bases, with its change.
fn inserted_sequences(event: &Event) -> Vec<(Vec<u8>, &Change)> {
    let of = |change: &Change| match change {
        Change::Novel { sequence, .. } => Some(sequence.clone()),
        Change::Junction { inserted, .. } => Some(inserted.clone()),
        Change::Allele { reference, alternative, .. } => {
            (alternative.len() > reference.len()).then(|| alternative.clone())
        }
    };
    event.calls.iter().filter_map(|call| Some((of(&call.change)?, &call.change))).collect()
}

/// Position of a k-mer in the screened sequences: number of the sequence, 0-based position, and whether the canonical
/// k-mer is on the forward strand.
type ScreenPosition = (u32, u64, bool);

/// Searches the inserted sequences of all calls in a FASTA file of screened sequences. Returns the hits in the order of
/// the calls.
///
/// # Errors
/// The file cannot be read.
pub fn find_screen_hits(events: &[Event], genome: &Reference, path: &Path, k: u32) -> Result<Vec<ScreenHit>, Error> {
    let wanted: Vec<Vec<(Vec<u8>, &Change)>> = events.iter().map(inserted_sequences).collect();
    let all = wanted.iter().flatten().flat_map(|(seq, _)| kmers(seq, k).map(|(_, kmer)| kmer.canonical()));
    let mut all: Vec<u64> = all.collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let sought = KmerLookup::from_kmer_iter(k, all.into_iter());
    let (names, places) = locate_kmers(path, &sought)?;
    let found = wanted.iter().enumerate().filter_map(|(i, seqs)| {
        let best =
            seqs.iter().filter_map(|(seq, change)| Some((find_best_sequence(seq, k, &sought, &places)?, *change)));
        let (best, change) = best.max_by_key(|(best, _)| best.kmers[0])?;
        let (chrom, pos) = change_sort_position(change);
        let (place, forward) = position_next_to_end(&best, change, k);
        Some(ScreenHit {
            id: vcf_record::format_event_id(i),
            chrom: genome.contigs[chrom].name.clone(),
            pos: pos as u64 + 1,
            name: names[best.name as usize].clone(),
            sequence_pos: place,
            forward,
            kmers: best.kmers,
        })
    });
    Ok(found.collect())
}

/// Returns the names of the screened sequences, and for each searched k-mer (by rank) its first position in them.
fn locate_kmers(path: &Path, sought: &KmerLookup) -> Result<(Vec<String>, HashMap<u32, ScreenPosition>), Error> {
    let (mut names, mut places) = (Vec::<String>::new(), HashMap::new());
    let (mut looking, mut hits) = (KmerLookupBuffers::default(), Vec::<KmerHit>::new());
    let overlap = sought.k() as usize - 1;
    // The last bases of the current sequence, and the number of bases before them.
    let (mut held, mut before) = (Vec::new(), 0u64);
    read_fasta_events(path, |part| match part {
        FastaEvent::Header { name, .. } => {
            names.push(String::from_utf8_lossy(name).into_owned());
            held.clear();
            before = 0;
        }
        FastaEvent::Bases(bases) => {
            held.extend(bases.iter().map(u8::to_ascii_uppercase));
            hits.clear();
            sought.find_kmers(&held, &mut looking, &mut hits);
            let name = names.len() as u32 - 1;
            for hit in &hits {
                places.entry(hit.rank).or_insert((name, before + u64::from(hit.start), hit.forward));
            }
            let gone = held.len().saturating_sub(overlap);
            before += gone as u64;
            held.drain(..gone);
        }
    })?;
    Ok((names, places))
}

/// The screened sequence that has the most k-mers of an inserted sequence.
struct BestSequence {
    name: u32,
    /// For the first and the last shared k-mer: position in the inserted sequence, and position in the screened
    /// sequence.
    ends: [(usize, u64); 2],
    /// Whether the inserted and the screened sequence have the same orientation.
    forward: bool,
    kmers: [u64; 2],
}

fn find_best_sequence(
    seq: &[u8],
    k: u32,
    sought: &KmerLookup,
    places: &HashMap<u32, ScreenPosition>,
) -> Option<BestSequence> {
    let of = |(at, kmer): (usize, genuma_kmers::encode::KmerOnBothStrands)| {
        let &(name, place, canonical) = places.get(&sought.rank_of_kmer(kmer.canonical())?)?;
        Some((name, at, place, (kmer.forward <= kmer.reverse) == canonical))
    };
    let found: Vec<(u32, usize, u64, bool)> = kmers(seq, k).filter_map(of).collect();
    let mut counts = HashMap::<u32, usize>::new();
    found.iter().for_each(|hit| *counts.entry(hit.0).or_default() += 1);
    let (&name, &n) = counts.iter().max_by_key(|&(name, n)| (*n, u32::MAX - name))?;
    let all = kmers(seq, k).count();
    if n < MIN_HIT_KMERS || (n as f64) < MIN_HIT_KMER_SHARE * all as f64 {
        return None;
    }
    let mut own = found.iter().filter(|hit| hit.0 == name);
    let first = own.next()?;
    let last = own.next_back().unwrap_or(first);
    let ends = [first, last].map(|hit| (hit.1, hit.2));
    Some(BestSequence { name, ends, forward: first.3, kmers: [n as u64, all as u64] })
}

/// Position (1-based) in the screened sequence of the base of the first shared k-mer that is nearest to the retained
/// bases, and whether the inserted sequence continues from there along the forward strand of the screened sequence, in
/// the direction of the genome.
fn position_next_to_end(best: &BestSequence, change: &Change, k: u32) -> (u64, bool) {
    let [first, _] = best.ends;
    // The sequence of a loose end is read away from it.
    let turned = matches!(change, Change::Novel { end, .. } if end.side == RetainedSide::Right);
    let place = if best.forward { first.1 } else { first.1 + u64::from(k) - 1 };
    (place + 1, best.forward != turned)
}

/// Adds to the records of each event the name of the screened sequence and the position of its hit.
pub fn annotate_records(found: &[ScreenHit], records: &mut [VcfRecord]) {
    let by_id: HashMap<&str, &ScreenHit> = found.iter().map(|found| (&found.id[..], found)).collect();
    for record in records {
        let found = by_id.get(&vcf_record::format_event_id(record.event)[..]);
        record.screen = found.map(|found| (found.name.clone(), found.sequence_pos));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::dna::reverse_complement;

    #[test]
    fn a_piece_on_either_strand_is_found_with_its_place() {
        let mut x = 21u64;
        let mut base = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 62) as usize]
        };
        let [virus, other]: [Vec<u8>; 2] = [0, 1].map(|_| (0..6000).map(|_| base()).collect());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("screen.fa");
        let text = [b">other\n", &other[..], b"\n>virus\n", &virus, b"\n"].concat();
        std::fs::write(&path, text).unwrap();
        let piece = virus[2000..2300].to_vec();
        let turned = reverse_complement(&piece);
        let unknown: Vec<u8> = (0..300).map(|_| base()).collect();
        let k = 31;
        let mut all: Vec<u64> =
            [&piece, &unknown].iter().flat_map(|seq| kmers(seq, k)).map(|(_, kmer)| kmer.canonical()).collect();
        all.sort_unstable();
        all.dedup();
        let sought = KmerLookup::from_kmer_iter(k, all.into_iter());
        let (names, places) = locate_kmers(&path, &sought).unwrap();
        let change = Change::Junction {
            ends: [crate::change::Breakend { chrom: 0, pos: 5, side: RetainedSide::Left }; 2],
            inserted: Vec::new(),
            homology: 0,
        };
        let found = find_best_sequence(&piece, k, &sought, &places).unwrap();
        assert_eq!((&names[found.name as usize][..], found.kmers), ("virus", [270, 270]));
        assert_eq!(position_next_to_end(&found, &change, k), (2001, true));
        let found = find_best_sequence(&turned, k, &sought, &places).unwrap();
        assert_eq!(position_next_to_end(&found, &change, k), (2300, false));
        assert!(find_best_sequence(&unknown, k, &sought, &places).is_none());
    }
}
