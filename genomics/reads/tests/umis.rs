//! UMIs of tags and of bases become the end of the read names.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::{Aligned, Folder, as_records, bam_text, bgzf, fastq, pull};
use genuma_reads::{
    AlignedInput, AlignedOptions, BatchLimits, CarriedTags, Error, Lane, LaneFiles, MateLayout, ProgressCounters,
    ReadStructures, StreamLane, StreamOptions, TUMOUR_SAMPLE, for_each_batch,
};

/// Name, and bases of both mates.
type Pair = (String, [String; 2]);

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// All pairs of a lane, sorted by name.
fn pairs(lane: &Lane, threads: usize) -> Result<Vec<Pair>, Error> {
    let lanes = std::slice::from_ref(lane);
    let states = for_each_batch(lanes, threads, &ProgressCounters::default(), Vec::new, |seen, batch| {
        for pair in batch.iter() {
            assert!(pair.mates.iter().all(|mate| mate.seq.len() == mate.qual.len()));
            seen.push((text(pair.name), pair.mates.map(|mate| text(mate.seq))));
        }
        Ok::<(), Error>(())
    })?;
    let mut all: Vec<Pair> = states.into_iter().flatten().collect();
    all.sort();
    Ok(all)
}

fn aligned_lane(file: &Path) -> Lane {
    let lanes =
        Lane::group_files_into_lanes(TUMOUR_SAMPLE, &[file.into()], MateLayout::Pairs, &AlignedOptions::default());
    lanes.unwrap().pop().unwrap()
}

fn write_bam(folder: &Folder, name: &str, records: &[Aligned]) -> PathBuf {
    folder.write(name, bgzf(&bam_text(records)))
}

/// The end of the name of a template with [`tags`].
fn suffix(template: usize) -> String {
    match template % 4 {
        0 => format!(":ACGT-{}", ["AAAA", "CCCC", "GGGN"][template % 3]),
        1 => format!(":mi={}", template / 4),
        // Too short for a UMI.
        2 => String::new(),
        _ => String::new(),
    }
}

/// Tags of a record of a template, among others.
fn tags(template: usize, mate: usize) -> Vec<u8> {
    let mut tags = b"XBBS\x02\0\0\0\x01\0\x02\0XFf\0\0\0\0".to_vec();
    let umi = match template % 4 {
        0 => format!("RXZ{}\0", &suffix(template)[1..]),
        1 => format!("RXZACGT\0MIZ{}/{}\0", template / 4, ["A", "B"][template / 4 % 2]),
        2 => "RXZACG\0".to_owned(),
        _ => String::new(),
    };
    // Some templates have the tag in one record only.
    if template % 8 >= 4 || mate == 0 {
        tags.extend(umi.bytes());
    }
    tags.extend(b"XSs\x01\0");
    tags
}

#[test]
fn umis_of_tags_follow_the_names() {
    let folder = Folder::new();
    let n = 40_000;
    let mates = [fastq(0, n, 1), fastq(0, n, 2)];
    let [one, two] = [0, 1].map(|mate| folder.write(&format!("{mate}.fq"), &mates[mate]));
    let plain = pairs(&Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Pair(one, two)), 1).unwrap();
    let mut records = as_records(&mates);
    for (i, record) in records.iter_mut().enumerate() {
        record.tags = tags(i / 2, i % 2);
    }
    let by_name: std::collections::HashMap<String, usize> =
        records.iter().enumerate().map(|(i, record)| (text(&record.name), i / 2)).collect();
    let mut expected: Vec<Pair> =
        plain.iter().map(|(name, seqs)| (format!("{name}{}", suffix(by_name[name])), seqs.clone())).collect();
    expected.sort();
    assert!(expected.iter().any(|(name, _)| name.contains(":mi=17")));
    // Mates side by side, and so far apart that they wait on disk.
    let far: Vec<Aligned> = [0, 1].iter().flat_map(|mate| records.iter().skip(*mate).step_by(2).cloned()).collect();
    for (name, records) in [("near.bam", &records), ("far.bam", &far)] {
        let lane = aligned_lane(&write_bam(&folder, name, records));
        assert!(pairs(&lane, 3).unwrap() == expected, "{name}");
        let with_umi = records
            .iter()
            .filter(|r| r.tags.windows(3).any(|tag| tag == b"RXZ") && !r.tags.ends_with(b"RXZACG\0XSs\x01\0"));
        assert_eq!(lane.record_counts().unwrap().with_umi, with_umi.count() as u64);
    }
    // A lost mate takes its tag with it, or not.
    let lost: Vec<Aligned> = records.iter().skip(1).step_by(2).cloned().collect();
    let second = pairs(&aligned_lane(&write_bam(&folder, "lost.bam", &lost)), 1).unwrap();
    let with_tag = |(name, _): &&Pair| name.contains(":mi=");
    assert!(second.iter().filter(with_tag).all(|(name, _)| by_name[name.split(":mi=").next().unwrap()] % 8 == 5));
    assert_eq!(second.iter().filter(with_tag).count(), n / 8);
    // Aligners get the names as they are.
    let near = AlignedInput::new(folder.path().join("near.bam"), AlignedOptions::default());
    let (batches, _) = pull(&[StreamLane::Aligned(near)], StreamOptions::new(BatchLimits::with_reads_per_batch(1000)));
    assert!(batches.iter().flat_map(|batch| &batch.3).all(|read| by_name.contains_key(&text(&read[0]))));
}

#[test]
fn umis_of_cram_are_those_of_bam() {
    if Command::new("samtools").arg("--version").output().is_err() {
        eprintln!("skipped: no samtools");
        return;
    }
    let folder = Folder::new();
    let mut records = as_records(&[fastq(0, 3000, 1), fastq(0, 3000, 2)]);
    // Unmapped records have no positions.
    records.iter_mut().for_each(|record| record.flags |= 0xc);
    records.iter_mut().enumerate().for_each(|(i, record)| record.tags = tags(i / 2, i % 2));
    let bam = write_bam(&folder, "a.bam", &records);
    let cram = folder.path().join("a.cram");
    let mut samtools = Command::new("samtools");
    samtools.args(["view", "-O", "cram", "--output-fmt-option", "no_ref=1", "-o"]).arg(&cram).arg(&bam);
    assert!(samtools.status().unwrap().success());
    let all = pairs(&aligned_lane(&cram), 2).unwrap();
    assert!(all.iter().any(|(name, _)| name.contains(":mi=17")) && all.iter().any(|(name, _)| name.contains(":ACGT-")));
    assert!(all == pairs(&aligned_lane(&bam), 2).unwrap());
}

#[test]
fn damaged_tags_are_errors() {
    let folder = Folder::new();
    let records = as_records(&[fastq(0, 20, 1), fastq(0, 20, 2)]);
    for (name, damaged) in [
        ("end", &b"RXZACGT"[..]),
        ("kind", b"RX?ACGT\0"),
        ("number", b"XIi\0\0"),
        ("array", b"XBBi\xff\xff\xff\xff\0"),
        ("element", b"XBBx\0\0\0\0"),
    ] {
        let mut records = records.clone();
        records[7].tags = damaged.to_vec();
        let error = pairs(&aligned_lane(&write_bam(&folder, name, &records)), 1).unwrap_err().to_string();
        assert!(error.contains("record 8: is damaged (its tags are not valid)"), "{name}: {error}");
    }
}

#[test]
fn carried_tags_with_a_tab_or_line_break_are_errors() {
    let folder = Folder::new();
    let records = as_records(&[fastq(0, 20, 1), fastq(0, 20, 2)]);
    for (name, tag) in [("tab", &b"COZone\ttwo\0"[..]), ("line", b"COZone\ntwo\0"), ("letter", b"COA\t")] {
        let mut records = records.clone();
        records[7].tags = tag.to_vec();
        let file = write_bam(&folder, name, &records);
        let failure = |carried_tags: Option<CarriedTags>| {
            let lane = StreamLane::Aligned(AlignedInput::new(&file, AlignedOptions::default()));
            let carried_tags = carried_tags.map(Arc::new);
            pull(&[lane], StreamOptions { carried_tags, ..StreamOptions::new(BatchLimits::with_reads_per_batch(1000)) })
                .1
        };
        let error = failure(Some(CarriedTags::all_but_aligner_tags())).unwrap().to_string();
        assert!(error.contains("record 8: tag CO contains a tab or line break"), "{name}: {error}");
        assert!(
            failure(None).is_none() && failure(Some(CarriedTags::parse_tag_list("RX").unwrap())).is_none(),
            "{name}"
        );
    }
}

/// One mate file of `n` templates with random bases; some reads have only a few.
fn random_fastq(n: usize, mate: u64) -> Vec<u8> {
    let mut x = mate;
    let mut draw = |below: u64| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % below
    };
    let mut text = Vec::new();
    for i in 0..n {
        let length = if draw(50) == 0 { draw(10) } else { 100 };
        let seq: Vec<u8> = (0..length).map(|_| if draw(100) == 0 { b'N' } else { b"ACGT"[draw(4) as usize] }).collect();
        text.extend([format!("@r{i}\n").as_bytes(), &seq, b"\n+\n", &vec![b'I'; seq.len()], b"\n"].concat());
    }
    text
}

#[test]
fn umis_of_bases_are_the_same_in_all_formats() {
    let folder = Folder::new();
    let mates = [random_fastq(6000, 1), random_fastq(6000, 2)];
    let [one, two] = [0, 1].map(|mate| folder.write(&format!("{mate}.fq"), &mates[mate]));
    let structures: ReadStructures = "3M1S+T,5M2S+T".parse().unwrap();
    let plain = Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Pair(one.clone(), two));
    let (mut expected, mut num_short) = (Vec::new(), 0);
    for (name, [first, second]) in pairs(&plain, 1).unwrap() {
        num_short += u64::from(first.len() < 4) + u64::from(second.len() < 7);
        expected.push(if first.len() < 4 || second.len() < 7 {
            (name, [String::new(), String::new()])
        } else {
            let umis = [&first[..3], &second[..5]].map(|umi| umi.replace(|base| !"ACGT".contains(base), "N"));
            (format!("{name}:{}-{}", umis[0], umis[1]), [first[4..].to_owned(), second[7..].to_owned()])
        });
    }
    expected.sort();
    assert!(num_short > 0 && num_short < 1000, "{num_short}");
    let bam = aligned_lane(&write_bam(&folder, "a.bam", &as_records(&mates)));
    for lane in [plain, bam] {
        let lane = lane.with_read_structures(structures.clone());
        assert!(pairs(&lane, 2).unwrap() == expected, "{lane:?}");
        let counts = lane.record_counts().unwrap();
        assert_eq!(counts.shorter_than_structure.num_reads, num_short);
        assert_eq!(counts.with_umi, 2 * expected.iter().filter(|(name, _)| name.contains(':')).count() as u64);
    }
    // Reads without mates.
    let single = Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Single(one));
    let whole = pairs(&single, 1).unwrap();
    let cut = pairs(&single.with_read_structures(structures), 1).unwrap();
    let lost: usize = whole.iter().map(|(_, [read, _])| read.len().min(4)).sum();
    let num_bases = |pairs: &[Pair]| pairs.iter().map(|(_, [read, mate])| read.len() + mate.len()).sum::<usize>();
    assert_eq!(num_bases(&cut), num_bases(&whole) - lost);
}
