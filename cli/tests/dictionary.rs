//! `genuma kmers compact`, and `genuma kmers query` of dictionaries: the same output as from the table, and strings in
//! FASTA that have the same k-mers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{names, run, scratch, text};

/// A number that looks random.
fn mix(seed: u64) -> u64 {
    let word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A sequence that looks random.
pub fn sequence(seed: u64, length: u64) -> String {
    (0..length).map(|i| char::from(b"ACGT"[(mix((seed << 32) | i) >> 30) as usize & 3])).collect()
}

/// FASTQ of reads of 100 bases, every fifth with another base in the middle.
fn reads(genome: &str, seed: u64, num_reads: u64) -> String {
    let read = |i: u64| {
        let start = (mix((seed << 32) + i) >> 20) as usize % (genome.len() - 100);
        let mut bases = genome[start..start + 100].to_owned();
        if i.is_multiple_of(5) {
            bases.replace_range(50..51, "A");
        }
        format!("@r{i}\n{bases}\n+\n{}\n", "I".repeat(100))
    };
    (0..num_reads).map(read).collect()
}

/// A table of two samples, and sequences to look up: some of the genome on both strands, others of which no k-mer is
/// there.
pub fn table_and_sequences(folder: &Path, k: &str) -> (PathBuf, PathBuf) {
    let genome = sequence(1, 6000) + &"CAG".repeat(60) + &"A".repeat(90) + &"ACGT".repeat(30);
    let [a, b, table, fasta] = ["a.fq", "b.fq", "t.gkt", "s.fa"].map(|name| folder.join(name));
    fs::write(&a, reads(&genome, 2, 900)).expect("written");
    fs::write(&b, reads(&genome, 3, 400)).expect("written");
    let reverse: String =
        genome[500..1500].chars().rev().map(|base| char::from(b"TGCA"["ACGT".find(base).expect("a base")])).collect();
    let with_n = format!("{}N{}", &genome[100..300], &genome[301..500]);
    let sequences = [genome.clone(), reverse, with_n, sequence(9, 500), reads(&genome, 4, 1)[4..104].to_owned()];
    let fasta_text: String = sequences.iter().enumerate().map(|(i, bases)| format!(">s{i}\n{bases}\n")).collect();
    fs::write(&fasta, fasta_text).expect("written");
    let [a, b] = [format!("one={}", text(&a)), format!("two={}", text(&b))];
    run(["kmers", "count", "-q", "-k", k, "--min-count", "2", "--sample", &a, "--sample", &b, "-o", text(&table)])
        .assert_success();
    (table, fasta)
}

#[test]
fn queries_of_both_forms_give_the_same() {
    for k in ["31", "24"] {
        let folder = scratch(&format!("dictionary-{k}"));
        let (table, fasta) = table_and_sequences(&folder, k);
        let [dictionary, bare] = ["t.gkd", "bare.gkd"].map(|name| folder.join(name));
        run(["kmers", "compact", "-q", text(&table), "-o", text(&dictionary)]).assert_success();
        run(["kmers", "compact", "-q", text(&table), "--no-counts", "-o", text(&bare)]).assert_success();
        let query = |form: &Path| run(["kmers", "query", "-q", text(form), text(&fasta)]).assert_success().stdout;
        let expected = query(&table);
        let found = expected.lines().skip(1).filter(|line| !line.ends_with("\t0\t0")).count();
        assert!(found > 6000 && expected.lines().count() > found + 400, "{found} k-mers found");
        assert!(query(&dictionary) == expected, "the dictionary answers otherwise");
        let presence: String = expected
            .lines()
            .map(|line| {
                let fields: Vec<&str> = line.split('\t').collect();
                let last = match fields[3..] {
                    ["one", "two"] => "present",
                    ["0", "0"] => "0",
                    _ => "1",
                };
                format!("{}\t{last}\n", fields[..3].join("\t"))
            })
            .collect();
        assert!(query(&bare) == presence, "the dictionary without counts answers otherwise");
        let [bytes, bare_bytes] = [&dictionary, &bare].map(|path| fs::metadata(path).expect("a file").len());
        assert!(bare_bytes < bytes && bytes < fs::metadata(&table).expect("a file").len());

        let info = |form: &Path| run(["kmers", "info", text(form)]).assert_success().stdout;
        let (of_table, of_dictionary) = (info(&table), info(&dictionary));
        let is_shared = |line: &&str| !line.starts_with("hot_kmers") && !line.starts_with("bytes");
        of_table.lines().filter(is_shared).for_each(|line| assert!(of_dictionary.contains(line), "{line}"));
        assert!(of_dictionary.contains("has_counts\tyes\n") && info(&bare).contains("has_counts\tno\n"));
    }
}

/// The k-mers of a table with their counts.
pub fn counts_of_table(table: &Path) -> BTreeMap<String, Vec<u32>> {
    let tsv = table.with_extension("tsv");
    run(["kmers", "filter", "-q", text(table), "-o", text(&tsv)]).assert_success();
    let lines = fs::read_to_string(&tsv).expect("text");
    fs::remove_file(&tsv).expect("removed");
    let entry = |line: &str| {
        let (kmer, counts) = line.split_once('\t').expect("a k-mer and its counts");
        (kmer.to_owned(), counts.split('\t').map(|count| count.parse().expect("a count")).collect())
    };
    lines.lines().skip(1).map(entry).collect()
}

/// FASTQ of FASTA whose sequences are one line each.
pub fn fastq_of_fasta(fasta: &str) -> String {
    let lines: Vec<&str> = fasta.lines().collect();
    let record = |record: &[&str]| format!("@{}\n{}\n+\n{}\n", &record[0][1..], record[1], "I".repeat(record[1].len()));
    lines.chunks(2).map(record).collect()
}

/// The alphabetically smaller of a k-mer and its reverse complement.
pub fn canonical(kmer: &str) -> String {
    let complement = |base| char::from(b"TGCA"["ACGT".find(base).expect("a base")]);
    let reverse: String = kmer.chars().rev().map(complement).collect();
    reverse.min(kmer.to_owned())
}

#[test]
fn strings_in_fasta_have_the_kmers_and_their_counts() {
    for k in ["31", "24"] {
        let folder = scratch(&format!("fasta-{k}"));
        let (table, _) = table_and_sequences(&folder, k);
        let [dictionary, bare] = ["t.gkd", "bare.gkd"].map(|name| folder.join(name));
        run(["kmers", "compact", "-q", text(&table), "-o", text(&dictionary)]).assert_success();
        run(["kmers", "compact", "-q", text(&table), "--no-counts", "-o", text(&bare)]).assert_success();
        let fasta = |input: &Path, name: &str, options: &[&str]| {
            let out = folder.join(name);
            let args = ["kmers", "compact", "-q", text(input), "-o", text(&out)];
            run(args.iter().chain(options)).assert_success();
            fs::read_to_string(&out).expect("FASTA")
        };
        let strings = fasta(&dictionary, "a.fa", &[]);
        assert!(fasta(&table, "b.fasta", &[]) == strings, "the strings of the table differ");

        // Headers and k-mers are those of a plain recomputation.
        let counts = counts_of_table(&table);
        let length: usize = k.parse().expect("a number");
        let lines: Vec<&str> = strings.lines().collect();
        let expected = |format_counts: &dyn Fn(&[&Vec<u32>]) -> String| -> String {
            let record = |(id, record): (usize, &[&str])| {
                let bases = record[1];
                let rows: Vec<&Vec<u32>> =
                    (0..=bases.len() - length).map(|i| &counts[&canonical(&bases[i..i + length])]).collect();
                format!(">{id} LN:i:{}{} tp:Z:simplitig\n{bases}\n", bases.len(), format_counts(&rows))
            };
            lines.chunks(2).enumerate().map(record).collect()
        };
        let sum_and_mean = |rows: &[&Vec<u32>], samples: std::ops::Range<usize>| {
            let sum: u32 = rows.iter().map(|row| row[samples.clone()].iter().sum::<u32>()).sum();
            format!(" KC:i:{sum} km:f:{:.1}", f64::from(sum) / rows.len() as f64)
        };
        assert!(strings == expected(&|rows| sum_and_mean(rows, 0..2)), "headers of both samples");
        let of_second = fasta(&dictionary, "two.fa", &["--sample", "two,two"]);
        assert!(of_second == expected(&|rows| sum_and_mean(rows, 1..2)), "headers of the second sample");
        let without = fasta(&bare, "bare.fa", &[]);
        assert!(without == expected(&|_| String::new()), "headers without counts");
        assert!(fasta(&dictionary, "no.fa", &["--no-counts"]) == without);
        assert!(fasta(&table, "no.fasta", &["--no-counts"]) == without);
        assert_refused(
            &["kmers", "compact", text(&bare), "-o", text(&folder.join("x.fa")), "--sample", "one"],
            2,
            &["bare.gkd has no counts"],
        );
        let info = run(["kmers", "info", text(&dictionary)]).assert_success().stdout;
        assert!(info.contains(&format!("strings\t{}\n", lines.len() / 2)), "{info}");

        // Counting the strings, as reads, gives each k-mer of the table, once.
        let [back, reads] = ["back.gkt", "a.fq"].map(|name| folder.join(name));
        fs::write(&reads, fastq_of_fasta(&strings)).expect("written");
        let count = ["kmers", "count", "-q", "-k", k, "--min-count", "1", "-o", text(&back)];
        run(count.iter().copied().chain([text(&reads)])).assert_success();
        let found = counts_of_table(&back);
        assert!(found.len() > 6000 && found.keys().eq(counts.keys()), "the strings have other k-mers");
        assert!(found.values().all(|row| *row == [1]), "a k-mer is in the strings twice");
    }
}

/// Asserts that a run exits with `code` and one error line that contains all of `parts`.
#[track_caller]
pub fn assert_refused(args: &[&str], code: i32, parts: &[&str]) {
    let ended = run(args);
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    let errors: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("error: ")).collect();
    assert_eq!(errors.len(), 1, "{}", ended.stderr);
    parts.iter().for_each(|part| assert!(errors[0].contains(part), "'{part}' is not in: {}", errors[0]));
}

#[test]
fn faults_of_dictionaries_give_one_error_and_leave_nothing() {
    let folder = scratch("dictionary-faults");
    let (table, fasta) = table_and_sequences(&folder, "31");
    let [dictionary, other] = ["t.gkd", "x.gkd"].map(|name| folder.join(name));
    let (t, d, x, s) = (text(&table), text(&dictionary), text(&other), text(&fasta));
    run(["kmers", "compact", "-q", t, "-o", d]).assert_success();
    let before = names(&folder);
    assert_refused(&["kmers", "compact", t, "-o", "x.gkt"], 2, &["x.gkt", ".gkd"]);
    assert_refused(&["kmers", "compact", t, "-o", x, "--memory", "50M"], 2, &["too little", "t.gkt", "raise --memory"]);
    assert_refused(&["kmers", "compact", t, "-o", "/no/such/x.gkd"], 2, &["/no/such: is not a folder"]);
    assert_refused(&["kmers", "compact", s, "-o", x], 1, &["s.fa", "not a genuma table"]);
    assert_refused(&["kmers", "compact", d, "-o", d], 2, &["t.gkd", "is a dictionary already", "-o x.fa"]);
    let fasta = folder.join("x.fa");
    let f = text(&fasta);
    assert_refused(&["kmers", "compact", s, "-o", s], 1, &["s.fa", "not a genuma table"]);
    assert_refused(
        &["kmers", "compact", d, "-o", f, "--sample", "three"],
        2,
        &["t.gkd", "no sample three", "one, two"],
    );
    assert_refused(&["kmers", "compact", t, "-o", f, "--sample", "three"], 2, &["t.gkt", "no sample three"]);
    assert_refused(&["kmers", "compact", t, "-o", x, "--sample", "one"], 2, &["--sample", "FASTA"]);
    assert_refused(&["kmers", "compact", d, "-o", f, "--memory", "40M"], 2, &["too little", "t.gkd", "raise --memory"]);
    assert_refused(&["kmers", "compact", t, "-o", "x.fa.gz"], 2, &["x.fa.gz", ".gkd", ".fasta"]);
    assert_refused(&["kmers", "query", d, s, "--cache", "1M"], 2, &["t.gkd", "--cache"]);
    assert_refused(&["kmers", "query", x, s], 1, &["x.gkd", "cannot open"]);
    assert_eq!(names(&folder), before);

    let whole = fs::read(&dictionary).expect("a file");
    let mut damaged = whole.clone();
    damaged[5000] ^= 1;
    fs::write(&dictionary, damaged).expect("written");
    assert_refused(&["kmers", "query", d, s], 1, &["t.gkd", "bases damaged", "kmers compact"]);
    assert_refused(&["kmers", "info", d], 1, &["t.gkd", "bases damaged"]);
    assert_refused(&["kmers", "compact", d, "-o", f], 1, &["t.gkd", "bases damaged"]);
    fs::write(&dictionary, &whole[..whole.len() - 8]).expect("written");
    assert_refused(&["kmers", "query", d, s], 1, &["t.gkd", "bytes instead of"]);
    let mut newer = whole;
    newer[8] = 9;
    fs::write(&dictionary, newer).expect("written");
    assert_refused(&["kmers", "query", d, s], 1, &["t.gkd", "version 9"]);
}
