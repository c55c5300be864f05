//! `genuma kmers`: results compared with the same operations on text, and with KMC.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use genuma_flash::{EntryBatch, PageEncoding, TablePageReader, TableSpec, TableWriter};

use crate::common::{installed, names, run, scratch, text};

/// Counts of each k-mer, by sample.
type Counts = BTreeMap<String, Vec<u32>>;

/// FASTQ of `reads` reads of one genome of `length` bases. `seed` selects other reads.
fn fastq(length: usize, seed: u64, reads: usize) -> String {
    let mut state = 7u64;
    let below = |state: &mut u64, n: usize| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % n
    };
    let genome: Vec<u8> = (0..length).map(|_| b"ACGT"[below(&mut state, 4)]).collect();
    state ^= seed << 40;
    let mut below = |n: usize| below(&mut state, n);
    let mut read = |i: usize| {
        let at = below(length - 100);
        let mut seq = genome[at..at + 100].to_vec();
        if below(2) == 0 {
            seq[below(100)] = b"ACGT"[below(4)];
        }
        format!("@r{i}\n{}\n+\n{}\n", String::from_utf8(seq).expect("ASCII"), "I".repeat(100))
    };
    (0..reads).map(&mut read).collect()
}

/// Counts reads into a table.
fn count(folder: &Path, name: &str, reads: &str, options: &[&str]) -> PathBuf {
    let (file, table) = (folder.join(format!("{name}.fq")), folder.join(format!("{name}.gkt")));
    fs::write(&file, reads).expect("written");
    run(["kmers", "count", "-q", text(&file), "-o", text(&table)].iter().chain(options)).assert_success();
    table
}

/// The counts in a table's text.
fn parsed(tsv: &str) -> Counts {
    let row = |line: &str| {
        let mut words = line.split('\t');
        let kmer = words.next().expect("a k-mer").to_owned();
        (kmer, words.map(|n| n.parse().expect("a number")).collect())
    };
    let rows: Vec<(String, Vec<u32>)> = tsv.lines().skip(1).map(row).collect();
    assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
    rows.into_iter().collect()
}

fn counts_of(table: &Path) -> Counts {
    let tsv = table.with_extension("dump.tsv");
    run(["kmers", "filter", "-q", text(table), "-o", text(&tsv)]).assert_success();
    parsed(&fs::read_to_string(tsv).expect("text"))
}

/// Applies the operation `what` to tables; asserts that table and text have the same counts, and returns them.
fn made(folder: &Path, what: &[&str], tables: &[&Path]) -> Counts {
    let (gkt, tsv) = (folder.join("made.gkt"), folder.join("made.tsv"));
    for out in [&gkt, &tsv] {
        let tables = tables.iter().map(|table| text(table));
        let args = ["kmers"].into_iter().chain(what.iter().copied()).chain(tables);
        run(args.chain(["-q", "-o", text(out)])).assert_success();
    }
    let told = parsed(&fs::read_to_string(tsv).expect("text"));
    assert_eq!(counts_of(&gkt), told, "{what:?}");
    told
}

/// The expected counts, computed from the inputs; each table has one sample.
fn expected(tables: &[&Counts], of: impl Fn(&[u32]) -> Option<Vec<u32>>) -> Counts {
    let mut kmers: Vec<&String> = tables.iter().flat_map(|table| table.keys()).collect();
    kmers.sort();
    kmers.dedup();
    let row = |kmer: &String| -> Vec<u32> {
        tables.iter().map(|table| table.get(kmer).map_or(0, |counts| counts[0])).collect()
    };
    kmers.into_iter().filter_map(|kmer| of(&row(kmer)).map(|counts| (kmer.clone(), counts))).collect()
}

#[test]
fn tables_are_combined_as_their_texts_would_be() {
    let folder = scratch("combined");
    let all: Vec<PathBuf> =
        (0..4).map(|i| count(&folder, &format!("t{i}"), &fastq(8000, i, 250), &["--min-count", "1"])).collect();
    let counts: Vec<Counts> = all.iter().map(|table| counts_of(table)).collect();
    assert!(counts.iter().all(|counts| counts.len() > 5000));
    for n in [2, 3, 4] {
        let (paths, counts): (Vec<&Path>, Vec<&Counts>) =
            (all[..n].iter().map(PathBuf::as_path).collect(), counts[..n].iter().collect());
        let check = |what: &[&str], of: &dyn Fn(&[u32]) -> Option<u32>| {
            let expected = expected(&counts, |row| of(row).filter(|&n| n > 0).map(|n| vec![n]));
            assert!(expected.len() > 100, "{what:?}: too few to say anything");
            let made = made(&folder, what, &paths);
            assert!(made == expected, "{n} tables, {what:?}: {} and {}", made.len(), expected.len());
        };
        let there = |row: &[u32]| row.iter().copied().filter(|&n| n > 0).collect::<Vec<_>>();
        let in_all = |row: &[u32]| row.iter().all(|&n| n > 0);
        check(&["union"], &|row| Some(row.iter().sum()));
        check(&["union", "--counts", "max"], &|row| row.iter().max().copied());
        check(&["union", "--counts", "min"], &|row| there(row).iter().min().copied());
        check(&["union", "--counts", "first"], &|row| there(row).first().copied());
        check(&["union", "--counts", "last"], &|row| there(row).last().copied());
        check(&["union", "--counts", "samples"], &|row| Some(there(row).len() as u32));
        check(&["union", "--counts", "samples", "--least", "3", "--min", "2"], &|row| {
            let samples = row.iter().filter(|&&n| n >= 3).count() as u32;
            (samples >= 2).then_some(samples)
        });
        check(&["union", "--most", "6", "--max", "9"], &|row| {
            let sum = row.iter().filter(|&&n| n <= 6).sum();
            (sum <= 9).then_some(sum)
        });
        check(&["intersect"], &|row| in_all(row).then(|| *row.iter().min().unwrap_or(&0)));
        check(&["intersect", "--counts", "sum"], &|row| in_all(row).then(|| row.iter().sum()));
        check(&["intersect", "--counts", "first"], &|row| in_all(row).then(|| row[0]));
        check(&["intersect", "--counts", "last", "--least", "2"], &|row| {
            row.iter().all(|&n| n >= 2).then(|| row[row.len() - 1])
        });
        check(&["subtract"], &|row| row[1..].iter().all(|&n| n == 0).then(|| row[0]));
        check(&["subtract", "--least", "2"], &|row| {
            row[1..].iter().all(|&n| n < 2).then(|| if row[0] < 2 { 0 } else { row[0] })
        });
        check(&["subtract", "--counts", "difference"], &|row| Some(row[0].saturating_sub(row[1..].iter().sum())));
        let columns = expected(&counts, |row| Some(row.to_vec()));
        assert!(made(&folder, &["union", "--counts", "columns"], &paths) == columns);
    }
    // No temporary files are left.
    assert!(names(&folder).iter().all(|name| !name.starts_with('.')), "{:?}", names(&folder));
}

#[test]
fn samples_are_kept_apart() {
    let folder = scratch("samples");
    let reads = [0, 1, 2].map(|seed| fastq(4000, seed, 300));
    let files = [0, 1, 2].map(|i| {
        let file = folder.join(format!("{i}.fq"));
        fs::write(&file, &reads[i]).expect("written");
        text(&file).to_owned()
    });
    let pair = |name: &str, a: usize, b: usize| {
        let table = folder.join(name);
        run(["kmers", "count", "-q", "--normal", &files[a], "--tumor", &files[b], "-o", text(&table)]).assert_success();
        table
    };
    let (x, y) = (pair("x.gkt", 0, 1), pair("y.gkt", 1, 2));
    let (in_x, in_y) = (counts_of(&x), counts_of(&y));
    let both = |kmer: &String| {
        let of = |counts: &Counts| counts.get(kmer).cloned().unwrap_or_else(|| vec![0, 0]);
        [of(&in_x), of(&in_y)].concat()
    };
    let kmers: std::collections::BTreeSet<&String> = in_x.keys().chain(in_y.keys()).collect();
    let by = |of: &dyn Fn(Vec<u32>) -> Vec<u32>| -> Counts {
        kmers.iter().map(|&kmer| (kmer.clone(), of(both(kmer)))).collect()
    };
    let tables = [x.as_path(), y.as_path()];
    assert!(made(&folder, &["union"], &tables) == by(&|row| vec![row[0] + row[2], row[1] + row[3]]));
    let samples = by(&|row| vec![row.iter().filter(|&&n| n >= 2).count() as u32]);
    let samples: Counts = samples.into_iter().filter(|(_, counts)| counts[0] > 0).collect();
    assert!(made(&folder, &["union", "--counts", "samples", "--least", "2"], &tables) == samples);
    let panel = folder.join("panel.gkt");
    fs::rename(folder.join("made.gkt"), &panel).expect("renamed");
    let told = run(["kmers", "info", text(&panel)]).assert_success().stdout;
    for line in ["k\t31", "samples\tsamples", "counts\tsamples", "of_tables\t2", "of_samples\t4", "made_by\tunion"] {
        assert!(told.lines().any(|told| told == line), "{line}: {told}");
    }
    // The sum of two panels is a panel.
    made(&folder, &["union"], &[&panel, &panel]);
    assert!(run(["kmers", "info", text(&folder.join("made.gkt"))]).assert_success().stdout.contains("of_samples\t8"));

    let columns = made(&folder, &["union", "--counts", "columns"], &tables);
    assert!(columns == by(&|row| row));
    let header = fs::read_to_string(folder.join("made.tsv")).expect("text");
    assert_eq!(header.lines().next(), Some("kmer\tx.normal\tx.tumor\ty.normal\ty.tumor"));

    let filtered = |options: &[&str]| {
        let out = folder.join("filtered.gkt");
        run(["kmers", "filter", "-q", text(&x), "-o", text(&out)].iter().chain(options)).assert_success();
        counts_of(&out)
    };
    let kept = |of: &dyn Fn(&[u32]) -> bool| -> Counts {
        in_x.iter().filter(|(_, counts)| of(counts)).map(|(k, c)| (k.clone(), c.clone())).collect()
    };
    let tumour = filtered(&["--sample", "tumor", "--min", "3", "--max", "8"]);
    assert!(tumour.len() > 100 && tumour == kept(&|counts| (3..=8).contains(&counts[1])));
    assert!(filtered(&["--min", "9"]) == kept(&|counts| counts[0] + counts[1] >= 9));
    assert!(filtered(&[]) == in_x);
}

#[test]
fn threads_and_memory_do_not_show() {
    let folder = scratch("same");
    // Enough k-mers that the size of the result is estimated, and k-mer ranges have several pages.
    let all: Vec<PathBuf> =
        (0..3).map(|i| count(&folder, &format!("t{i}"), &fastq(900_000, i, 9000), &["--min-count", "1"])).collect();
    let tables: Vec<&str> = all.iter().map(|table| text(table)).collect();
    for what in [&["union", "--counts", "samples"][..], &["subtract"]] {
        let mut made = Vec::new();
        for means in [&["-t", "1", "--memory", "80M"][..], &["-t", "4"], &["-t", "2", "--memory", "1G"]] {
            let out = folder.join("out.gkt");
            let ends = ["-q", "-o", text(&out)];
            run(["kmers"].iter().chain(what).chain(&tables).chain(&ends).chain(means)).assert_success();
            made.push(fs::read(out).expect("a table"));
        }
        assert!(made[0].len() > 1 << 20);
        assert!(made.windows(2).all(|two| two[0] == two[1]), "{what:?}");
    }
    // Lookups find every k-mer: the filter contains all of them.
    let out = folder.join("panel.gkt");
    run(["kmers", "union", "--counts", "samples", "-q", "-o", text(&out)].iter().chain(&tables)).assert_success();
    let fasta = folder.join("reads.fa");
    let reads = fs::read_to_string(folder.join("t1.fq")).expect("reads");
    let seqs = reads.lines().skip(1).step_by(4).take(2000);
    fs::write(&fasta, seqs.map(|seq| format!(">s\n{seq}\n")).collect::<String>()).expect("written");
    let answers = run(["kmers", "query", text(&out), text(&fasta)]).assert_success().stdout;
    let counts: Vec<u32> =
        answers.lines().skip(1).map(|l| l.rsplit('\t').next().expect("a count").parse().expect("a number")).collect();
    assert_eq!(counts.len(), 2000 * 70);
    assert!(counts.iter().all(|n| (1..=3).contains(n)));
}

/// Rewrites a table with a fixed layout: version 2.
fn in_version_2(table: &Path) -> PathBuf {
    let path = table.with_extension("v2.gkt");
    let scan = TablePageReader::open(table).expect("a table");
    let spec = TableSpec {
        encoding: PageEncoding::Fixed,
        note: scan.note().to_vec(),
        ..TableSpec::new(scan.value_bytes(), scan.len())
    };
    let mut writer = TableWriter::create(&path, spec).expect("a table");
    let (mut batch, mut walk) = (EntryBatch::<u8>::default(), scan.new_entry_batch_reader(100).expect("memory"));
    loop {
        walk.read_next_batch(&mut batch).expect("entries");
        if batch.keys.is_empty() {
            break;
        }
        writer.push_entries(&batch.keys, &batch.values, |_| 0).expect("written");
    }
    writer.finish_and_publish().expect("written");
    path
}

#[test]
fn tables_of_version_2_are_read() {
    let folder = scratch("version-2");
    let [a, b] = [0, 1].map(|i| count(&folder, &format!("t{i}"), &fastq(60_000, i, 9000), &["--min-count", "1"]));
    let old = [&a, &b].map(|table| in_version_2(table));
    let version = |table: &Path| fs::read(table).expect("a table")[8];
    assert_eq!([&a, &old[0]].map(|table| version(table)), [3, 2]);
    let bytes = |table: &Path| fs::metadata(table).expect("a table").len();
    assert!(bytes(&a) * 10 < bytes(&old[0]) * 6, "{} and {} bytes", bytes(&a), bytes(&old[0]));
    let (fasta, out) = (folder.join("reads.fq"), folder.join("out.gkt"));
    fs::write(&fasta, fastq(60_000, 5, 300)).expect("written");
    for what in [&["union"][..], &["intersect", "--counts", "columns", "--names", "x,y"], &["subtract"]] {
        let made = [[&a, &b], [&old[0], &b], [&a, &old[1]], [&old[0], &old[1]]].map(|tables| {
            let tables = tables.map(|table| text(table));
            run(["kmers"].iter().chain(what).chain(&tables).chain(&["-q", "-o", text(&out)])).assert_success();
            assert_eq!(version(&out), 3);
            fs::read(&out).expect("a table")
        });
        assert!(made.windows(2).all(|two| two[0] == two[1]), "{what:?}");
    }
    let answers = [&a, &old[0]].map(|table| run(["kmers", "query", text(table), text(&fasta)]).assert_success().stdout);
    assert!(answers[0] == answers[1] && answers[0].lines().count() > 10_000);
}

/// `n` reads of 31 bases, each one k-mer, with the given begin and end.
fn single(n: usize, begin: &str, end: &str) -> String {
    let mut state = 11u64;
    let mut base = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"ACGT"[(state >> 62) as usize])
    };
    let mut read = |i: usize| {
        let inside: String = (begin.len() + end.len()..31).map(|_| base()).collect();
        format!("@r{i}\n{begin}{inside}{end}\n+\n{}\n", "I".repeat(31))
    };
    (0..n).map(&mut read).collect()
}

/// Tables without k-mers, with one k-mer, with disjoint ranges and with nested ranges give the expected counts, and
/// the same bytes with any number of threads.
#[test]
fn tables_of_any_size_and_place_by_any_threads() {
    let folder = scratch("places");
    let table = |name: &str, reads: &str, least: &str| count(&folder, name, reads, &["--min-count", least]);
    // Canonical k-mers begin with A, or with C as their other strand does.
    let all = [
        table("empty", &single(5, "AAAA", "C"), "9"),
        table("one", &single(1, "ACAC", "C"), "1"),
        table("low", &single(9_000, "AAAA", "C"), "1"),
        table("high", &single(20_000, "C", "G"), "1"),
        table("all", &(fastq(30_000, 3, 600) + &single(3_000, "AAAA", "C") + &single(1, "ACAC", "C")), "1"),
    ];
    let counts: Vec<Counts> = all.iter().map(|table| counts_of(table)).collect();
    assert!(counts[0].is_empty() && counts[1].len() == 1 && counts[2].len() > 8_000);
    assert!(counts[2].keys().next_back() < counts[3].keys().next(), "one range lies before the other");
    type Rule = fn(&[u32]) -> Option<Vec<u32>>;
    let rules: [(&str, Rule); 3] = [
        ("union", |row| Some(vec![row.iter().sum()])),
        ("intersect", |row| row.iter().all(|&n| n > 0).then(|| vec![*row.iter().min().unwrap_or(&0)])),
        ("subtract", |row| (row[0] > 0 && row[1..].iter().all(|&n| n == 0)).then(|| vec![row[0]])),
    ];
    let sets: [&[usize]; 8] = [&[0, 0], &[0, 1], &[1, 0], &[2, 3], &[3, 2], &[4, 2], &[1, 4], &[4, 1, 3, 0, 2]];
    for set in sets {
        let (tables, of): (Vec<&str>, Vec<&Counts>) = set.iter().map(|&i| (text(&all[i]), &counts[i])).collect();
        for (what, rule) in rules {
            let out = folder.join("out.gkt");
            let bytes: Vec<Vec<u8>> = ["1", "2", "3", "4", "5"]
                .iter()
                .map(|threads| {
                    let ends = ["-q", "-t", threads, "-o", text(&out)];
                    run(["kmers", what].iter().chain(&tables).chain(&ends)).assert_success();
                    fs::read(&out).expect("a table")
                })
                .collect();
            assert!(bytes.windows(2).all(|two| two[0] == two[1]), "{what} of {set:?}");
            assert!(counts_of(&out) == expected(&of, rule), "{what} of {set:?}");
        }
    }
}

#[test]
fn a_table_and_itself() {
    let folder = scratch("itself");
    let table = count(&folder, "t", &fastq(4000, 0, 300), &[]);
    let own = counts_of(&table);
    let twice = [table.as_path(), table.as_path()];
    assert!(made(&folder, &["union", "--counts", "max"], &twice) == own);
    assert!(made(&folder, &["intersect"], &twice) == own);
    assert!(made(&folder, &["subtract"], &twice).is_empty());
    let nothing = folder.join("made.gkt");
    assert!(made(&folder, &["union"], &[&table]) == own);
    // Empty tables can be combined too.
    run(["kmers", "subtract", text(&table), text(&table), "-q", "-o", text(&folder.join("none.gkt"))]).assert_success();
    let none = folder.join("none.gkt");
    assert!(made(&folder, &["union"], &[&none, &table]) == own);
    assert!(made(&folder, &["intersect"], &[&none, &table]).is_empty());
    assert!(made(&folder, &["union"], &[&none, &none, &none]).is_empty());
    // The same k-mers give the same file, except the note, whichever command made it.
    run(["kmers", "filter", text(&table), "-q", "-o", text(&nothing)]).assert_success();
    assert!(fs::read(&nothing).expect("a table") == fs::read(&table).expect("a table"));
}

/// Asserts that a run exits with `code` and one error line that contains all of `parts`.
#[track_caller]
fn refused(args: &[&str], code: i32, parts: &[&str]) {
    let ended = run(args);
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    let errors: Vec<&str> = ended.stderr.lines().filter(|l| l.contains("error: ")).collect();
    assert_eq!(errors.len(), 1, "{}", ended.stderr);
    parts.iter().for_each(|part| assert!(errors[0].contains(part), "'{part}' is not in: {}", errors[0]));
}

#[test]
fn faults_are_told_and_leave_nothing() {
    let folder = scratch("faults");
    let reads = fastq(4000, 0, 300);
    let a = count(&folder, "a", &reads, &[]);
    let b = count(&folder, "b", &reads, &["-k", "24"]);
    let c = count(&folder, "c", &reads, &["--min-count", "3"]);
    let fq = folder.join("a.fq");
    let before = names(&folder);
    let out = folder.join("x.gkt");
    let (a, b, c, x) = (text(&a), text(&b), text(&c), text(&out));
    refused(&["kmers", "union", a, b, "-o", x], 2, &["b.gkt", "24-mers", "a.gkt", "31-mers"]);
    refused(&["kmers", "subtract", a, "-o", x], 2, &["two tables"]);
    refused(&["kmers", "union", a, c, "--counts", "difference", "-o", x], 2, &["'difference'", "--counts"]);
    refused(&["kmers", "subtract", a, c, "--counts", "sum", "-o", x], 2, &["'sum'", "--counts"]);
    refused(&["kmers", "union", a, a, "--counts", "columns", "-o", x], 2, &["two samples", "named a", "--names"]);
    refused(&["kmers", "union", a, c, "--names", "s,t", "-o", x], 2, &["2 names for 1 sample"]);
    refused(&["kmers", "union", a, c, "--counts", "columns", "--names", "s,s", "-o", x], 2, &["named s"]);
    refused(&["kmers", "union", a, c, "-o", "x.kmc"], 2, &[".gkt or .tsv"]);
    refused(&["kmers", "union", a, c, "-o", c], 2, &["c.gkt", "is also an input"]);
    refused(&["kmers", "union", a, c, "-o", x, "--memory", "1M"], 2, &["too little", "raise --memory"]);
    refused(&["kmers", "union", a, c, "-o", x, "--min", "5", "--max", "4"], 2, &["--max 4", "--min 5"]);
    refused(&["kmers", "union", a, text(&fq), "-o", x], 1, &["a.fq", "not a genuma table"]);
    refused(&["kmers", "union", a, x, "-o", text(&folder.join("y.gkt"))], 1, &["x.gkt", "cannot open"]);
    refused(&["kmers", "filter", a, "--sample", "tumor", "-o", x], 2, &["no sample tumor", "reads"]);
    refused(&["kmers", "union", a, c, "-o", "/no/such/x.gkt"], 2, &["/no/such: is not a folder"]);
    refused(&["kmers", "info", text(&fq)], 1, &["a.fq", "not a genuma table"]);
    let nine: Vec<&str> = ["kmers", "union", "--counts", "columns", "-o", x].into_iter().chain([a; 9]).collect();
    refused(&nine, 2, &["9 samples", "at most 8"]);
    // Only a warning reports different minimum counts.
    let told = run(["kmers", "union", a, c, "-o", x]).assert_success().stderr;
    assert!(told.contains("--min-count") && told.contains("2 and 3"), "{told}");
    fs::remove_file(&out).expect("removed");

    let mut table = fs::read(a).expect("a table");
    let whole = table.clone();
    table[4096 + 40] ^= 1;
    fs::write(a, &table).expect("written");
    refused(&["kmers", "union", a, c, "-o", x], 1, &["a.gkt", "page 1 damaged"]);
    refused(&["kmers", "filter", a, "-o", text(&folder.join("x.tsv"))], 1, &["a.gkt", "page 1 damaged"]);
    fs::write(a, &whole[..whole.len() - 4096]).expect("written");
    refused(&["kmers", "union", a, c, "-o", x], 1, &["a.gkt", "bytes instead of"]);
    assert_eq!(names(&folder), before);
}

/// The result of KMC for two databases: `simple a OPTIONS b OPTIONS what out`.
fn kmc_result(folder: &Path, options: [&[&str]; 2], what: &[&str]) -> Counts {
    let [a, b, out] = ["a", "b", "out"].map(|name| text(&folder.join(name)).to_owned());
    let mut args = vec!["-t1", "simple", &a];
    args.extend(options[0]);
    args.push(&b);
    args.extend(options[1]);
    args.extend([what[0], &out, "-ci1", "-cx1000000"]);
    args.extend(&what[1..]);
    let made = Command::new("kmc_tools").args(args).output().expect("kmc_tools");
    assert!(made.status.success(), "{made:?}");
    let dump = folder.join("dump.txt");
    let dumped = Command::new("kmc_tools")
        .args(["-t1", "transform", &out, "-ci1", "-cx1000000", "dump", "-s", text(&dump)])
        .output();
    assert!(dumped.expect("kmc_tools").status.success());
    let text = fs::read_to_string(dump).expect("a dump");
    parsed(&format!("kmer\tn\n{text}"))
}

#[test]
fn kmc_makes_the_same() {
    let (Some(kmc), Some(_)) = (installed("kmc"), installed("kmc_tools")) else { return };
    let folder = scratch("kmc");
    let reads = [fastq(20_000, 0, 3000), fastq(20_000, 1, 2000)];
    let tables = [0, 1].map(|i| {
        let name = ["a", "b"][i];
        let table = count(&folder, name, &reads[i], &["--min-count", "1"]);
        let (fastq, database) = (folder.join(format!("{name}.fq")), folder.join(name));
        let counted = Command::new(&kmc)
            .args(["-k31", "-ci1", "-cs1000000", "-m2", "-t1"])
            .args([&fastq, &database, &folder])
            .output();
        assert!(counted.expect("kmc").status.success());
        table
    });
    let [a, b] = [&tables[0], &tables[1]].map(|table| table.as_path());
    let none: &[&str] = &[];
    for (ours, limits, theirs) in [
        (&["union"][..], none, &["union"][..]),
        (&["union", "--counts", "max"], none, &["union", "-ocmax"]),
        (&["union", "--counts", "min", "--least", "3"], &["-ci3"], &["union", "-ocmin"]),
        (&["intersect"], none, &["intersect"]),
        (&["intersect", "--counts", "sum", "--most", "7"], &["-cx7"], &["intersect", "-ocsum"]),
        (&["intersect", "--counts", "first"], none, &["intersect", "-ocleft"]),
        (&["intersect", "--counts", "last"], none, &["intersect", "-ocright"]),
        (&["subtract"], none, &["kmers_subtract"]),
        (&["subtract", "--counts", "difference"], none, &["counters_subtract"]),
    ] {
        let (made, expected) = (made(&folder, ours, &[a, b]), kmc_result(&folder, [limits, limits], theirs));
        assert!(expected.len() > 1000, "{theirs:?}");
        assert!(made == expected, "{ours:?}: {} and {} k-mers", made.len(), expected.len());
    }
}
