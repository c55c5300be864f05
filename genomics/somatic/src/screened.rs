//! Sequence of calls that stands in what is screened for: where a virus, say, lies in the tumour's genome.
//!
//! The screened sequences go past the k-mers of what calls insert, as the reference goes past picks ([`crate::known`]).

use std::collections::HashMap;
use std::path::Path;

use genuma_kmers::encode::kmers;
use genuma_reads::Error;
use genuma_reads::fasta::{Part, Reference, read_parts};
use serde::Serialize;

use crate::change::{Change, Side, position};
use crate::event::Event;
use crate::record::{self, Record};
use crate::sought::{KmerHit, Sought};

/// A call whose new sequence is that of something screened for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Screened {
    /// ID of the call in the VCF.
    pub id: String,
    /// Sequence name.
    pub chrom: String,
    /// 1-based position.
    pub pos: u64,
    /// What was screened for.
    pub name: String,
    /// Where in it the new sequence begins that is next to `pos`, 1-based.
    pub place: u64,
    /// Whether it is read along the strand that was given.
    pub forward: bool,
    /// k-mers of the call that it has, and all that the call has.
    pub kmers: [u64; 2],
}

/// Fewest k-mers of a call that a sequence must have, and their share.
const FEWEST: usize = 8;
const SHARE: f64 = 0.3;

/// What a call inserts, read from the base that stays.
fn inserted(event: &Event) -> Vec<(Vec<u8>, &Change)> {
    let of = |change: &Change| match change {
        Change::Novel { sequence, .. } => Some(sequence.clone()),
        Change::Junction { inserted, .. } => Some(inserted.clone()),
        Change::Allele { reference, alternative, .. } => {
            (alternative.len() > reference.len()).then(|| alternative.clone())
        }
    };
    event.calls.iter().filter_map(|call| Some((of(&call.change)?, &call.change))).collect()
}

/// A k-mer in what is screened for: which sequence, where, and on which strand its canonical form lies.
type Place = (u32, u64, bool);

/// Looks for what calls insert in the sequences of a FASTA file; by call, in their order.
///
/// # Errors
/// A file that cannot be read.
pub fn find(events: &[Event], genome: &Reference, path: &Path, k: u32) -> Result<Vec<Screened>, Error> {
    let wanted: Vec<Vec<(Vec<u8>, &Change)>> = events.iter().map(inserted).collect();
    let all = wanted.iter().flatten().flat_map(|(seq, _)| kmers(seq, k).map(|(_, kmer)| kmer.canonical()));
    let mut all: Vec<u64> = all.collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let sought = Sought::new(k, all.into_iter());
    let (names, places) = places(path, &sought)?;
    let found = wanted.iter().enumerate().filter_map(|(i, seqs)| {
        let best = seqs.iter().filter_map(|(seq, change)| Some((best(seq, k, &sought, &places)?, *change)));
        let (best, change) = best.max_by_key(|(best, _)| best.kmers[0])?;
        let (chrom, pos) = position(change);
        let (place, forward) = outwards(&best, change, k);
        Some(Screened {
            id: record::id(i),
            chrom: genome.contigs[chrom].name.clone(),
            pos: pos as u64 + 1,
            name: names[best.name as usize].clone(),
            place,
            forward,
            kmers: best.kmers,
        })
    });
    Ok(found.collect())
}

/// Where each k-mer that is sought stands first.
fn places(path: &Path, sought: &Sought) -> Result<(Vec<String>, HashMap<u32, Place>), Error> {
    let (mut names, mut places) = (Vec::<String>::new(), HashMap::new());
    let (mut looking, mut hits) = (sought.looking(), Vec::<KmerHit>::new());
    let overlap = sought.k() as usize - 1;
    // The last bases of the sequence in hand, and how many went before them.
    let (mut held, mut before) = (Vec::new(), 0u64);
    read_parts(path, |part| match part {
        Part::Header { name, .. } => {
            names.push(String::from_utf8_lossy(name).into_owned());
            held.clear();
            before = 0;
        }
        Part::Bases(bases) => {
            held.extend(bases.iter().map(u8::to_ascii_uppercase));
            hits.clear();
            sought.find(&held, &mut looking, &mut hits);
            let name = names.len() as u32 - 1;
            for hit in &hits {
                places.entry(hit.rank).or_insert((name, before + u64::from(hit.at), hit.forward));
            }
            let gone = held.len().saturating_sub(overlap);
            before += gone as u64;
            held.drain(..gone);
        }
    })?;
    Ok((names, places))
}

/// The sequence that has most k-mers of another.
struct Best {
    name: u32,
    /// The first k-mer that it has and the last one: where they stand in the call, and in it.
    ends: [(usize, u64); 2],
    /// Whether it is read along.
    forward: bool,
    kmers: [u64; 2],
}

fn best(seq: &[u8], k: u32, sought: &Sought, places: &HashMap<u32, Place>) -> Option<Best> {
    let of = |(at, kmer): (usize, genuma_kmers::encode::Kmer)| {
        let &(name, place, canonical) = places.get(&sought.rank(kmer.canonical())?)?;
        Some((name, at, place, (kmer.forward <= kmer.reverse) == canonical))
    };
    let found: Vec<(u32, usize, u64, bool)> = kmers(seq, k).filter_map(of).collect();
    let mut counts = HashMap::<u32, usize>::new();
    found.iter().for_each(|hit| *counts.entry(hit.0).or_default() += 1);
    let (&name, &n) = counts.iter().max_by_key(|&(name, n)| (*n, u32::MAX - name))?;
    let all = kmers(seq, k).count();
    if n < FEWEST || (n as f64) < SHARE * all as f64 {
        return None;
    }
    let mut own = found.iter().filter(|hit| hit.0 == name);
    let first = own.next()?;
    let last = own.next_back().unwrap_or(first);
    let ends = [first, last].map(|hit| (hit.1, hit.2));
    Some(Best { name, ends, forward: first.3, kmers: [n as u64, all as u64] })
}

/// The place, 1-based, that is next to the base that stays before new sequence, and whether it goes on along the strand given from there, as
/// the genome is read.
fn outwards(best: &Best, change: &Change, k: u32) -> (u64, bool) {
    let [first, _] = best.ends;
    // The sequence of a loose end is read away from it.
    let turned = matches!(change, Change::Novel { end, .. } if end.side == Side::Right);
    let place = if best.forward { first.1 } else { first.1 + u64::from(k) - 1 };
    (place + 1, best.forward != turned)
}

/// Says in records what was found of their events.
pub fn tell(found: &[Screened], records: &mut [Record]) {
    let by_id: HashMap<&str, &Screened> = found.iter().map(|found| (&found.id[..], found)).collect();
    for record in records {
        let found = by_id.get(&record::id(record.event)[..]);
        record.screen = found.map(|found| (found.name.clone(), found.place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::dna::revcomp;

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
        let turned = revcomp(&piece);
        let unknown: Vec<u8> = (0..300).map(|_| base()).collect();
        let k = 31;
        let mut all: Vec<u64> = [&piece, &unknown]
            .iter()
            .flat_map(|seq| kmers(seq, k))
            .map(|(_, kmer)| kmer.canonical())
            .collect();
        all.sort_unstable();
        all.dedup();
        let sought = Sought::new(k, all.into_iter());
        let (names, places) = places(&path, &sought).unwrap();
        let change = Change::Junction {
            ends: [crate::change::Breakend { chrom: 0, pos: 5, side: Side::Left }; 2],
            inserted: Vec::new(),
            homology: 0,
        };
        let found = best(&piece, k, &sought, &places).unwrap();
        assert_eq!((&names[found.name as usize][..], found.kmers), ("virus", [270, 270]));
        assert_eq!(outwards(&found, &change, k), (2001, true));
        let found = best(&turned, k, &sought, &places).unwrap();
        assert_eq!(outwards(&found, &change, k), (2300, false));
        assert!(best(&unknown, k, &sought, &places).is_none());
    }
}
