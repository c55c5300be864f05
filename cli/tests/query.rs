//! `genuma kmers query --summary` and `--matrix`, and several tables and dictionaries: the results of a plain
//! recomputation, whatever the number of threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{run, scratch, text};
use crate::dictionary::{assert_refused, canonical, counts_of_table, fastq_of_fasta, sequence, table_and_sequences};

const K: usize = 31;

/// Counts of one sample.
struct Sample {
    column: &'static str,
    counts: BTreeMap<String, u32>,
    /// Whether there are counts, or 1 for each k-mer.
    has_counts: bool,
}

/// A table of the samples `one` and `two`, a dictionary of the sample `three`, a dictionary without counts, and
/// sequences with their names.
struct Inputs {
    folder: PathBuf,
    table: PathBuf,
    dictionary: PathBuf,
    bare: PathBuf,
    fasta: PathBuf,
    sequences: Vec<(String, String)>,
    samples: Vec<Sample>,
}

fn inputs(name: &str) -> Inputs {
    let folder = scratch(name);
    let (table, fasta) = table_and_sequences(&folder, "31");
    let [reads, third, dictionary, bare] = ["c.fq", "c.gkt", "c.gkd", "bare.gkd"].map(|name| folder.join(name));
    let genome = fs::read_to_string(&fasta).expect("sequences").lines().nth(1).expect("a sequence").to_owned();
    // The third sample has a part of the genome, some of it three times.
    let parts = format!(">a\n{}\n>b\n{1}\n>c\n{1}\n", &genome[..4000], &genome[1000..1700]);
    fs::write(&reads, fastq_of_fasta(&parts)).expect("written");
    let sample = format!("three={}", text(&reads));
    run(["kmers", "count", "-q", "--min-count", "1", "--sample", &sample, "-o", text(&third)]).assert_success();
    run(["kmers", "compact", "-q", text(&third), "-o", text(&dictionary)]).assert_success();
    run(["kmers", "compact", "-q", text(&third), "--no-counts", "-o", text(&bare)]).assert_success();

    let mut sequences = vec![
        ("long".to_owned(), genome.repeat(45)),
        ("short".to_owned(), genome[..K - 1].to_owned()),
        ("one_kmer".to_owned(), genome[..K].to_owned()),
        ("two_kmers".to_owned(), format!("{}A", &genome[1010..1010 + K])),
        ("only_n".to_owned(), "N".repeat(200)),
        ("n_everywhere".to_owned(), format!("{}N{}", &genome[..K - 1], &genome[40..40 + K - 1])),
        ("some_n".to_owned(), format!("{}N{}", &genome[900..1200], &genome[1300..1500])),
        ("random".to_owned(), sequence(77, 500)),
    ];
    sequences.extend((0..200).map(|i| (format!("read{i}"), genome[i * 20..i * 20 + 100].to_owned())));
    sequences.push(("last".to_owned(), "ACGT".to_owned()));
    let record = |(name, bases): &(String, String)| format!(">{name} with a comment\n{bases}\n");
    fs::write(&fasta, sequences.iter().map(record).collect::<String>()).expect("written");

    let (of_table, of_third) = (counts_of_table(&table), counts_of_table(&third));
    let column = |counts: &BTreeMap<String, Vec<u32>>, sample: usize| {
        counts.iter().map(|(kmer, row)| (kmer.clone(), row[sample])).collect()
    };
    let samples = vec![
        Sample { column: "one", counts: column(&of_table, 0), has_counts: true },
        Sample { column: "two", counts: column(&of_table, 1), has_counts: true },
        Sample { column: "three", counts: column(&of_third, 0), has_counts: true },
        Sample {
            column: "present",
            counts: of_third.keys().map(|kmer| (kmer.clone(), 1)).collect(),
            has_counts: false,
        },
    ];
    Inputs { folder, table, dictionary, bare, fasta, sequences, samples }
}

/// Canonical k-mers of a sequence, with their positions from 1.
fn kmers_of(bases: &str) -> Vec<(usize, String)> {
    let starts = 0..(bases.len() + 1).saturating_sub(K);
    let windows = starts.map(|start| (start + 1, &bases[start..start + K]));
    windows.filter(|(_, kmer)| !kmer.contains('N')).map(|(position, kmer)| (position, canonical(kmer))).collect()
}

/// Length, number of k-mers, and for each sample the number found, share, and median.
struct PlainSummary {
    num_kmers: usize,
    of_samples: Vec<(usize, String, String)>,
}

fn summarize(bases: &str, samples: &[Sample]) -> PlainSummary {
    let kmers = kmers_of(bases);
    let of_sample = |sample: &Sample| {
        let mut counts: Vec<u32> =
            kmers.iter().map(|(_, kmer)| sample.counts.get(kmer).copied().unwrap_or(0)).collect();
        counts.sort_unstable();
        let found = counts.iter().filter(|count| **count > 0).count();
        if counts.is_empty() {
            return (0, "NA".to_owned(), "NA".to_owned());
        }
        let middle = (u64::from(counts[(counts.len() - 1) / 2]) + u64::from(counts[counts.len() / 2])) as f64 / 2.0;
        let median = if sample.has_counts { middle.to_string() } else { "NA".to_owned() };
        (found, format!("{:.6}", found as f64 / counts.len() as f64), median)
    };
    PlainSummary { num_kmers: kmers.len(), of_samples: samples.iter().map(of_sample).collect() }
}

fn query(files: &[&Path], fasta: &Path, options: &[&str]) -> String {
    let files = files.iter().map(|file| text(file)).chain([text(fasta)]);
    run(["kmers", "query", "-q"].into_iter().chain(files).chain(options.iter().copied())).assert_success().stdout
}

/// Asserts that the output for 1, 2 and 5 threads is `expected`.
#[track_caller]
fn assert_output(files: &[&Path], fasta: &Path, options: &[&str], expected: &str) {
    for threads in ["1", "2", "5"] {
        let found = query(files, fasta, &[options, &["-t", threads]].concat());
        let mut lines = found.lines().zip(expected.lines());
        let other = lines.find(|(found, expected)| found != expected);
        assert!(found == expected, "{options:?}, {threads} threads: {other:?}");
    }
}

#[test]
fn summaries_and_matrices_are_those_of_a_plain_recomputation() {
    let inputs = inputs("summary");
    let Inputs { table, dictionary, bare, fasta, sequences, samples, .. } = &inputs;
    let plain: Vec<PlainSummary> = sequences.iter().map(|(_, bases)| summarize(bases, samples)).collect();
    let (all, mut covered) = ([table.as_path(), dictionary, bare], 0);
    let mut summary = "sequence\tlength\tkmers\tsample\tfound\tshare\tmedian\treason\n".to_owned();
    let mut of_table = summary.clone();
    for ((name, bases), plain) in sequences.iter().zip(&plain) {
        let (length, num_kmers) = (bases.len(), plain.num_kmers);
        let reason = match num_kmers {
            0 if length < K => "shorter_than_k",
            0 => "ambiguous_bases",
            _ => ".",
        };
        covered += usize::from(plain.of_samples.iter().any(|(found, ..)| *found > 0 && *found < num_kmers));
        for (column, (sample, (found, share, median))) in samples.iter().zip(&plain.of_samples).enumerate() {
            let column_name = sample.column;
            let line = format!("{name}\t{length}\t{num_kmers}\t{column_name}\t{found}\t{share}\t{median}\t{reason}\n");
            summary += &line;
            if column < 2 {
                of_table += &line;
            }
        }
    }
    assert!(covered >= 8 && plain[0].num_kmers > 1 << 18, "{covered}: too few sequences that are there in part");
    assert_output(&all, fasta, &["--summary"], &summary);
    assert_output(&[table], fasta, &["--summary", "--cache", "0"], &of_table);
    for (reason, num_lines) in [("shorter_than_k", 8), ("ambiguous_bases", 8)] {
        assert_eq!(summary.lines().filter(|line| line.ends_with(&format!("\tNA\tNA\t{reason}"))).count(), num_lines);
    }

    let matrix = |columns: std::ops::Range<usize>, cell: &dyn Fn(&(usize, String, String)) -> String| {
        let mut text = "sequence".to_owned();
        samples[columns.clone()].iter().for_each(|sample| text += &format!("\t{}", sample.column));
        for ((name, _), plain) in sequences.iter().zip(&plain) {
            text += &format!("\n{name}");
            plain.of_samples[columns.clone()].iter().for_each(|sample| text += &format!("\t{}", cell(sample)));
        }
        text + "\n"
    };
    assert_output(&all, fasta, &["--matrix", "share"], &matrix(0..4, &|(_, share, _)| share.clone()));
    assert_output(&all[..2], fasta, &["--matrix", "median"], &matrix(0..3, &|(_, _, median)| median.clone()));
    assert_output(&[dictionary], fasta, &["--matrix", "median"], &matrix(2..3, &|(_, _, median)| median.clone()));
}

#[test]
fn several_files_add_columns_to_the_line_of_a_kmer() {
    let inputs = inputs("kmer-lines");
    let Inputs { table, dictionary, bare, fasta, sequences, samples, .. } = &inputs;
    let lines = |columns: &[usize]| {
        let names: Vec<&str> = columns.iter().map(|&column| samples[column].column).collect();
        let mut text = format!("sequence\tposition\tkmer\t{}\n", names.join("\t"));
        for (name, bases) in sequences {
            for (position, kmer) in kmers_of(bases) {
                text += &format!("{name}\t{position}\t{}", &bases[position - 1..position - 1 + K]);
                for &column in columns {
                    text += &format!("\t{}", samples[column].counts.get(&kmer).copied().unwrap_or(0));
                }
                text.push('\n');
            }
        }
        text
    };
    assert_output(&[dictionary], fasta, &[], &lines(&[2]));
    assert_output(&[dictionary, table, bare], fasta, &["--cache", "1M"], &lines(&[2, 0, 1, 3]));

    // Samples of the same name get the name of their file.
    let copy = inputs.folder.join("copy.gkt");
    fs::copy(table, &copy).expect("a copy");
    let header = query(&[table, &copy, dictionary], fasta, &["--matrix", "share"]);
    assert_eq!(header.lines().next(), Some("sequence\tt.one\tt.two\tcopy.one\tcopy.two\tthree"));
}

#[test]
fn empty_sequences_are_listed() {
    let inputs = inputs("empty");
    let fasta = inputs.folder.join("empty.fa");
    fs::write(&fasta, format!(">none\n>some\n{}\n>end\n", &inputs.sequences[2].1)).expect("written");
    let expected = format!(
        "sequence\tlength\tkmers\tsample\tfound\tshare\tmedian\treason\n\
         none\t0\t0\tthree\t0\tNA\tNA\tshorter_than_k\n\
         some\t{K}\t1\tthree\t1\t1.000000\t1\t.\n\
         end\t0\t0\tthree\t0\tNA\tNA\tshorter_than_k\n"
    );
    assert_output(&[&inputs.dictionary], &fasta, &["--summary"], &expected);
}

#[test]
fn queries_that_make_no_sense_are_refused() {
    let inputs = inputs("refused");
    let Inputs { folder, table, dictionary, bare, fasta, .. } = &inputs;
    let other = folder.join("k24.gkt");
    run(["kmers", "count", "-q", "-k", "24", text(&folder.join("c.fq")), "-o", text(&other)]).assert_success();
    let (t, d, b, k24, f) = (text(table), text(dictionary), text(bare), text(&other), text(fasta));
    assert_refused(&["kmers", "query", t, k24, f], 2, &["k24.gkt: has 24-mers", "t.gkt has 31-mers"]);
    assert_refused(&["kmers", "query", t, d], 2, &["no sequences", "c.gkd"]);
    assert_refused(&["kmers", "query", t, t, f], 2, &["two columns", "t.one"]);
    assert_refused(&["kmers", "query", t, b, f, "--matrix", "median"], 2, &["bare.gkd: has no counts"]);
    assert_refused(&["kmers", "query", t, f, "--matrix", "share", "--summary"], 2, &["--matrix", "--summary"]);
    assert_refused(&["kmers", "query", d, b, f, "--cache", "1M"], 2, &["c.gkd", "--cache"]);
    assert_refused(&["kmers", "query", t, "no.gkd", f], 1, &["no.gkd", "cannot open"]);
    fs::write(&other, "no table").expect("written");
    assert_refused(&["kmers", "query", t, k24, f], 1, &["k24.gkt", "not a genuma table"]);
}
