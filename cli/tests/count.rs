//! `genuma kmers count` and `genuma kmers query`: table and text have the same counts, whatever the number of threads and the
//! memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{genuma, gzip, names, run, scratch};

const K: usize = 31;

/// FASTQ of reads from both strands of one genome, each with a letter that is no base. `seed` selects other reads.
fn fastq(seed: u64, reads: usize) -> String {
    let mut state = 7u64;
    let mut below = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let genome: String = (0..5000).map(|_| ['A', 'C', 'G', 'T'][below(4) as usize]).collect();
    (0..seed).for_each(|_| _ = below(2));
    let mut text = String::new();
    for i in 0..reads {
        let at = below(4900) as usize;
        let mut seq = genome.as_bytes()[at..at + 100].to_vec();
        seq[below(100) as usize] = b'N';
        if below(2) == 1 {
            seq = revcomp(&seq);
        }
        let seq = String::from_utf8(seq).expect("ASCII");
        text += &format!("@r{i}\n{seq}\n+\n{}\n", "I".repeat(100));
    }
    text
}

fn revcomp(seq: &[u8]) -> Vec<u8> {
    let other = |&base: &u8| match base {
        b'A' => b'T',
        b'C' => b'G',
        b'G' => b'C',
        b'T' => b'A',
        other => other,
    };
    seq.iter().rev().map(other).collect()
}

/// Counts of each k-mer in samples given as FASTQ text, if its summed count is at least `least`.
fn expected<const S: usize>(samples: [&str; S], least: u32) -> BTreeMap<String, [u32; S]> {
    let mut counts = BTreeMap::<String, [u32; S]>::new();
    for (sample, text) in samples.iter().enumerate() {
        for seq in text.lines().skip(1).step_by(4) {
            for kmer in seq.as_bytes().windows(K).filter(|kmer| !kmer.contains(&b'N')) {
                let canonical = kmer.to_vec().min(revcomp(kmer));
                counts.entry(String::from_utf8(canonical).expect("ASCII")).or_insert([0; S])[sample] += 1;
            }
        }
    }
    counts.retain(|_, counts| counts.iter().sum::<u32>() >= least);
    counts
}

fn text<const S: usize>(names: [&str; S], counts: &BTreeMap<String, [u32; S]>) -> String {
    let mut text = format!("kmer\t{}\n", names.join("\t"));
    for (kmer, counts) in counts {
        text += &format!("{kmer}\t{}\n", counts.map(|n| n.to_string()).join("\t"));
    }
    text
}

fn name(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn write(folder: &Path, file: &str, text: &str) -> PathBuf {
    let path = folder.join(file);
    fs::write(&path, text).expect("written");
    path
}

#[test]
fn text_and_table_hold_every_kmer() {
    let folder = scratch("whole");
    let reads = [fastq(0, 400), fastq(1, 300)];
    let [normal, tumor] = [0, 1].map(|i| write(&folder, &format!("{i}.fq"), &reads[i]));
    let (tsv, gkt) = (folder.join("pair.tsv"), folder.join("pair.gkt"));
    let input = ["kmers", "count", "--normal", name(&normal), "--tumor", name(&tumor), "-o"];
    run(input.iter().chain(&[name(&tsv)])).assert_success();
    let expected = expected([&reads[0], &reads[1]], 2);
    assert!(expected.len() > 4000);
    assert_eq!(fs::read_to_string(&tsv).expect("text"), text(["normal", "tumor"], &expected));

    let (hist, json) = (folder.join("hist"), folder.join("json"));
    run(input.iter().chain(&[name(&gkt), "--histogram", name(&hist), "--json", name(&json)])).assert_success();
    // A sequence that contains all counted k-mers, absent k-mers between them, and N.
    let sequence = expected.keys().map(String::as_str).collect::<Vec<_>>().join("N");
    let fasta = write(&folder, "all.fa", &format!(">all of them\n{sequence}\n>none\n{}\n", "AC".repeat(20)));
    let answers = run(["kmers", "query", name(&gkt), name(&fasta)]).assert_success().stdout;
    let mut lines = answers.lines();
    assert_eq!(lines.next(), Some("sequence\tposition\tkmer\tnormal\ttumor"));
    for (i, (kmer, [normal, tumor])) in expected.iter().enumerate() {
        let line = format!("all\t{}\t{kmer}\t{normal}\t{tumor}", i * (K + 1) + 1);
        assert_eq!(lines.next(), Some(&line[..]));
    }
    let none: Vec<&str> = lines.collect();
    // The result does not depend on the cache. Repeated lookups with a cache for all k-mers find most of them there,
    // but collisions evict some. Files of the same bytes would be refused.
    let copy = fs::read_to_string(&fasta).expect("sequences").replace("of them", "once more");
    let copy = write(&folder, "again.fa", &copy);
    for (cache, remembered) in [("0", 0..=0), ("1G", expected.len() * 99 / 100..=expected.len())] {
        let twice = run(["kmers", "query", "--cache", cache, name(&gkt), name(&fasta), name(&copy)]).assert_success();
        assert_eq!(twice.stdout, format!("{answers}{}", answers.split_once('\n').expect("lines").1));
        let told = twice.stderr.split_once(&format!("{} found, ", 2 * expected.len())).expect("what was found").1;
        let of_cache = told.split_once(" of them in the cache").expect("what was remembered").0;
        assert!(remembered.contains(&of_cache.parse().expect("a number")), "{remembered:?}: {}", twice.stderr);
    }
    assert_eq!(none.len(), 40 - K + 1);
    assert!(none.iter().all(|line| line.starts_with("none\t") && line.ends_with("\t0\t0")), "{none:?}");

    let all = self::expected([&reads[0], &reads[1]], 1);
    let histogram = fs::read_to_string(hist).expect("a histogram");
    assert_eq!(histogram.lines().next(), Some("count\tnormal\ttumor"));
    for line in histogram.lines().skip(1) {
        let row: Vec<u32> = line.split('\t').map(|n| n.parse().expect("a number")).collect();
        let kmers = |sample: usize| all.values().filter(|counts| counts[sample] == row[0]).count() as u32;
        assert_eq!(row[1..], [kmers(0), kmers(1)], "count {}", row[0]);
    }
    let summary = fs::read_to_string(json).expect("a summary");
    for part in [format!("\"kmers\": {}", expected.len()), format!("\"distinct\": {}", all.len())] {
        assert!(summary.contains(&part), "{part}: {summary}");
    }
}

/// Runs `genuma kmers count` with `input` on its standard input.
fn piped(args: &[&str], input: &str) -> std::process::Output {
    let mut child = genuma()
        .args(["kmers", "count"])
        .args(args)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // genuma stops reading after an error.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("an end")
}

#[test]
fn pipes_are_read_once() {
    let folder = scratch("pipes");
    let reads = [fastq(0, 400), fastq(1, 300)];
    let [normal, tumour] = [0, 1].map(|i| write(&folder, &format!("{i}.fq"), &reads[i]));
    let out = folder.join("x.tsv");
    let expected = text(["normal", "tumor"], &expected([&reads[0], &reads[1]], 2));
    for args in [["--normal", name(&normal), "--tumour", "-"], ["--normal", "-", "--tumor", name(&tumour)]] {
        let input = &reads[usize::from(args[3] == "-")];
        let ended = piped(&[&args[..], &["-o", name(&out), "-t", "2"]].concat(), input);
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(fs::read_to_string(&out).expect("text"), expected);
        fs::remove_file(&out).expect("it was there");
    }
    // Input that is truncated, empty or must be read twice is reported, and nothing is written.
    let half = &reads[0][..reads[0].len() / 2 - 40];
    for (args, input, word) in [
        (&["-"][..], half, "error: "),
        (&["-"], "", "is empty"),
        (&["-", "--resume"], &reads[0], "is not a regular file"),
        (&["-", "-"], &reads[0], "are the same reads"),
    ] {
        let ended = piped(&[args, &["-o", name(&out)]].concat(), input);
        let said = String::from_utf8(ended.stderr).expect("UTF-8");
        assert!(ended.status.code() == Some(1) && said.contains(word), "{args:?}: {said}");
        assert_eq!(names(&folder), ["0.fq", "1.fq"]);
    }
    // An error in another file is reported although the pipe, whose reading has begun, never ends.
    let broken = write(&folder, "broken.fq", &(reads[1].clone() + &fastq(3, 30_000) + "@r\nACGT\n+\nIII\n"));
    let mut child = genuma()
        .args(["kmers", "count", "--normal", "-", "--tumor", name(&broken), "-t", "2", "-o", name(&out)])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(reads[0].as_bytes()).expect("room");
    let said = child.wait_with_output().expect("an end").stderr;
    let said = String::from_utf8(said).expect("UTF-8");
    assert!(said.contains("broken.fq: record"), "{said}");
    drop(stdin);
}

#[test]
fn threads_memory_and_packing_do_not_show() {
    let folder = scratch("same");
    let reads = fastq(2, 3000);
    let plain = write(&folder, "a.fq", &reads);
    let packed = folder.join("a.fq.gz");
    gzip(packed.clone(), reads.as_bytes());
    let mut tables = Vec::new();
    for (i, (file, options)) in [
        (&plain, &["-t", "1", "--memory", "80M"][..]),
        (&packed, &["-t", "3"]),
        (&plain, &["--memory", "1G"]),
        // More than any test machine has: memory that is not needed is not allocated.
        (&plain, &["--memory", "4T"]),
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.join(format!("{i}.gkt"));
        run(["kmers", "count", name(file), "-o", name(&out)].iter().chain(options)).assert_success();
        tables.push(fs::read(out).expect("a table"));
    }
    assert!(tables.windows(2).all(|two| two[0] == two[1]));
}

#[test]
fn the_least_memory_does_not_show() {
    let folder = scratch("least");
    // 1,020,000 mostly distinct k-mers: with little memory, not all filters fit.
    let mut state = 7u64;
    let mut base = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ['A', 'C', 'G', 'T'][(state >> 62) as usize]
    };
    let mut read = || (0..150).map(|_| base()).collect::<String>();
    let reads: String = (0..8500).map(|i| format!("@r{i}\n{}\n+\n{}\n", read(), "I".repeat(150))).collect();
    let reads = write(&folder, "a.fq", &reads);
    let count = |threads: &str, memory: &str| {
        let out = folder.join(format!("{threads}-{memory}.gkt"));
        let args = ["kmers", "count", name(&reads), "-o", name(&out), "--min-count", "1", "-t", threads];
        let ended = run(args.iter().chain(&["--memory", memory]));
        (ended.code == Some(0)).then(|| fs::read(out).expect("a table"))
    };
    let plenty = count("1", "4G").expect("counted");
    assert!(plenty.len() > 6 << 20, "{} bytes", plenty.len());
    for threads in ["1", "4"] {
        let least = (60..200).find_map(|memory| count(threads, &format!("{memory}M")));
        assert!(least.expect("counted") == plenty, "{threads} threads in the least memory");
        assert!(count(threads, "1G").expect("counted") == plenty, "{threads} threads in 1G");
    }
}

#[test]
fn samples_have_names_and_files() {
    let folder = scratch("named");
    let reads = [0, 1, 2].map(|seed| fastq(seed, 100));
    let [a, b, c] = [0, 1, 2].map(|i| write(&folder, &format!("{i}.fq"), &reads[i]));
    let out = folder.join("x.tsv");
    let both = format!("b={},{}", name(&a), name(&b));
    let other = format!("a={}", name(&c));
    let args = ["--min-count", "3", "-o", name(&out)];
    run(["kmers", "count", "--sample", &both, "--sample", &other].iter().chain(&args)).assert_success();
    let joined = reads[0].clone() + &reads[1];
    let expected = text(["b", "a"], &expected([&joined, &reads[2]], 3));
    assert_eq!(fs::read_to_string(out).expect("text"), expected);
}

#[test]
fn extreme_reads_are_counted() {
    let folder = scratch("extreme");
    let one = |seq: &str, times: usize| format!("@r\n{seq}\n+\n{}\n", "I".repeat(seq.len())).repeat(times);
    let repeated = fastq(3, 1).lines().nth(1).expect("a read").replace('N', "A");
    let cases = [one(&"A".repeat(100), 20_000), one(&repeated, 20_000), one(&"N".repeat(100), 50), one("ACGT", 9)];
    for (i, reads) in cases.iter().enumerate() {
        let (file, out) = (write(&folder, "a.fq", reads), folder.join("x.tsv"));
        run(["kmers", "count", name(&file), "-o", name(&out), "--memory", "100M"]).assert_success();
        let text = fs::read_to_string(out).expect("text");
        assert_eq!(text, self::text(["reads"], &expected([reads], 2)), "case {i}");
    }
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
    let reads = write(&folder, "a.fq", &fastq(0, 50));
    let (whole, cut) = (folder.join("b.fq.gz"), folder.join("c.fq.gz"));
    gzip(whole.clone(), fastq(1, 2000).as_bytes());
    let bytes = fs::read(&whole).expect("gzip");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    let out = folder.join("x.gkt");
    let (reads, cut, x) = (name(&reads), name(&cut), name(&out));
    refused(&["kmers", "count", cut, "-o", x], 1, &["c.fq.gz", "truncated"]);
    refused(&["kmers", "count", reads, "-o", "x.kmc"], 2, &[".gkt or .tsv"]);
    refused(&["kmers", "count", reads, "-o", x, "--memory", "1M"], 2, &["too little", "raise --memory"]);
    refused(
        &["kmers", "count", reads, "-o", x, "--memory", "8"],
        2,
        &["8 bytes of memory is too little", "write a unit"],
    );
    refused(&["kmers", "count", reads, reads, "-o", x], 1, &["a.fq"]);
    refused(&["kmers", "count", reads, "-o", x, "--work", "/no/such"], 2, &["/no/such: is not a folder"]);
    let many: Vec<String> = (0..9).flat_map(|i| ["--sample".into(), format!("s{i}={reads}")]).collect();
    let many: Vec<&str> = ["kmers", "count", "-o", x].into_iter().chain(many.iter().map(String::as_str)).collect();
    refused(&many, 2, &["9 samples", "at most 8"]);
    assert_eq!(names(&folder), ["a.fq", "b.fq.gz", "c.fq.gz"]);

    refused(&["kmers", "query", x, reads], 1, &["x.gkt", "cannot open"]);
    refused(&["kmers", "query", reads, reads], 1, &["a.fq"]);
    run(["kmers", "count", reads, "-o", x]).assert_success();
    let mut table = fs::read(&out).expect("a table");
    table[5000] ^= 4;
    fs::write(&out, table).expect("written");
    refused(&["kmers", "query", x, reads], 1, &["x.gkt", "damaged"]);
}

#[test]
fn a_killed_count_is_no_harm_to_the_next() {
    let folder = scratch("killed");
    let reads = folder.join("a.fq.gz");
    gzip(reads.clone(), fastq(5, 60_000).as_bytes());
    let out = folder.join("x.gkt");
    let args = ["kmers", "count", name(&reads), "-o", name(&out), "--memory", "90M"];
    run(args).assert_success();
    let whole = fs::read(&out).expect("a table");
    fs::remove_file(&out).expect("removed");
    for pause in [5, 50, 100, 150, 200, 300] {
        let mut killed = genuma().args(args).arg("-q").spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(pause));
        killed.kill().expect("SIGKILL");
        killed.wait().expect("it ends");
        if out.exists() {
            assert!(fs::read(&out).expect("a table") == whole, "a table appears whole or not at all");
            fs::remove_file(&out).expect("removed");
        }
        run(args).assert_success();
        assert!(fs::read(&out).expect("a table") == whole, "killed after {pause} ms");
        fs::remove_file(&out).expect("removed");
        assert_eq!(names(&folder), ["a.fq.gz"]);
    }
}
