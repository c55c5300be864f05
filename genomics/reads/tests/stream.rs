//! Read streams deliver the same reads in the same order for any compression, number of threads and batch limit.

use std::io::Write;
use std::sync::Arc;

use crate::common::{Batch, Folder, Read, as_pipes, bgzf, fastq, gzip, gzip_members, interleave, pull, reads};
use genuma_reads::{BatchLimits, ProgressCounters, StreamLane, StreamOptions};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The expected batches of a lane, by a direct implementation of the rule.
fn expected(lane: u32, paired: bool, reads: &[Read], cut: BatchLimits) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut ended = true;
    for unit in reads.chunks(if paired { 2 } else { 1 }) {
        if ended {
            let before = batches.iter().map(|(.., reads)| reads.len() as u64).sum();
            batches.push((lane, before, paired, Vec::new()));
        }
        let (.., batch) = batches.last_mut().unwrap();
        batch.extend_from_slice(unit);
        let bases: u64 = batch.iter().map(|[_, _, seq, _]| seq.len() as u64).sum();
        ended = batch.len() >= cut.max_reads
            || bases >= cut.max_bases
            || (batch.len() >= cut.min_reads && bases >= cut.target_bases);
    }
    batches
}

/// Name, comment, and bases and qualities of each mate.
type Template = (String, String, [(Vec<u8>, Vec<u8>); 2]);

/// Templates with reads of any length, and the form of their files.
#[derive(Debug, Clone)]
struct Case {
    templates: Vec<Template>,
    layout: Layout,
    packs: [Pack; 2],
    /// Line length of FASTA; `None` for FASTQ.
    wrap: Option<usize>,
    crlf: bool,
    cut: BatchLimits,
    inflaters: usize,
    ahead: usize,
    through_pipe: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    Single,
    Pair,
    Interleaved,
}

#[derive(Debug, Clone, Copy)]
enum Pack {
    Plain,
    Gzip,
    Members(usize),
    Bgzf,
    /// BGZF, then ordinary gzip members, then BGZF.
    Mixed,
}

impl Pack {
    fn pack(self, text: &[u8]) -> Vec<u8> {
        match self {
            Pack::Plain => text.to_vec(),
            Pack::Gzip => gzip(text),
            Pack::Members(size) => gzip_members(text, size),
            Pack::Bgzf => bgzf(text),
            Pack::Mixed => {
                let third = text.len() / 3;
                [bgzf(&text[..third]), gzip(&text[third..2 * third]), bgzf(&text[2 * third..])].concat()
            }
        }
    }
}

impl Case {
    fn text(&self, mate: usize, number: &str) -> Vec<u8> {
        let end: &[u8] = if self.crlf { b"\r\n" } else { b"\n" };
        let mut text = Vec::new();
        for (name, comment, mates) in &self.templates {
            let (seq, qual) = &mates[mate];
            let mark = if self.wrap.is_some() { '>' } else { '@' };
            let blank = if comment.is_empty() { "" } else { " " };
            write!(text, "{mark}{name}{number}{blank}{comment}").unwrap();
            text.extend(end);
            match self.wrap {
                Some(length) => {
                    seq.chunks(length).for_each(|line| text.extend([line, end].concat()));
                }
                None => text.extend([seq, end, b"+", end, qual, end].concat()),
            }
        }
        text
    }

    /// The reads in the order of the files.
    fn reads(&self) -> Vec<Read> {
        let mates: &[usize] = if self.layout == Layout::Single { &[0] } else { &[0, 1] };
        let read = |name: &String, comment: &String, (seq, qual): &(Vec<u8>, Vec<u8>)| {
            let qual = if self.wrap.is_some() { Vec::new() } else { qual.clone() };
            [name.clone().into_bytes(), comment.clone().into_bytes(), seq.clone(), qual]
        };
        let template = |(name, comment, reads): &Template| {
            mates.iter().map(|&mate| read(name, comment, &reads[mate])).collect::<Vec<_>>()
        };
        self.templates.iter().flat_map(template).collect()
    }

    fn write(&self, folder: &Folder) -> StreamLane {
        let write = |i: usize, text: Vec<u8>| folder.write(&format!("reads_{i}"), self.packs[i].pack(&text));
        match self.layout {
            Layout::Single => StreamLane::Single(write(0, self.text(0, ""))),
            Layout::Pair => StreamLane::Pair(write(0, self.text(0, "/1")), write(1, self.text(1, "/2"))),
            Layout::Interleaved => {
                let mut lone = self.clone();
                let mut text = Vec::new();
                for template in &self.templates {
                    lone.templates = vec![template.clone()];
                    text.extend([lone.text(0, "/1"), lone.text(1, "/2")].concat());
                }
                StreamLane::Interleaved(write(0, text))
            }
        }
    }
}

fn case() -> impl Strategy<Value = Case> {
    let bases = || {
        let length = prop_oneof![6 => 0usize..200, 1 => 200usize..3000, 1 => 100_000usize..200_000];
        (length, any::<u8>()).prop_map(|(length, seed)| {
            let at = |j: usize| (j * 31 + seed as usize) % 251;
            let seq: Vec<u8> = (0..length).map(|j| b"ACGTNacgtRYU"[at(j) % 12]).collect();
            let qual = (0..length).map(|j| b'!' + (at(j + 7) % 94) as u8).collect();
            (seq, qual)
        })
    };
    let template = ("[!-.0-~]{1,30}", "([!-~][ -~]{0,20})?", [bases(), bases()]);
    let templates = prop::collection::vec(template, 1..60);
    let pack = || {
        prop_oneof![
            Just(Pack::Plain),
            Just(Pack::Gzip),
            (1000usize..90_000).prop_map(Pack::Members),
            Just(Pack::Bgzf),
            Just(Pack::Mixed)
        ]
    };
    let layout = prop_oneof![Just(Layout::Single), Just(Layout::Pair), Just(Layout::Interleaved)];
    let cut = prop_oneof![
        (1u64..20_000).prop_map(BatchLimits::with_bases_per_batch),
        (1usize..50).prop_map(BatchLimits::with_reads_per_batch),
        (1u64..2000, 1usize..20, 2000u64..30_000, 10usize..40).prop_map(
            |(target_bases, min_reads, max_bases, max_reads)| BatchLimits {
                target_bases,
                max_reads,
                min_reads,
                max_bases
            }
        ),
    ];
    let style = (prop::option::of(1usize..100), any::<bool>(), cut, 0usize..7, 0usize..4, any::<bool>());
    (templates, layout, [pack(), pack()], style).prop_map(|(templates, layout, packs, style)| {
        let (wrap, crlf, cut, inflaters, ahead, through_pipe) = style;
        // A comment that starts with `1:` would make both mates read 1.
        let templates =
            templates.into_iter().map(|(name, comment, mates)| (name, comment.replace(':', ";"), mates)).collect();
        Case { templates, layout, packs, wrap, crlf, cut, inflaters, ahead, through_pipe }
    })
}

fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Default::default() }
}

proptest! {
    #![proptest_config(config(300, 31))]

    #[test]
    fn reads_arrive_in_order_and_batches_end_at_the_limit(case in case()) {
        let folder = Folder::new();
        let mut lane = case.write(&folder);
        if case.through_pipe {
            lane = as_pipes(lane);
        }
        let mut options = StreamOptions::new(case.cut);
        (options.inflate_threads, options.batches_ahead) = (case.inflaters, case.ahead);
        let (batches, error) = pull(&[lane], options);
        prop_assert!(error.is_none(), "{:?}", error);
        prop_assert_eq!(batches, expected(0, case.layout != Layout::Single, &case.reads(), case.cut));
    }
}

/// A damaged file, and the options for reading it.
#[derive(Debug, Clone)]
struct Damaged {
    layout: Layout,
    pack: Pack,
    /// Bytes to overwrite, at fractions of the file size.
    changes: Vec<(f64, u8)>,
    /// Fraction of the file that is kept.
    left: f64,
}

fn damaged() -> impl Strategy<Value = Damaged> {
    let layout = prop_oneof![Just(Layout::Single), Just(Layout::Pair), Just(Layout::Interleaved)];
    let pack = prop_oneof![Just(Pack::Plain), Just(Pack::Members(20_000)), Just(Pack::Bgzf), Just(Pack::Mixed)];
    let changes = prop::collection::vec((0.0f64..1.0, any::<u8>()), 0..3);
    let left = prop_oneof![Just(1.0), 0.0f64..1.0];
    (layout, pack, changes, left).prop_map(|(layout, pack, changes, left)| Damaged { layout, pack, changes, left })
}

proptest! {
    #![proptest_config(config(300, 37))]

    #[test]
    fn damage_is_reported_equally_for_any_number_of_threads(damaged in damaged()) {
        let folder = Folder::new();
        let mates = [fastq(0, 700, 1), fastq(0, 700, 2)];
        let text = match damaged.layout {
            Layout::Interleaved => interleave(&mates[0], &mates[1]),
            _ => mates[0].clone(),
        };
        let mut bytes = damaged.pack.pack(&text);
        for &(at, byte) in &damaged.changes {
            let at = (at * bytes.len() as f64) as usize;
            bytes[at] = byte;
        }
        bytes.truncate((damaged.left * bytes.len() as f64) as usize);
        let (one, two) = (folder.write("one", &bytes), folder.write("two", &mates[1]));
        let lane = match damaged.layout {
            Layout::Single => StreamLane::Single(one),
            Layout::Pair => StreamLane::Pair(one, two),
            Layout::Interleaved => StreamLane::Interleaved(one),
        };
        let pulled = |inflate_threads| {
            let limits = BatchLimits::with_reads_per_batch(100);
            let options = StreamOptions { inflate_threads, ..StreamOptions::new(limits) };
            let (batches, error) = pull(std::slice::from_ref(&lane), options);
            (batches, error.map(|e| e.to_string()))
        };
        let (batches, error) = pulled(1);
        if damaged.changes.is_empty() && damaged.left == 1.0 {
            prop_assert_eq!(&error, &None);
        }
        if let Some(error) = &error {
            prop_assert!(error.contains("one: ") || error.contains("two: "), "no file in {}", error);
        }
        prop_assert_eq!(pulled(6), (batches, error));
    }
}

#[test]
fn lanes_are_delivered_one_after_the_other() {
    let folder = Folder::new();
    let file = |name: &str, text: &[u8]| folder.write(name, gzip(text));
    let lanes = [
        StreamLane::Pair(file("a_1", &fastq(0, 10, 1)), file("a_2", &fastq(0, 10, 2))),
        StreamLane::Single(file("b", &fastq(10, 7, 1))),
        StreamLane::Interleaved(file("c", &interleave(&fastq(20, 5, 1), &fastq(20, 5, 2)))),
    ];
    let progress = Arc::new(ProgressCounters::default());
    let options =
        StreamOptions { progress: progress.clone(), ..StreamOptions::new(BatchLimits::with_reads_per_batch(8)) };
    let (batches, error) = pull(&lanes, options);
    assert!(error.is_none());
    let shape: Vec<_> =
        batches.iter().map(|(lane, before, paired, reads)| (*lane, *before, *paired, reads.len())).collect();
    assert_eq!(
        shape,
        [(0, 0, true, 8), (0, 8, true, 8), (0, 16, true, 4), (1, 0, false, 7), (2, 0, true, 8), (2, 8, true, 2)]
    );
    assert_eq!((progress.num_reads(), progress.num_pairs()), (37, 15));
    assert_eq!(progress.bytes_done(), progress.bytes_total());
    assert_eq!(batches[3].3[0][..2], [b"lane:10".to_vec(), b"1:N:0:ACGT".to_vec()]);
    assert_eq!(pull(&[], StreamOptions::new(BatchLimits::with_reads_per_batch(8))).0, []);
}

#[test]
fn a_batch_ends_with_the_pair_that_reaches_the_bases() {
    let folder = Folder::new();
    let text =
        |mate: usize| (0..10).map(|i| format!("@r{i}/{mate}\nACGTA\n+\nFFFFF\n")).collect::<String>().into_bytes();
    let pair = StreamLane::Pair(folder.write("1", text(1)), folder.write("2", text(2)));
    let single = StreamLane::Single(folder.write("s", text(2)));
    let lengths = |lane: &StreamLane, cut| {
        let (batches, error) = pull(std::slice::from_ref(lane), StreamOptions::new(cut));
        assert!(error.is_none());
        batches.iter().map(|(.., reads)| reads.len()).collect::<Vec<_>>()
    };
    // A pair has 10 bases: the limit is reached exactly, just missed, or inside the first mate.
    assert_eq!(lengths(&pair, BatchLimits::with_bases_per_batch(30)), [6, 6, 6, 2]);
    assert_eq!(lengths(&pair, BatchLimits::with_bases_per_batch(31)), [8, 8, 4]);
    assert_eq!(lengths(&pair, BatchLimits::with_bases_per_batch(25)), [6, 6, 6, 2]);
    assert_eq!(lengths(&single, BatchLimits::with_bases_per_batch(25)), [5, 5]);
    assert_eq!(lengths(&pair, BatchLimits::with_reads_per_batch(5)), [6, 6, 6, 2]);
    // At 10 bases, but with at least 6 reads, unless there are 20 bases.
    let cut = BatchLimits { min_reads: 6, max_bases: 20, ..BatchLimits::with_bases_per_batch(10) };
    assert_eq!(lengths(&single, cut), [4, 4, 2]);
    assert_eq!(lengths(&single, BatchLimits { max_bases: 1000, ..cut }), [6, 4]);
}

#[test]
fn read_numbers_are_removed_from_names_only_in_pairs() {
    let folder = Folder::new();
    let one = folder.write("1.fq", "@r/1 x  y\tz\nACGT\n+\nFFFF\n@/1/1\nA\n+\nF\n");
    let two = folder.write("2.fq", "@r/2\nAC\n+\nFF\n@/1/2\nA\n+\nF\n");
    let names = |lane| {
        reads(&[lane])
            .into_iter()
            .map(|[name, comment, ..]| [name, comment].map(|s| String::from_utf8(s).unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(StreamLane::Pair(one.clone(), two)), [["r", "x  y\tz"], ["r", ""], ["/1", ""], ["/1", ""]]);
    assert_eq!(names(StreamLane::Single(one)), [["r/1", "x  y\tz"], ["/1/1", ""]]);
}

#[test]
fn fasta_lines_are_joined_and_long_reads_are_accepted() {
    let folder = Folder::new();
    let long = "ACGTN".repeat(500_000);
    let wrapped: Vec<&str> = (0..long.len()).step_by(60).map(|at| &long[at..long.len().min(at + 60)]).collect();
    let text = format!(">a\n{long}\n>b x\n\n>c\r\n{}\r\n\r\n>d\nAC\n\nGT", wrapped.join("\r\n"));
    let read =
        |name: &str, comment: &str, seq: &str| [name.as_bytes().to_vec(), comment.into(), seq.into(), Vec::new()];
    let expected = [read("a", "", &long), read("b", "x", ""), read("c", "", &long), read("d", "", "ACGT")];
    for (name, pack) in [("plain", Pack::Plain), ("bgzf", Pack::Bgzf)] {
        let path = folder.write(name, pack.pack(text.as_bytes()));
        assert!(reads(&[StreamLane::Single(path.clone())]) == expected, "{name}");
    }
    // As FASTQ, with records longer than a block.
    let text = format!("@a\n{long}\n+\n{long}\n@b\n\n+\n\n@c\n{long}\n+\n{long}");
    let path = folder.write("long.fq", text);
    let lengths: Vec<_> =
        reads(&[StreamLane::Single(path)]).iter().map(|[.., seq, qual]| (seq.len(), qual.len())).collect();
    assert_eq!(lengths, [(2_500_000, 2_500_000), (0, 0), (2_500_000, 2_500_000)]);
}

#[test]
fn whole_headers_are_delivered_if_requested() {
    let folder = Folder::new();
    let headers =
        |mate: u32| ["a/N BC:Z:x", "b/N\tM:N:0:ACGT  two words ", "c"].map(|h| h.replace('N', &mate.to_string()));
    let text = |mate: u32| headers(mate).map(|h| format!("@{h}\nACG\n+\nFFF\n")).concat();
    let lane = StreamLane::Pair(folder.write("1", text(1)), folder.write("2", text(2)));
    let options =
        StreamOptions { uses_whole_header_as_name: true, ..StreamOptions::new(BatchLimits::with_reads_per_batch(100)) };
    let (batches, error) = pull(&[lane], options);
    assert!(error.is_none());
    let names: Vec<&[u8]> = batches[0].3.iter().map(|[name, ..]| name.as_slice()).collect();
    let ([a, b, c], [d, e, f]) = (headers(1), headers(2));
    assert_eq!(names, [&a, &d, &b, &e, &c, &f].map(|h| h.as_bytes()));
    assert!(batches[0].3.iter().all(|[_, comment, ..]| comment.is_empty()));
}
