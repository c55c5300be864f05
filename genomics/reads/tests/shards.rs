//! All shards together have exactly the pairs of the input lanes, each once, for any form of the files.

mod changed_files;

use std::path::{Path, PathBuf};

use crate::common::{Folder, gzip, interleave};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use genuma_reads::{
    CompressionFormat, Error, FileSpan, Lane, LaneFiles, LaneSlice, NORMAL_SAMPLE, ProgressCounters, ReadEstimate,
    ShardPlan, SplitObstacle, TUMOUR_SAMPLE, VirtualOffset, check_lanes, for_each_batch, split_lanes_into_shards,
};

/// A pair: sample, name, bases and qualities of both mates.
type Seen = Vec<(u8, Vec<u8>, [Vec<u8>; 4])>;

/// All pairs of some lanes, sorted, and the number of file bytes that were read.
fn read(lanes: &[Lane]) -> (Seen, u64) {
    let progress = ProgressCounters::default();
    let states = for_each_batch(lanes, 2, &progress, Vec::new, |seen, batch| {
        for pair in batch.iter() {
            let [one, two] = pair.mates;
            let fields = [one.seq, one.qual, two.seq, two.qual].map(<[u8]>::to_vec);
            seen.push((batch.sample, pair.name.to_vec(), fields));
        }
        Ok::<(), Error>(())
    });
    let mut seen: Seen = states.unwrap().into_iter().flatten().collect();
    seen.sort_unstable();
    assert_eq!(progress.bytes_done(), progress.bytes_total(), "every byte is expected and counted");
    (seen, progress.bytes_done())
}

/// The error of reading a lane.
fn message(folder: &Folder, lane: &Lane) -> String {
    let read =
        for_each_batch(std::slice::from_ref(lane), 2, &ProgressCounters::default(), || (), |(), _| Ok::<(), Error>(()));
    read.expect_err("the input is wrong").to_string().replace(&format!("{}/", folder.path().display()), "")
}

/// Divides lanes into shards and checks that the shards together have the pairs of the lanes. Also returns the number of pairs of each shard.
fn cut(lanes: &[Lane], n: usize, all: &(Seen, u64)) -> (ShardPlan, Vec<usize>) {
    let sharding = split_lanes_into_shards(lanes, n).unwrap();
    assert_eq!(split_lanes_into_shards(lanes, n).unwrap(), sharding, "the same files are cut at the same places");
    assert!(sharding.shards.len() <= n && sharding.shards.iter().all(|lanes| !lanes.is_empty()));
    assert_eq!(sharding.requested, n);
    assert_eq!(sharding.explain_fewer_shards().is_some(), sharding.shards.len() < n);
    // Serialised, as for another process.
    let sent = postcard::to_stdvec(&sharding.shards).unwrap();
    let received: Vec<Vec<Lane>> = postcard::from_bytes(&sent).unwrap();
    assert_eq!(received, sharding.shards);
    check_lanes(&received.concat()).unwrap();
    let (mut seen, mut bytes, mut pairs) = (Seen::new(), 0, Vec::new());
    for lanes in &received {
        check_lanes(lanes).unwrap();
        let (some, read) = read(lanes);
        pairs.push(some.len());
        seen.extend(some);
        bytes += read;
    }
    seen.sort_unstable();
    assert!(seen == all.0, "{} pairs of {}", seen.len(), all.0.len());
    assert_eq!(bytes, all.1, "the shards are together as long as the files");
    (sharding, pairs)
}

/// A seeded random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// Form of the names of mates.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Names {
    Casava,
    Slash,
    Sra,
    Bare,
}

/// Form of the reads.
#[derive(Debug, Clone, Copy)]
struct Look {
    names: Names,
    /// Length in bases of the shortest and the longest read.
    bases: [usize; 2],
    /// Quality letters of each mate.
    quals: [&'static [u8]; 2],
    line_end: &'static str,
}

const ALL_QUALS: &[u8] = b"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJ";

const ILLUMINA: Look = Look { names: Names::Casava, bases: [100, 151], quals: [ALL_QUALS, b"#,:F"], line_end: "\n" };
const HOSTILE: Look = Look { names: Names::Slash, bases: [0, 120], quals: [b"@+", b"@@@+"], line_end: "\r\n" };
const ARCHIVED: Look = Look { names: Names::Sra, bases: [75, 75], quals: [b"?", ALL_QUALS], line_end: "\n" };
const BARE: Look = Look { names: Names::Bare, bases: [1, 300], quals: [b"@", b"+"], line_end: "\n" };

/// Two mate files.
fn mates(look: Look, pairs: usize, seed: u64) -> [String; 2] {
    let mut random = Random(seed);
    let mut texts = [String::new(), String::new()];
    for i in 0..pairs {
        let spot = [random.below(4) + 1, 1101 + i * 78 / pairs, random.below(30_000), random.below(30_000)];
        for (text, mate) in texts.iter_mut().zip(0..) {
            let [least, most] = look.bases;
            let length = least + random.below(most - least + 1);
            let header = match look.names {
                Names::Casava => {
                    let [lane, tile, x, y] = spot;
                    format!("A00{seed}:25:HXX:{lane}:{tile}:{x}:{y}:{i} {}:N:0:ACGT+TTGA", mate + 1)
                }
                Names::Slash => format!("@read{i}/{}", mate + 1),
                Names::Sra => format!("SRR{seed}.{i} {i} length={length}"),
                Names::Bare => format!("{i}"),
            };
            let seq: String = (0..length).map(|_| b"ACGT"[random.below(4)] as char).collect();
            let quals = look.quals[mate];
            let qual: String = (0..length).map(|_| quals[random.below(quals.len())] as char).collect();
            let plus = if look.names == Names::Sra { &header[..] } else { "" };
            let end = look.line_end;
            *text += &format!("@{header}{end}{seq}{end}+{plus}{end}{qual}{end}");
        }
    }
    texts
}

/// BGZF with blocks of `block` uncompressed bytes and an end-of-file marker.
fn bgzf(text: &[u8], block: usize, level: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in text.chunks(block).chain([&b""[..]]) {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(level));
        std::io::Write::write_all(&mut encoder, part).unwrap();
        let packed = encoder.finish().unwrap();
        let mut crc = Crc::new();
        crc.update(part);
        bytes.extend([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0]);
        bytes.extend(((packed.len() + 25) as u16).to_le_bytes());
        bytes.extend(packed);
        bytes.extend(crc.sum().to_le_bytes());
        bytes.extend((part.len() as u32).to_le_bytes());
    }
    bytes
}

fn usual(text: &[u8]) -> Vec<u8> {
    bgzf(text, 0xff00, 1)
}

fn pair(sample: u8, one: &Path, two: &Path) -> Lane {
    Lane::with_whole_files(sample, LaneFiles::Pair(one.into(), two.into()))
}

fn single(path: PathBuf) -> Lane {
    Lane::with_whole_files(NORMAL_SAMPLE, LaneFiles::Single(path))
}

type Pack = fn(&[u8]) -> Vec<u8>;

/// A lane of two mate files with the given compression.
fn written(folder: &Folder, name: &str, texts: &[String; 2], packs: [Pack; 2]) -> Lane {
    let [one, two] =
        [0, 1].map(|mate| folder.write(&format!("{name}_{}", mate + 1), packs[mate](texts[mate].as_bytes())));
    pair(TUMOUR_SAMPLE, &one, &two)
}

const PLAIN: Pack = |text| text.to_vec();
const OPEN_END: Pack = |text| text.trim_ascii_end().to_vec();
const SMALL_BLOCKS: Pack = |text| bgzf(text, 5_001, 6);
const STORED: Pack = |text| bgzf(text, 0xff00, 0);

#[test]
fn mate_files_of_every_form_are_divided() {
    let folder = Folder::new();
    for (look, pairs) in [(ILLUMINA, 11_000), (HOSTILE, 20_000), (ARCHIVED, 15_000), (BARE, 12_000)] {
        let texts = mates(look, pairs, 7);
        for (name, packs) in [
            ("plain", [PLAIN, PLAIN]),
            ("bgzf", [usual, usual]),
            ("mixed", [SMALL_BLOCKS, OPEN_END]),
            ("stored", [STORED, SMALL_BLOCKS]),
        ] {
            let lanes = [written(&folder, name, &texts, packs)];
            let all = read(&lanes);
            assert_eq!(all.0.len(), pairs);
            let [one, two] = [0, 1].map(|file| lanes[0].paths().nth(file).unwrap().metadata().unwrap().len());
            for n in [1, 2, 3, 7, 50] {
                let (sharding, held) = cut(&lanes, n, &all);
                let room = (one.min(two) >> 16) as usize;
                assert_eq!(held.len(), n.min(room), "{look:?} {name} {n} {:?}", sharding.under_split_lanes);
                if held.len() < n {
                    assert_eq!(sharding.under_split_lanes[0].reason, SplitObstacle::TooSmall);
                    assert_eq!(sharding.under_split_lanes[0].num_slices, room);
                }
                let mean = pairs as f64 / held.len() as f64;
                let worst = held.iter().map(|&pairs| (pairs as f64 - mean).abs() / mean).fold(0.0, f64::max);
                assert!(worst < if n < 50 { 0.05 } else { 0.15 }, "{look:?} {name}: {held:?}");
            }
        }
    }
}

#[test]
fn lanes_of_one_file_are_divided() {
    let folder = Folder::new();
    for look in [ILLUMINA, HOSTILE, ARCHIVED, BARE] {
        let [one, two] = mates(look, 4000, 3);
        let both = interleave(one.as_bytes(), two.as_bytes());
        for (name, pack) in [("plain", PLAIN), ("open", OPEN_END), ("bgzf", usual), ("small", SMALL_BLOCKS)] {
            let path = folder.write(name, pack(&both));
            for lane in [Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Interleaved(path.clone())), single(path)] {
                let lanes = [lane];
                let all = read(&lanes);
                for n in [1, 2, 3, 7, 50] {
                    let (sharding, held) = cut(&lanes, n, &all);
                    assert!(
                        n == 50
                            || sharding.under_split_lanes.is_empty()
                            || sharding.under_split_lanes[0].reason == SplitObstacle::TooSmall
                    );
                    let mean = all.0.len() as f64 / held.len() as f64;
                    let even = held.iter().all(|&pairs| (pairs as f64 - mean).abs() < 0.2 * mean);
                    assert!(even, "{look:?} {name}: {held:?}");
                }
            }
        }
    }
}

#[test]
fn several_lanes_of_both_samples_are_divided() {
    let folder = Folder::new();
    let texts = [(ILLUMINA, 9000), (HOSTILE, 6000), (BARE, 200)].map(|(look, n)| mates(look, n, 11));
    let normal = written(&folder, "normal", &texts[0], [usual, usual]);
    let gzipped = written(&folder, "gzipped", &texts[1], [gzip, gzip]);
    let tiny = written(&folder, "tiny", &texts[2], [PLAIN, PLAIN]);
    let both = interleave(texts[1][0].as_bytes(), texts[1][1].as_bytes());
    let lanes = [
        Lane { sample: NORMAL_SAMPLE, ..normal },
        gzipped.clone(),
        tiny.clone(),
        Lane::with_whole_files(NORMAL_SAMPLE, LaneFiles::Interleaved(folder.write("both", both))),
    ];
    let all = read(&lanes);
    for n in [1, 2, 3, 7, 50] {
        let (sharding, _) = cut(&lanes, n, &all);
        let whole: Vec<(&Lane, SplitObstacle)> = sharding
            .under_split_lanes
            .iter()
            .filter(|uncut| uncut.num_slices == 1)
            .map(|u| (&u.lane, u.reason))
            .collect();
        if n == 1 {
            assert_eq!(sharding.shards, [lanes.to_vec()]);
            assert_eq!(whole, []);
            continue;
        }
        assert_eq!(
            whole,
            [(&gzipped, SplitObstacle::Compressed(CompressionFormat::Gzip)), (&tiny, SplitObstacle::TooSmall)]
        );
        let bytes: Vec<u64> =
            sharding.shards.iter().map(|lanes| lanes.iter().map(|lane| lane.disk_bytes().unwrap()).sum()).collect();
        let least = bytes.iter().min().unwrap();
        let with = |lane: &Lane| sharding.shards.iter().position(|lanes| lanes.contains(lane)).unwrap();
        assert_ne!(with(&gzipped), with(&tiny), "each went where there was least");
        assert!(bytes.iter().all(|b| *b <= least + gzipped.disk_bytes().unwrap() + (256 << 10)), "{bytes:?}");
        // The estimates of all shards add up to the estimate of the lanes.
        let whole = ReadEstimate::estimate_reads_of_lanes(&lanes).unwrap();
        let parts: Vec<ReadEstimate> =
            sharding.shards.iter().map(|lanes| ReadEstimate::estimate_reads_of_lanes(lanes).unwrap()).collect();
        let sum: u64 = parts.iter().map(|part| part.bases).sum();
        assert!(sum.abs_diff(whole.bases) < whole.bases / 50, "{sum} {whole:?}");
    }
    let (sharding, _) = cut(&lanes, 2, &all);
    let error_text: Vec<String> = sharding.under_split_lanes.iter().map(ToString::to_string).collect();
    let [gzip, tiny] = [gzipped, tiny].map(|lane| {
        let paths: Vec<_> = lane.paths().map(|path| path.display().to_string()).collect();
        paths.join(" and ")
    });
    assert_eq!(
        error_text,
        [
            format!(
                "{gzip}: not divided: gzip that is not BGZF can only be read from its start: compress the file with bgzip"
            ),
            format!("{tiny}: not divided: it is too small for more"),
        ]
    );
}

#[test]
fn slices_can_be_divided_again() {
    let folder = Folder::new();
    let texts = mates(ILLUMINA, 9000, 5);
    let lanes = [written(&folder, "a", &texts, [usual, SMALL_BLOCKS])];
    let all = read(&lanes);
    let (first, _) = cut(&lanes, 3, &all);
    let mut again = Seen::new();
    for lanes in &first.shards {
        let held = read(lanes);
        let (sharding, pairs) = cut(lanes, 3, &held);
        assert_eq!(pairs.len(), 3, "{:?}", sharding.under_split_lanes);
        again.extend(held.0);
    }
    again.sort_unstable();
    assert!(again == all.0);
}

#[test]
fn mates_far_from_their_expected_position_are_found() {
    let folder = Folder::new();
    // The second half of the second file has longer reads: the middle is displaced by 4.6 of 44 MB, outside the first window and inside the largest.
    let file = |name: &str, lengths: [usize; 2]| {
        let text: String = (0..120_000)
            .map(|i| {
                let length = lengths[i / 60_000];
                format!("@read:{i:06}\n{}\n+\n{}\n", "ACGT".repeat(length), "F@+F".repeat(length))
            })
            .collect();
        folder.write(name, text)
    };
    let [one, near, far] = [("1", [20, 20]), ("2", [34, 53]), ("3", [10, 77])].map(|(n, l)| file(n, l));
    // In the last file it is displaced by 16 MB and found in steps.
    for two in [near, far] {
        let sharding = split_lanes_into_shards(&[pair(NORMAL_SAMPLE, &one, &two)], 2).unwrap();
        assert_eq!(sharding.under_split_lanes, []);
        let pairs: Vec<usize> = sharding.shards.iter().map(|lanes| read(lanes).0.len()).collect();
        assert!(pairs.iter().sum::<usize>() == 120_000 && pairs[0].abs_diff(60_000) < 10, "{pairs:?}");
    }
    // The same reads in another order.
    let text = std::fs::read_to_string(&one).unwrap();
    let (first, second) = text.split_at(text.find("@read:060000").unwrap());
    let lane = pair(NORMAL_SAMPLE, &one, &folder.write("swapped", [second, first].concat()));
    let sharding = split_lanes_into_shards(std::slice::from_ref(&lane), 2).unwrap();
    assert_eq!(sharding.shards, [[lane.clone()]]);
    assert_eq!(
        (sharding.under_split_lanes[0].num_slices, sharding.under_split_lanes[0].reason),
        (1, SplitObstacle::MatesNotFound)
    );
    assert_eq!(
        sharding.explain_fewer_shards().unwrap(),
        "1 shard instead of 2: the reads cannot be divided into more (the warnings of the lanes give the reasons)"
    );
}

#[test]
fn mate_files_with_different_compression_are_divided() {
    let folder = Folder::new();
    // Half of the second file has one quality value, so that its first half is small.
    let dull = mates(Look { quals: [ALL_QUALS, b"F"], ..ARCHIVED }, 8000, 1);
    let noisy = mates(Look { quals: [ALL_QUALS, ALL_QUALS], ..ARCHIVED }, 8000, 2);
    let texts = [0, 1].map(|mate| [&dull[mate][..], &noisy[mate]].concat());
    let lanes = [written(&folder, "a", &texts, [STORED, |text| bgzf(text, 0xff00, 9)])];
    let all = read(&lanes);
    for n in [2, 3, 7] {
        let (sharding, held) = cut(&lanes, n, &all);
        assert_eq!(sharding.under_split_lanes, []);
        let mean = 16_000 / n;
        assert!(held.iter().all(|pairs| pairs.abs_diff(mean) < mean / 20), "{held:?}");
    }
}

#[test]
fn ambiguous_names_prevent_division() {
    let folder = Folder::new();
    let named = |name: fn(usize) -> usize| -> String {
        (0..20_000).map(|i| format!("@r{} x\nACGT\n+\nFFFF\n", name(i))).collect()
    };
    let write = |file: &str, name| folder.write(file, named(name));
    let alike = [write("alike_1", |_| 0), write("alike_2", |_| 0)];
    let twice = write("twice", |i| i / 2);
    let again = [write("again_1", |i| i % 100), write("again_2", |i| i % 100)];
    let others = [write("others_1", |i| i), write("others_2", |i| i + 1_000_000)];
    let interleaved = |path: &PathBuf| Lane::with_whole_files(NORMAL_SAMPLE, LaneFiles::Interleaved(path.clone()));
    let cases = [
        (pair(NORMAL_SAMPLE, &alike[0], &alike[1]), SplitObstacle::EqualNames),
        (interleaved(&alike[0]), SplitObstacle::EqualNames),
        (pair(NORMAL_SAMPLE, &again[0], &again[1]), SplitObstacle::MatesNotFound),
        (pair(NORMAL_SAMPLE, &others[0], &others[1]), SplitObstacle::MatesNotFound),
        (interleaved(&others[0]), SplitObstacle::MatesNotFound),
        (single(folder.write("fasta", ">a\nACGT\n".repeat(40_000))), SplitObstacle::NotFastq),
        (single(folder.write("wrong", format!("@a\n{}", "ACGT\n".repeat(40_000)))), SplitObstacle::NoRecords),
        (single(folder.write("bgzf", usual(&b"ACGT\n".repeat(400_000)))), SplitObstacle::TooSmall),
        (single(folder.write("stored", STORED(&b"ACGT\n".repeat(40_000)))), SplitObstacle::NoRecords),
        (single("/dev/null".into()), SplitObstacle::NotRegular),
        (single(folder.write("empty", "")), SplitObstacle::TooSmall),
        (single(folder.write("nothing.gz", usual(b""))), SplitObstacle::TooSmall),
        (
            single(folder.write("reads.gz", gzip(named(|i| i).as_bytes()))),
            SplitObstacle::Compressed(CompressionFormat::Gzip),
        ),
        (single(folder.write("one", "@a\nA\n+\nF\n")), SplitObstacle::TooSmall),
    ];
    for (lane, why) in cases {
        let sharding = split_lanes_into_shards(std::slice::from_ref(&lane), 2).unwrap();
        assert_eq!(sharding.shards, [[lane.clone()]], "{lane:?}");
        assert_eq!(
            sharding.under_split_lanes.iter().map(|u| (u.num_slices, u.reason)).collect::<Vec<_>>(),
            [(1, why)],
            "{lane:?}"
        );
    }
    // Unpaired reads need no distinct names.
    for path in [&alike[0], &twice] {
        let lanes = [single(path.clone())];
        assert_eq!(cut(&lanes, 2, &read(&lanes)).1.len(), 2);
    }
    // A few names that occur twice in a row do no harm.
    let mates = folder.write("twice_2", named(|i| i / 2).replace(" x", " y"));
    let lanes = [pair(NORMAL_SAMPLE, &twice, &mates)];
    assert_eq!(cut(&lanes, 2, &read(&lanes)).1.len(), 2);
    assert_eq!(cut(&[interleaved(&twice)], 2, &read(&[interleaved(&twice)])).1.len(), 2);
    let none = split_lanes_into_shards(&[], 3).unwrap();
    assert_eq!((none.shards.len(), none.under_split_lanes.len()), (0, 0));
    let absent = split_lanes_into_shards(&[single(folder.path().join("absent"))], 3).unwrap_err().to_string();
    assert!(absent.ends_with("absent: cannot read: No such file or directory (os error 2)"), "{absent}");
}

#[test]
fn tiny_lanes_are_distributed_whole() {
    let folder = Folder::new();
    let lanes: Vec<Lane> =
        (0..5).map(|i| written(&folder, &format!("{i}"), &mates(BARE, 20 + i, i as u64), [PLAIN, usual])).collect();
    let all = read(&lanes);
    for n in [1, 2, 3, 7, 50] {
        let (sharding, _) = cut(&lanes, n, &all);
        assert_eq!(sharding.shards.len(), n.min(5));
    }
    assert_eq!(
        split_lanes_into_shards(&lanes, 7).unwrap().explain_fewer_shards().unwrap(),
        "5 shards instead of 7: the reads cannot be divided into more (the warnings of the lanes give the reasons)"
    );
}

/// A file with one read per part, each part compressed on its own; and the position of each read that is in BGZF or plain text, by name.
fn parts(form: usize, reads: &[String]) -> (Vec<u8>, Vec<Option<VirtualOffset>>) {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    let text = reads.concat();
    let starts = reads.iter().scan(0, |at, read| Some(std::mem::replace(at, *at + read.len())));
    match form {
        0 => {
            bytes = text.into_bytes();
            places.extend(starts.map(|start| Some(VirtualOffset { file_offset: start as u64, offset_in_block: 0 })));
        }
        // Blocks that end at any byte, and a single block.
        1..4 => {
            let block = [10, 64, 0xff00][form - 1];
            let mut blocks = Vec::new();
            for part in text.as_bytes().chunks(block) {
                blocks.push(bytes.len() as u64);
                bytes.extend(usual(part));
            }
            places.extend(starts.map(|start| {
                Some(VirtualOffset { file_offset: blocks[start / block], offset_in_block: (start % block) as u16 })
            }));
        }
        // BGZF and ordinary gzip members alternate.
        _ => {
            for (read, i) in reads.iter().zip(0..) {
                let blocks = i % 3 != 1;
                places.push(blocks.then_some(VirtualOffset { file_offset: bytes.len() as u64, offset_in_block: 0 }));
                bytes.extend(if blocks { usual(read.as_bytes()) } else { gzip(read.as_bytes()) });
            }
        }
    }
    (bytes, places)
}

#[test]
fn every_span_between_two_records_is_read() {
    let folder = Folder::new();
    let reads: Vec<String> = (0..12).map(|i| format!("@r{i:02}\n{0}\n+\n{0}\n", "A".repeat(i * 5 % 13))).collect();
    for form in 0..5 {
        let (bytes, mut places) = parts(form, &reads);
        let size = bytes.len() as u64;
        let path = folder.write("reads", bytes);
        // The end of the file.
        places.push(None);
        for from in 0..reads.len() {
            for to in from + 1..=reads.len() {
                let (Some(begin), end) = (places[from], places[to]) else { continue };
                if to < reads.len() && end.is_none() {
                    continue;
                }
                let slice =
                    LaneSlice { first_file: FileSpan { start: begin, end, file_bytes: size }, second_file: None };
                let lane = Lane { slice: Some(slice), ..single(path.clone()) };
                let (seen, _) = read(std::slice::from_ref(&lane));
                let names: Vec<String> =
                    seen.into_iter().map(|(_, name, _)| String::from_utf8(name).unwrap()).collect();
                let expected: Vec<String> = (from..to).map(|i| format!("r{i:02}")).collect();
                assert_eq!(names, expected, "form {form}, {slice:?}");
                check_lanes(&[lane]).unwrap();
            }
        }
    }
}

#[test]
fn missing_mates_in_a_slice_are_reported() {
    let folder = Folder::new();
    let [one, two] = mates(ILLUMINA, 2000, 4);
    let lost = two.len() - two.rfind("\n@").unwrap() - 1;
    let lane = written(&folder, "a", &[one, two[..two.len() - lost].to_owned()], [PLAIN, PLAIN]);
    let sharding = split_lanes_into_shards(std::slice::from_ref(&lane), 2).unwrap();
    let pairs = read(&sharding.shards[0]).0.len();
    let from = sharding.shards[1][0].slice.unwrap().second_file.unwrap().start;
    assert_eq!(
        message(&folder, &sharding.shards[1][0]),
        format!(
            "a_2: the slice from {from} on ends after {} records while that of a_1 continues: mates are missing, give files that have the same templates in the same order",
            2000 - pairs - 1
        )
    );
}

#[test]
fn duplicate_inputs_are_reported() {
    let folder = Folder::new();
    let lane = written(&folder, "a", &mates(ILLUMINA, 2000, 4), [usual, usual]);
    let parts = split_lanes_into_shards(std::slice::from_ref(&lane), 3).unwrap().shards.concat();
    assert_eq!(parts.len(), 3);
    check_lanes(&parts).unwrap();
    for twice in [[parts[0].clone(), parts[0].clone()], [parts[2].clone(), lane.clone()], [lane.clone(), lane]] {
        let error_text = check_lanes(&twice).unwrap_err().to_string();
        assert!(error_text.ends_with("are the same reads: give each file once"), "{error_text}");
    }
    // A copy of the file, with another slice.
    let copy = folder.path().join("copy");
    std::fs::copy(parts[0].paths().next().unwrap(), &copy).unwrap();
    let mut other = parts[1].clone();
    if let LaneFiles::Pair(one, _) = &mut other.files {
        *one = copy;
    }
    assert!(check_lanes(&[parts[0].clone(), other]).is_err());
}
