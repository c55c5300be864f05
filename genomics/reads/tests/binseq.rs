//! Reads of CBQ, VBQ and BQ files equal those that the crate `binseq` wrote; damage never causes a panic or a silent loss.

use std::path::PathBuf;

use crate::common::{Folder, Read, pull};
use binseq::write::{BinseqWriterBuilder, Format};
use binseq::{BitSize, SequencingRecordBuilder};
use genuma_reads::{
    AlignedInput, AlignedOptions, BatchLimits, Error, Lane, MateLayout, ProgressCounters, StreamLane, StreamOptions,
    TUMOUR_SAMPLE, for_each_batch,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A file: its format, and bases and qualities of both reads of each record.
#[derive(Debug, Clone)]
struct Case {
    format: Format,
    paired: bool,
    qualities: bool,
    names: bool,
    flags: bool,
    packed: bool,
    four: bool,
    block: usize,
    records: Vec<[(String, String); 2]>,
}

fn case() -> impl Strategy<Value = Case> {
    let kinds = (
        prop::sample::select(vec![Format::Cbq, Format::Vbq, Format::Bq]),
        any::<[bool; 6]>(),
        prop::sample::select(vec![800usize, 3_000, 1 << 17]),
    );
    let read = || ("[ACGTN]{1,140}", "[!-~]{140}");
    (kinds, prop::collection::vec((read(), read()), 0..60)).prop_map(|((format, is, block), records)| {
        let [paired, qualities, names, flags, packed, four] = is;
        let bare = format == Format::Bq;
        let mut case = Case {
            format,
            paired,
            qualities: qualities && !bare,
            names: names && !bare,
            flags,
            packed,
            four,
            block,
            records: records.into_iter().map(|(one, two)| [one, two]).collect(),
        };
        let shortest = [0, 1].map(|mate| case.records.iter().map(|read| read[mate].0.len()).min());
        for record in &mut case.records {
            for ((seq, qual), shortest) in record.iter_mut().zip(shortest) {
                if bare {
                    seq.truncate(shortest.unwrap());
                }
                if format != Format::Cbq && !four {
                    *seq = seq.replace('N', "A");
                }
                qual.truncate(seq.len());
            }
        }
        case
    })
}

impl Case {
    fn mates(&self) -> usize {
        if self.paired { 2 } else { 1 }
    }

    /// The file as the crate writes it.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let bits = if self.four { BitSize::Four } else { BitSize::Two };
        let mut builder = BinseqWriterBuilder::new(self.format).paired(self.paired).bitsize(bits);
        builder = builder.quality(self.qualities).headers(self.names).flags(self.flags);
        builder = builder.compression(self.packed).block_size(self.block);
        if self.format == Format::Bq {
            let length = |mate: usize| self.records.first().map_or(50, |read| read[mate].0.len() as u32);
            builder = builder.slen(length(0)).xlen(if self.paired { length(1) } else { 0 });
        }
        let mut writer = builder.build(&mut bytes).unwrap();
        for (i, [one, two]) in self.records.iter().enumerate() {
            let name = format!("r{i} of them");
            let mut record = SequencingRecordBuilder::default().s_header(name.as_bytes());
            record = record.s_seq(one.0.as_bytes()).s_qual(one.1.as_bytes()).flag(i as u64);
            if self.paired {
                record = record.x_header(name.as_bytes());
                record = record.x_seq(two.0.as_bytes()).x_qual(two.1.as_bytes());
            }
            assert!(writer.push(record.build().unwrap()).unwrap());
        }
        writer.finish().unwrap();
        drop(writer);
        bytes
    }

    /// The expected reads.
    fn expected(&self) -> Vec<Read> {
        let read = |(i, record): (usize, &[(String, String); 2])| {
            let name = if self.names { format!("r{i}") } else { format!("{}", i + 1) };
            let of = |(seq, qual): &(String, String)| {
                let qual = if self.qualities { qual.as_str() } else { "" };
                [&name, "", seq, qual].map(|text| text.as_bytes().to_vec())
            };
            record[..self.mates()].iter().map(of).collect::<Vec<_>>()
        };
        self.records.iter().enumerate().flat_map(read).collect()
    }
}

/// All reads in the order of the file, and the error after them.
fn pulled(file: &PathBuf) -> (Vec<Read>, Option<Error>) {
    let lane = StreamLane::Aligned(AlignedInput::new(file, AlignedOptions::default()));
    let (batches, error) = pull(&[lane], StreamOptions::new(BatchLimits::with_reads_per_batch(50)));
    (batches.into_iter().flat_map(|(.., reads)| reads).collect(), error)
}

/// Names and bases of all pairs that the workers get, sorted.
fn worked(file: &PathBuf) -> Result<Vec<[Vec<u8>; 3]>, Error> {
    let lanes = Lane::group_files_into_lanes(
        TUMOUR_SAMPLE,
        std::slice::from_ref(file),
        MateLayout::Pairs,
        &AlignedOptions::default(),
    )?;
    let seen = for_each_batch(&lanes, 3, &ProgressCounters::default(), Vec::new, |seen, batch| {
        for pair in batch.iter() {
            seen.push([pair.name, pair.mates[0].seq, pair.mates[1].seq].map(<[u8]>::to_vec));
        }
        Ok::<(), Error>(())
    })?;
    let mut all: Vec<_> = seen.into_iter().flatten().collect();
    all.sort();
    Ok(all)
}

fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(400, 17))]

    #[test]
    fn reads_are_read_back_unchanged(case in case()) {
        let folder = Folder::new();
        let file = folder.write("x", case.bytes());
        let expected = case.expected();
        let (reads, error) = pulled(&file);
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert!(reads == expected);
        if case.qualities {
            let mates = expected.chunks(case.mates());
            let pair = |mates: &[Read]| {
                let two = mates.get(1).map_or(Vec::new(), |read| read[2].clone());
                [mates[0][0].clone(), mates[0][2].clone(), two]
            };
            let mut pairs: Vec<_> = mates.map(pair).collect();
            pairs.sort();
            prop_assert!(worked(&file).unwrap() == pairs);
        }
    }

    #[test]
    fn truncation_is_reported(case in case(), share in 0.0..1.0f64) {
        let bytes = case.bytes();
        // Eight bytes are enough to recognise the format.
        let keep = 8 + ((bytes.len() - 8) as f64 * share) as usize;
        let folder = Folder::new();
        let (reads, error) = pulled(&folder.write("x", &bytes[..keep]));
        let expected = case.expected();
        prop_assert!(reads.len() <= expected.len() && reads[..] == expected[..reads.len()]);
        // A BQ file has no end-of-file marker; it only ends with a whole record.
        let records = case.records.len().max(1);
        let whole = case.format == Format::Bq && keep >= 32 && (keep - 32).is_multiple_of((bytes.len() - 32).max(1) / records);
        prop_assert!(error.is_some() != whole, "{error:?}");
    }

    #[test]
    fn a_changed_byte_causes_no_panic_and_no_silent_loss(case in case(), at in any::<prop::sample::Index>(), by in 1u8..) {
        let mut bytes = case.bytes();
        let at = 8 + at.index(bytes.len() - 8);
        bytes[at] ^= by;
        let folder = Folder::new();
        let (reads, error) = pulled(&folder.write("x", &bytes));
        // A changed header may describe another valid layout.
        if error.is_none() && at >= 64 {
            prop_assert_eq!(reads.len(), case.expected().len());
        }
        if let Some(error) = error {
            prop_assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{}", error);
        }
    }
}
