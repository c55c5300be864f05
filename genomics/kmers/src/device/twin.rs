//! The kernels once more, as plain loops: what each does, to be read beside it, and what every backend is held to.

use genuma_gpu::Error;

use super::table::{CHUNK, Gathered, MARGIN, Sizes, Table};
use crate::SPECTRUM_SLOTS;
use crate::encode::{mask, revcomp};
use crate::superkmer::record_bytes;
use crate::tally::{Class, Rows, Spectra, Wanted, hash};

const FREE: u64 = u64::MAX;

/// A table in plain memory.
#[derive(Debug)]
pub(crate) struct Twin<const S: usize> {
    k: u32,
    sizes: Sizes,
    class: Class,
    slots: usize,
    keys: Vec<u64>,
    counts: Vec<[u32; S]>,
    full: bool,
    row_keys: Vec<u64>,
    row_counts: Vec<[u32; S]>,
}

impl<const S: usize> Twin<S> {
    pub fn new(k: u32, sizes: Sizes) -> Self {
        let (keys, counts) = (Vec::new(), Vec::new());
        let (row_keys, row_counts) = (Vec::new(), Vec::new());
        Self { k, sizes, class: Class::ALL, slots: 0, keys, counts, full: false, row_keys, row_counts }
    }

    fn home(&self, key: u64) -> usize {
        ((u128::from(hash(key)) * self.slots as u128) >> 64) as usize
    }

    /// `key.cl`: the key of a k-mer.
    fn key(&self, kmer: u64) -> u64 {
        let strand = |kmer: u64| {
            (((kmer >> 2) & mask(self.k - 2)) << 4) | ((kmer >> (2 * self.k - 2)) << 2) | (kmer & 3)
        };
        strand(kmer).min(strand(revcomp(kmer, self.k)))
    }

    /// `insert.cl`: a chunk.
    fn insert(&mut self, chunk: &[u8]) {
        let text = [chunk, &[0; 16]].concat();
        let mut at = 0;
        while at < chunk.len() {
            let (sample, kmers) = (usize::from(text[at] >> 5), usize::from(text[at] & 31) + 1);
            for base in 0..kmers {
                let from = at + 1 + base / 4;
                let word = text[from..from + 8].iter().fold(0, |word, &byte| (word << 8) | u64::from(byte));
                let shift = 2 * (base & 3);
                let word = (word << shift) | (u64::from(text[from + 8]) >> (8 - shift));
                let key = self.key(word >> (64 - 2 * self.k));
                if !self.class.has(hash(key)) {
                    continue;
                }
                let home = self.home(key);
                let slot = (home..home + MARGIN).find(|&slot| [FREE, key].contains(&self.keys[slot]));
                match slot {
                    Some(slot) => {
                        self.keys[slot] = key;
                        self.counts[slot][sample] += 1;
                    }
                    None => self.full = true,
                }
            }
            at += record_bytes(kmers, self.k);
        }
    }

    /// `gather.cl`: a slot's part in the rows, and whether it is the first of its root's.
    fn gather(&mut self, slot: usize, wanted: Wanted) -> bool {
        let Self { keys, counts, row_keys, row_counts, .. } = self;
        let stem = keys[slot] >> 4;
        let sum = |slot: usize| counts[slot].iter().map(|&n| u64::from(n)).sum::<u64>();
        let run = (slot..keys.len()).take_while(|&slot| keys[slot] != FREE);
        let of_root: Vec<usize> = run.filter(|&slot| keys[slot] >> 4 == stem).collect();
        let home = ((u128::from(hash(stem << 4)) * self.slots as u128) >> 64) as usize;
        let speaks = (home..slot).all(|slot| keys[slot] >> 4 != stem);
        let rows = match wanted {
            Wanted::Kmers { least } if sum(slot) >= u64::from(least) => &of_root[..1],
            Wanted::Roots if speaks => &of_root[..],
            _ => &[],
        };
        row_keys.extend(rows.iter().map(|&slot| keys[slot]));
        row_counts.extend(rows.iter().map(|&slot| counts[slot]));
        speaks
    }
}

impl<const S: usize> Table<S> for Twin<S> {
    type Stage = Vec<u8>;

    fn stage(&self) -> Result<Vec<u8>, Error> {
        Ok(vec![0; self.sizes.piece])
    }

    fn most_chunks(&self) -> usize {
        self.sizes.chunks
    }

    fn most_slots(&self) -> usize {
        self.sizes.slots
    }

    fn start(&mut self, class: Class, slots: usize) -> Result<(), Error> {
        (self.class, self.slots, self.full) = (class, slots, false);
        self.keys = vec![FREE; slots + MARGIN];
        self.counts = vec![[0; S]; slots + MARGIN];
        Ok(())
    }

    fn add(&mut self, records: &[u8], starts: &[u32]) -> Result<(), Error> {
        for chunk in starts.windows(2) {
            let chunk = &records[chunk[0] as usize..chunk[1] as usize];
            assert!(chunk.len() <= CHUNK * 17);
            self.insert(chunk);
        }
        Ok(())
    }

    fn finish(&mut self, wanted: Wanted, spectra: &mut Spectra<S>) -> Result<Option<Gathered<'_, S>>, Error> {
        if self.full {
            return Ok(None);
        }
        self.row_keys.clear();
        self.row_counts.clear();
        let (mut distinct, mut roots) = (0, 0);
        for slot in 0..self.keys.len() {
            if self.keys[slot] != FREE {
                for (spectrum, n) in spectra.0.iter_mut().zip(self.counts[slot]) {
                    spectrum[(n as usize).min(SPECTRUM_SLOTS - 1)] += 1;
                }
                distinct += 1;
                roots += u64::from(self.gather(slot, wanted));
            }
        }
        let rows = Rows { keys: &self.row_keys, counts: &self.row_counts };
        Ok(Some(Gathered { rows, distinct, roots }))
    }
}
