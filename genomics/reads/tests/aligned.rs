//! Reads of BAM and CRAM files equal those of FASTQ files, for any order of the records.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{Aligned, Folder, Read, as_records, bam_text, bgzf, fastq, pull};
use genuma_reads::{
    AlignedOptions, BatchLimits, Error, Lane, LaneFiles, MateLayout, NORMAL_SAMPLE, ProgressCounters, ReadEstimate,
    RecordCounts, StreamLane, StreamOptions, TUMOUR_SAMPLE, check_lanes, for_each_batch, split_lanes_into_shards,
};

/// A pair: name, and bases and qualities of both mates.
type Pair = (Vec<u8>, [Vec<u8>; 4]);

/// All pairs of some lanes sorted by name, or the error.
fn pairs(lanes: &[Lane], threads: usize) -> Result<Vec<Pair>, Error> {
    check_lanes(lanes)?;
    let progress = ProgressCounters::default();
    let states = for_each_batch(lanes, threads, &progress, Vec::new, |seen, batch| {
        assert!(!batch.is_empty());
        for pair in batch.iter() {
            let [one, two] = pair.mates;
            seen.push((pair.name.to_vec(), [one.seq, one.qual, two.seq, two.qual].map(<[u8]>::to_vec)));
        }
        Ok::<(), Error>(())
    })?;
    let mut all: Vec<Pair> = states.into_iter().flatten().collect();
    assert_eq!((progress.num_pairs(), progress.bytes_done()), (all.len() as u64, progress.bytes_total()));
    all.sort();
    Ok(all)
}

fn lane(file: &PathBuf, options: &AlignedOptions) -> Lane {
    let lanes =
        Lane::group_files_into_lanes(TUMOUR_SAMPLE, std::slice::from_ref(file), MateLayout::Pairs, options).unwrap();
    let [lane] = <[Lane; 1]>::try_from(lanes).unwrap();
    assert!(matches!(lane.files, LaneFiles::Aligned(_)));
    lane
}

fn write(folder: &Folder, name: &str, records: &[Aligned]) -> PathBuf {
    folder.write(name, bgzf(&bam_text(records)))
}

/// Shuffles records.
fn shuffle<T>(all: &mut [T]) {
    let mut state = 5u64;
    for i in (1..all.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.swap(i, (state >> 33) as usize % (i + 1));
    }
}

/// Adds secondary and supplementary records between the given records.
fn with_others(records: &[Aligned]) -> Vec<Aligned> {
    let other = |i: usize, flags| {
        let mut other = records[i].clone();
        other.flags |= flags;
        other.seq.truncate(7);
        other.qual.truncate(7);
        // Hard-clipped, as supplementary records usually are.
        other.cigar = vec![5 | 9 << 4, (other.seq.len() as u32) << 4];
        other
    };
    let all = records.iter().enumerate().flat_map(|(i, record)| {
        let secondary = (i % 7 == 0).then(|| other(i, 0x100));
        let supplementary = (i % 11 == 0).then(|| other(i, 0x800));
        secondary.into_iter().chain([record.clone()]).chain(supplementary)
    });
    all.collect()
}

#[test]
fn pairs_equal_those_of_fastq_for_any_order_of_records() {
    let folder = Folder::new();
    let mates = [fastq(0, 20_000, 1), fastq(0, 20_000, 2)];
    let [one, two] = [0, 1].map(|mate| folder.write(&format!("{mate}.fq"), &mates[mate]));
    let expected = pairs(&[Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Pair(one, two))], 1).unwrap();
    let records = as_records(&mates);
    let n = records.len() as u64;
    let (secondary, supplementary) = (n.div_ceil(7), n.div_ceil(11));

    let mut shuffled = with_others(&records);
    shuffle(&mut shuffled);
    let far: Vec<Aligned> =
        [0x40, 0x80].iter().flat_map(|&which| records.iter().filter(move |r| r.flags & which != 0).cloned()).collect();
    for (name, records, others) in [("collated", with_others(&records), 1), ("shuffled", shuffled, 1), ("far", far, 0)]
    {
        let file = write(&folder, name, &records);
        for threads in [1, 3, 12] {
            let lane = lane(&file, &AlignedOptions::default());
            assert_eq!(lane.record_counts(), None);
            assert!(pairs(std::slice::from_ref(&lane), threads).unwrap() == expected, "{name}, {threads} threads");
            let tally = lane.record_counts().expect("what there was");
            let skipped = (others * secondary, others * supplementary);
            assert_eq!((tally.secondary, tally.supplementary), skipped);
            assert_eq!(tally.records, n + skipped.0 + skipped.1);
            assert_eq!((tally.mate_missing.num_reads, tally.unpaired, tally.hard_clipped.num_reads), (0, 0, 0));
            assert_eq!(
                tally.without_bases.num_reads as usize,
                expected.iter().flat_map(|(_, f)| [&f[0], &f[2]]).filter(|s| s.is_empty()).count()
            );
        }
    }
}

#[test]
fn waiting_mates_are_spilled_beyond_the_memory_limit() {
    let folder = Folder::new();
    let mates = [fastq(0, 70_000, 1), fastq(0, 70_000, 2)];
    let [one, two] = [0, 1].map(|mate| folder.write(&format!("{mate}.fq"), &mates[mate]));
    let expected = pairs(&[Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Pair(one, two))], 2).unwrap();
    let (first, second): (Vec<_>, Vec<_>) = as_records(&mates).into_iter().partition(|r| r.flags & 0x40 != 0);
    let file = write(&folder, "far.bam", &[first, second].concat());
    for threads in [1, 4] {
        let lane = lane(&file, &AlignedOptions::default());
        assert!(pairs(&[lane], threads).unwrap() == expected, "{threads} threads");
    }
    // Some mates were spilled, so an unusable folder is an error.
    let nowhere = AlignedOptions { temp_folder: Some("/proc/such".into()), ..AlignedOptions::default() };
    let message = pairs(&[lane(&file, &nowhere)], 1).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("cannot write the waiting mates spill file in /proc"), "{message}");
}

/// All reads of a lane: paired reads, unpaired reads, and the record counts.
fn pulled(file: &PathBuf) -> (Vec<Read>, Vec<Read>, RecordCounts) {
    let of = genuma_reads::AlignedInput::new(file, AlignedOptions::default());
    let lanes = [StreamLane::Aligned(of.clone())];
    let (batches, error) = pull(&lanes, StreamOptions::new(BatchLimits::with_reads_per_batch(500)));
    assert!(error.is_none(), "{error:?}");
    let mut before = 0;
    for (_, at, _, reads) in &batches {
        assert_eq!(*at, before);
        before += reads.len() as u64;
    }
    let of_kind = |paired| batches.iter().filter(move |b| b.2 == paired).flat_map(|b| b.3.clone()).collect();
    (of_kind(true), of_kind(false), of.record_counts().unwrap().clone())
}

#[test]
fn reads_are_streamed_in_the_order_of_the_file() {
    let folder = Folder::new();
    let mates = [fastq(0, 10_000, 1), fastq(0, 10_000, 2)];
    let [one, two] = [0, 1].map(|mate| folder.write(&format!("{mate}.fq"), &mates[mate]));
    let mut expected = crate::common::reads(&[StreamLane::Pair(one, two)]);
    // BAM has no comments.
    expected.iter_mut().for_each(|read| read[1].clear());
    let records = as_records(&mates);
    let (paired, single, _) = pulled(&write(&folder, "collated.bam", &with_others(&records)));
    assert!(paired == expected && single.is_empty());
    let mut shuffled = records;
    shuffle(&mut shuffled);
    let file = write(&folder, "shuffled.bam", &shuffled);
    let (mut paired, single, _) = pulled(&file);
    assert!(pulled(&file).0 == paired, "the same each time");
    assert!(paired.len() == expected.len() && single.is_empty());
    // Mates stay together, read 1 first.
    let (mut pairs, mut wanted) = (paired.chunks_mut(2).collect::<Vec<_>>(), expected.chunks(2).collect::<Vec<_>>());
    pairs.sort();
    wanted.sort();
    assert!(pairs.iter().zip(&wanted).all(|(a, b)| &a[..] == *b));
}

#[test]
fn missing_data_are_counted_and_the_rest_is_used() {
    let folder = Folder::new();
    let records = as_records(&[fastq(0, 90, 1), fastq(0, 90, 2)]);
    let mut some: Vec<Aligned> = records.clone();
    // Pair 2 has only read 2, pair 4 only read 1; the reads of pair 6 are unpaired by their flags; pair 8 has no bases.
    some[12].flags &= 0x10;
    some[13].flags &= 0x10;
    some[12].name = b"alone1".to_vec();
    some[13].name = b"alone2".to_vec();
    some[16].cigar = vec![5 | 30 << 4, 100 << 4];
    some.remove(9);
    some.remove(4);
    let file = write(&folder, "some.bam", &some);
    let lane = lane(&file, &AlignedOptions::default());
    let all = pairs(std::slice::from_ref(&lane), 2).unwrap();
    assert_eq!(all.len(), 91);
    let of = |name: &str| &all.iter().find(|pair| pair.0 == name.as_bytes()).unwrap().1;
    let lengths = |name: &str| of(name).each_ref().map(Vec::len);
    // At its position in the file.
    assert_eq!(lengths("lane:2"), [0, 0, records[5].seq.len(), records[5].seq.len()]);
    assert_eq!(lengths("lane:4"), [records[8].seq.len(), records[8].seq.len(), 0, 0]);
    assert_eq!(lengths("alone2"), [records[13].seq.len(), records[13].seq.len(), 0, 0]);
    let tally = lane.record_counts().unwrap();
    assert_eq!((tally.mate_missing.num_reads, tally.mate_missing.example_name.as_deref()), (2, Some("lane:2")));
    assert_eq!(
        (tally.hard_clipped.num_reads, tally.hard_clipped.example_name.as_deref(), tally.unpaired),
        (1, Some("lane:8"), 2)
    );
    assert_eq!(tally.describe_skipped_and_missing_counts().len(), 2);

    let (paired, single, of_stream) = pulled(&file);
    assert_eq!((paired.len(), single.len()), (2 * 87, 4));
    assert_eq!(&of_stream, tally);

    // Without pairing each read is unpaired.
    let each = AlignedOptions { pair_mates: false, ..AlignedOptions::default() };
    let all = pairs(&[self::lane(&file, &each)], 2).unwrap();
    assert!(all.len() == some.len() && all.iter().all(|pair| pair.1[2].is_empty()));
}

/// Writes a damaged file. Returns the error of reading its pairs, which is also that of reading it as a stream.
fn read_error(folder: &Folder, name: &str, bytes: &[u8]) -> String {
    let file = folder.write(name, bytes);
    let lane = lane(&file, &AlignedOptions::default());
    let error = pairs(&[lane], 2).unwrap_err().to_string();
    let stream = StreamLane::Aligned(genuma_reads::AlignedInput::new(&file, AlignedOptions::default()));
    let (_, error_of_stream) = pull(&[stream], StreamOptions::new(BatchLimits::with_reads_per_batch(100)));
    assert_eq!(error_of_stream.expect("an error").to_string(), error);
    error
}

#[test]
fn damage_is_reported() {
    let folder = Folder::new();
    let records = as_records(&[fastq(0, 300, 1), fastq(0, 300, 2)]);
    let text = bam_text(&records);
    let whole = bgzf(&text);
    let message = |name: &str, bytes: &[u8]| read_error(&folder, name, bytes);
    // Without the end-of-file block the file is read if its last block is whole.
    let no_end = &whole[..whole.len() - 28];
    let read = |name: &str, bytes: &[u8]| {
        let file = folder.write(name, bytes);
        pairs(&[lane(&file, &AlignedOptions::default())], 2).unwrap()
    };
    assert!(read("whole.bam", &whole) == read("no_end.bam", no_end));
    // The longest reference sequence that the SAM specification allows, and a longer one.
    let with_sequence_length = |length: u32| {
        let (mut text, end) = (text.clone(), bam_text(&[]).len());
        text[end - 4..end].copy_from_slice(&length.to_le_bytes());
        bgzf(&text)
    };
    assert!(read("longest.bam", &with_sequence_length((1 << 31) - 1)) == read("whole.bam", &whole));
    assert!(message("longer.bam", &with_sequence_length(1 << 31)).contains("a length is too large"));
    for cut in [1, 20] {
        assert!(
            message("a.bam", &no_end[..no_end.len() - cut])
                .ends_with("a.bam: has no end-of-file block: it is truncated, copy or make it again")
        );
    }
    let mut bad = whole.clone();
    bad[whole.len() / 2] ^= 16;
    let error = message("b.bam", &bad);
    assert!(error.contains("b.bam: record ") && error.contains(": damaged gzip data"), "{error}");
    // A file without its middle part.
    let cut = [&bgzf(&text[..text.len() - 10])[..]].concat();
    let error = message("c.bam", &cut);
    assert!(error.contains("c.bam: record 600: the file ends inside the record"), "{error}");
    let error = message("d.bam", &bgzf(&text[..30]));
    assert!(error.contains("d.bam: its header is damaged"), "{error}");
    let mut bad = text.clone();
    // Change the number of CIGAR operations of the first record.
    let first = bam_text(&[]).len();
    bad[first + 4 + 13] = 7;
    let error = message("e.bam", &bgzf(&bad));
    assert!(error.contains("e.bam: record 1: is damaged (its fields are longer than the record)"), "{error}");
    let mut bad = text.clone();
    bad[first + 3] = 0x7f;
    let error = message("f.bam", &bgzf(&bad));
    assert!(error.contains("f.bam: record 1: is damaged (its length is invalid)"), "{error}");
}

#[test]
fn invalid_records_are_reported() {
    let folder = Folder::new();
    let records = as_records(&[fastq(0, 300, 1), fastq(0, 300, 2)]);
    let of = |name: &str, records: &[Aligned]| read_error(&folder, name, &bgzf(&bam_text(records)));
    let mut twice = records.clone();
    twice.insert(21, twice[20].clone());
    let error = of("g.bam", &twice);
    assert!(error.contains("g.bam: record 22: \"lane:10\" has a second primary record for read 1"), "{error}");
    let mut equal = records.clone();
    equal[3].seq[5] = b'=';
    assert!(of("h.bam", &equal).contains("h.bam: record 4: '=' in the sequence stands for the base of the reference"));
    let mut nameless = records.clone();
    nameless[3].name = Vec::new();
    assert!(of("i.bam", &nameless).contains("i.bam: record 4: has no name"));
}

#[test]
fn missing_qualities_are_an_error_only_where_they_are_used() {
    let folder = Folder::new();
    let mut plain = as_records(&[fastq(0, 300, 1), fastq(0, 300, 2)]);
    plain[2].seq = b"ACGTA".to_vec();
    plain[2].qual = vec![0xff; 5];
    plain[2].flags = 0x41;
    let last = plain.remove(3);
    plain.push(last);
    let file = write(&folder, "plain.bam", &plain);
    let error = pairs(&[lane(&file, &AlignedOptions::default())], 1).unwrap_err().to_string();
    assert!(error.ends_with("plain.bam: read \"lane:1\" has no qualities: give reads with qualities"), "{error}");
    let (paired, ..) = pulled(&file);
    let read = paired.iter().find(|read| read[2] == b"ACGTA").expect("the read");
    assert!(read[3].is_empty());
    // The option replaces them, also if the mate is read later.
    let accepting = AlignedOptions { accepts_missing_qualities: true, ..AlignedOptions::default() };
    for pair_mates in [true, false] {
        let lane = lane(&file, &AlignedOptions { pair_mates, ..accepting.clone() });
        let pairs = pairs(std::slice::from_ref(&lane), 2).expect("reads");
        let mates = pairs.iter().flat_map(|(_, [one, one_qual, two, two_qual])| [(one, one_qual), (two, two_qual)]);
        let replaced: Vec<_> = mates.filter(|(_, qual)| qual.contains(&b'~')).collect();
        assert_eq!(replaced, [(&b"ACGTA".to_vec(), &b"~~~~~".to_vec())]);
        let counts = lane.record_counts().expect("counts");
        let found = (counts.without_qualities.num_reads, counts.without_qualities.example_name.as_deref());
        assert_eq!(found, (1, Some("lane:1")));
    }
}

#[test]
fn reads_without_a_name_are_named_by_the_number_of_their_record() {
    let folder = Folder::new();
    let mut records = as_records(&[fastq(0, 40, 1), fastq(0, 40, 2)]);
    let (_, unpaired, _) = pulled(&write(&folder, "named.bam", &records));
    assert!(unpaired.is_empty());
    // Both mates of a pair, and a record whose flags say unpaired.
    let pair = records[20].name.clone();
    records.iter_mut().filter(|record| record.name == pair).for_each(|record| record.name = b"*".to_vec());
    let single = Aligned { name: b"*".to_vec(), flags: 4, ..records[0].clone() };
    records.push(single);
    let (paired, unpaired, counts) = pulled(&write(&folder, "nameless.bam", &records));
    assert_eq!(paired.len(), records.len() - 3);
    let numbers = (1..).zip(&records).filter(|(_, record)| record.name == b"*");
    let expected: Vec<Vec<u8>> = numbers.map(|(number, _)| format!("{number}").into_bytes()).collect();
    assert_eq!(unpaired.iter().map(|read| read[0].clone()).collect::<Vec<_>>(), expected);
    assert_eq!(counts.unpaired, 3);
}

#[test]
fn cram_gives_the_same_reads_as_bam() {
    if Command::new("samtools").arg("--version").output().is_err() {
        eprintln!("skipped: no samtools");
        return;
    }
    let folder = Folder::new();
    let mates = [fastq(0, 15_000, 1), fastq(0, 15_000, 2)];
    let mut records = with_others(&as_records(&mates));
    shuffle(&mut records);
    // Unmapped records have no positions.
    records.iter_mut().for_each(|record| record.flags |= 0xc);
    records.iter_mut().for_each(|record| record.cigar.clear());
    let bam = write(&folder, "some.bam", &records);
    let expected = pairs(&[lane(&bam, &AlignedOptions::default())], 2).unwrap();
    for version in ["3.0", "3.1"] {
        let cram = folder.path().join(format!("{version}.cram"));
        let options = format!("cram,version={version}");
        let mut samtools = Command::new("samtools");
        samtools.args(["view", "-O", &options, "--output-fmt-option", "no_ref=1", "-o"]).arg(&cram).arg(&bam);
        let made = samtools.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for threads in [1, 5] {
            let lane = lane(&cram, &AlignedOptions::default());
            assert!(pairs(std::slice::from_ref(&lane), threads).unwrap() == expected, "{version}");
            assert_eq!(lane.record_counts().unwrap().records, records.len() as u64);
        }
        assert!(pulled(&cram).0 == pulled(&bam).0, "in the same order");
        let estimate = ReadEstimate::estimate_reads_of_lanes(&[lane(&cram, &AlignedOptions::default())]).unwrap();
        assert_eq!(estimate.reads, 2 * expected.len() as u64);

        let whole = std::fs::read(&cram).unwrap();
        let message = |bytes: Vec<u8>| {
            let file = folder.write("bad.cram", bytes);
            pairs(&[lane(&file, &AlignedOptions::default())], 2).unwrap_err().to_string()
        };
        // Without the end-of-file container the file is read if its last container is whole.
        let no_end = folder.write("no_end.cram", &whole[..whole.len() - 38]);
        assert!(pairs(&[lane(&no_end, &AlignedOptions::default())], 2).unwrap() == expected);
        for cut in [39, 100] {
            let error = message(whole[..whole.len() - cut].to_vec());
            assert!(error.ends_with("bad.cram: has no end-of-file block: it is truncated, copy or make it again"));
        }
        let mut old = whole.clone();
        old[4] = 1;
        assert!(message(old).contains("is CRAM 1."));
        let mut bad = whole.clone();
        bad[whole.len() / 2] ^= 1;
        let error = message(bad);
        assert!(error.contains("damaged CRAM data (") && error.contains("bad.cram: record "), "{error}");
    }
}

#[test]
fn lane_formats_are_recognised_by_file_contents() {
    let folder = Folder::new();
    let mates = [fastq(0, 3_000, 1), fastq(0, 3_000, 2)];
    let [one, two] = [0, 1].map(|mate| folder.write(&format!("{mate}.fq"), &mates[mate]));
    let bam = write(&folder, "no-suffix", &as_records(&mates));
    let packed = folder.write("packed.fq.gz", bgzf(&mates[0]));
    let options = AlignedOptions::default();
    let of = |files: &[&PathBuf]| {
        let files: Vec<PathBuf> = files.iter().map(|&file| file.clone()).collect();
        Lane::group_files_into_lanes(NORMAL_SAMPLE, &files, MateLayout::Pairs, &options)
    };
    let kinds: Vec<bool> = (of(&[&one, &two, &bam, &packed, &two]).unwrap().iter())
        .map(|lane| matches!(lane.files, LaneFiles::Aligned(_)))
        .collect();
    assert_eq!(kinds, [false, true, false]);
    assert!(matches!(of(&[&one, &bam]), Err(Error::MissingMateFile { path }) if path == one));
    assert!(matches!(of(&[&bam, &one]), Err(Error::MissingMateFile { path }) if path == one));
    assert!(matches!(check_lanes(&of(&[&bam, &bam]).unwrap()), Err(Error::DuplicateInput { .. })));

    // Its contents can be estimated before it is read, and it is not divided.
    let lanes = of(&[&bam]).unwrap();
    let [bases, reads] = [0, 1].map(|what| {
        let all = pairs(&lanes, 1).unwrap();
        if what == 0 { all.iter().map(|p| p.1[0].len() + p.1[2].len()).sum() } else { 2 * all.len() }
    });
    let estimate = ReadEstimate::estimate_reads_of_lanes(&lanes).unwrap();
    assert_eq!((estimate.bases, estimate.reads), (bases as u64, reads as u64));
    let whole =
        ReadEstimate::estimate_reads_of_lanes(&[Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Pair(one, two))])
            .unwrap();
    assert!(estimate.packed_bytes.abs_diff(whole.packed_bytes) < whole.packed_bytes / 8, "{estimate:?} {whole:?}");
    let sharding = split_lanes_into_shards(&lanes, 4).unwrap();
    assert_eq!(sharding.shards.len(), 1);
    assert!(sharding.under_split_lanes[0].to_string().ends_with(
        "not divided: mates may be anywhere in a BAM, CRAM or BINSEQ file; for more shards give several files, or BGZF \
         FASTQ"
    ));
}
