//! The same reads give the same calls, whatever the number of threads, the memory and the files they come in.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Data, assert_same, called, data, gunzip, gzip, records, run, scratch};

#[test]
fn threads_do_not_show() {
    for threads in ["1", "5"] {
        let out = scratch(&format!("threads-{threads}"));
        run(data().call_with(&out, &["--threads", threads])).assert_success();
        assert_same(&out, called());
    }
}

#[test]
fn memory_and_work_folder_do_not_show() {
    // Enough reads that the counter spills with the smaller memory.
    let size = ["--genome-length", "1000000", "--snvs", "60", "--indels", "30", "--svs", "0"];
    let mut data = Data::simulate("more-reads", &size);
    data.reference = None;
    let [small, large] = [("128M", "small"), ("4G", "large")].map(|(memory, name)| {
        let (out, work) = (scratch(name), scratch(&format!("{name}-work")));
        let work = work.to_str().expect("UTF-8");
        run(data.call_with(&out, &["--threads", "2", "--memory", memory, "--work", work])).assert_success();
        assert!(!fs::exists(work).expect("a folder that can be looked for"), "the work folder goes at success");
        out
    });
    assert!(partitions(&small)[1] > 10 << 20 && partitions(&large)[1] == 0);
    assert_same(&small, &large);
}

/// The number in the ledger line with this text, if there is one.
fn ledger(out: &Path, what: &str) -> Option<u64> {
    let summary = fs::read(out.join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_slice(&summary).expect("JSON");
    let lines = summary["stages"].as_array().expect("lines");
    let says = |line: &&serde_json::Value| line["description"].as_str().is_some_and(|text| text.contains(what));
    lines.iter().find(says).and_then(|line| line["count"].as_u64())
}

/// Number of partitions, and the maximum size of their file.
fn partitions(out: &Path) -> [u64; 2] {
    ["partitions of the k-mer space", "bytes of the k-mer spill file"]
        .map(|what| ledger(out, what).expect("a line of the ledger"))
}

/// Packed reads: number of pairs if they were written; their size if there was no room; the room that was too little.
fn copies(out: &Path) -> [Option<u64>; 3] {
    ["which later passes read", "the scratch space is too small", "exceeded this limit"].map(|what| ledger(out, what))
}

#[test]
fn scratch_and_partitions_do_not_show() {
    let size = ["--genome-length", "2000000", "--snvs", "60", "--indels", "30", "--svs", "2"];
    let data = Data::simulate("partitioned", &size);
    let whole = scratch("whole");
    run(data.call_with(&whole, &["--threads", "2", "--memory", "130M", "--scratch", "1G"])).assert_success();
    let [parts, bytes] = partitions(&whole);
    assert_eq!(parts, 1);
    assert!(bytes > 30 << 20, "{bytes}");

    for (kib, threads, memory, least) in [(bytes / 2048, "2", "130M", 2), (0, "5", "178M", 3), (0, "1", "114M", 5)] {
        let out = scratch(&format!("scratch-{kib}-{threads}"));
        let options = ["--threads", threads, "--memory", memory, "--scratch", &format!("{kib}K")];
        let said = run(data.call_with(&out, &options)).assert_success().stderr;
        let [parts, bytes] = partitions(&out);
        assert!(parts >= least, "{parts} are fewer than {least}: {said}");
        assert!(bytes <= kib * 1024, "{bytes} bytes of {kib} KiB");
        assert!(said.contains(&format!("count, partition 1 of {parts} begins")), "{said}");
        assert_same(&out, &whole);
    }
    // A call whose data fits in memory needs no scratch space.
    let out = scratch("scratch-none");
    run(data.call_with(&out, &["--memory", "2G", "--scratch", "0"])).assert_success();
    assert_eq!(partitions(&out), [1, 0]);
    assert_same(&out, &whole);
}

#[test]
fn whether_later_passes_read_a_copy_or_the_files_does_not_show() {
    let [with, without] = [("64M", "with-a-copy"), ("0", "without")].map(|(bytes, name)| {
        let out = scratch(name);
        run(data().call_with(&out, &["--threads", "3", "--memory", "1G", "--scratch", bytes])).assert_success();
        out
    });
    let [copied, no_room, outgrown] = copies(&with);
    let pairs = ["normal: pairs read", "tumour: pairs read"].map(|what| ledger(&with, what).expect("pairs"));
    assert_eq!((copied, no_room, outgrown), (Some(pairs.iter().sum()), None, None));
    let [none, no_room, outgrown] = copies(&without);
    // Two bits a base, as many a quality, and the names.
    let bytes = no_room.expect("what it would have taken") / pairs.iter().sum::<u64>();
    assert!(none.is_none() && outgrown.is_none() && (100..400).contains(&bytes), "{bytes}");
    assert_same(&with, called());
    assert_same(&without, called());
}

#[test]
fn letters_that_are_no_bases_come_back_from_the_copy() {
    let folder = scratch("odd-letters");
    let mut odd = data().clone();
    for file in odd.tumor.iter_mut().chain(&mut odd.normal) {
        let text = gunzip(file);
        let mut all = Vec::with_capacity(text.len());
        for (i, record) in records(&text).into_iter().enumerate() {
            let mut lines: Vec<Vec<u8>> = record.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            match i % 10 {
                0 => lines[1].make_ascii_lowercase(),
                1 => lines[1][7] = b'N',
                2 => lines[3].iter_mut().zip(33..).for_each(|(qual, letter)| *qual = letter % 80 + 33),
                _ => {}
            }
            all.extend(lines.join(&b'\n'));
        }
        let name = file.file_name().expect("a name").to_owned();
        *file = gzip(folder.join(name), &all);
    }
    let [with, without] = [("64M", "odd-with-a-copy"), ("0", "odd-without")].map(|(bytes, name)| {
        let out = scratch(name);
        run(odd.call_with(&out, &["--memory", "1G", "--scratch", bytes])).assert_success();
        out
    });
    assert!(copies(&with)[0].is_some() && copies(&without)[0].is_none());
    assert_same(&with, &without);
}

#[test]
fn a_copy_that_outgrows_its_room_is_given_up_and_does_not_show() {
    let folder = scratch("outgrown-reads");
    let mut odd = data().clone();
    // Uninformative qualities come first, so that the sampled beginning underestimates the size of the reads.
    for (f, file) in odd.tumor.iter_mut().chain(&mut odd.normal).enumerate() {
        let text = gunzip(file);
        let plain: Vec<u8> = (0..60_000)
            .flat_map(|i| {
                format!("@plain{i}\n{0}\n+\n{1}\n", &"ACGT".repeat(9)[f..f + 32], "I".repeat(32)).into_bytes()
            })
            .collect();
        let mut all = plain;
        for record in records(&text) {
            let mut lines: Vec<Vec<u8>> = record.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            lines[3].iter_mut().zip(0u8..).for_each(|(qual, i)| *qual = 50 + i % 25);
            all.extend(lines.join(&b'\n'));
        }
        *file = folder.join(file.file_stem().expect("a name"));
        fs::write(&file, all).expect("a file");
    }
    let [with, without] = [("64M", "outgrown"), ("0", "not-outgrown")].map(|(bytes, name)| {
        let out = scratch(name);
        run(odd.call_with(&out, &["--memory", "1G", "--scratch", bytes])).assert_success();
        out
    });
    let [copied, no_room, outgrown] = copies(&with);
    assert!(copied.is_none() && no_room.is_none() && outgrown.is_some(), "{copied:?} {no_room:?}");
    assert_same(&with, &without);
}

#[test]
fn a_partition_that_is_too_large_is_split_and_does_not_show() {
    let size = ["--genome-length", "2000000", "--snvs", "60", "--indels", "30", "--svs", "0"];
    let mut data = Data::simulate("misleading", &size);
    // Reads without k-mers come first, so that the sampled beginning says nothing about the rest.
    let folder = scratch("misleading-reads");
    let short: String =
        (0..90_000).map(|i| format!("@short{i}\nACGTACGTACGTACGTACGT\n+\nIIIIIIIIIIIIIIIIIIII\n")).collect();
    for file in data.tumor.iter_mut().chain(&mut data.normal) {
        let longer = gzip(folder.join(file.file_name().expect("a name")), short.as_bytes());
        let mut bytes = fs::read(&longer).expect("a file");
        bytes.extend(fs::read(&*file).expect("reads"));
        fs::write(&longer, bytes).expect("a file");
        *file = longer;
    }
    let [whole, split] = ["unsplit", "split"].map(scratch);
    // The length of k-mers is chosen from the beginning of the files, too.
    run(data.call_with(&whole, &["-k", "31", "--threads", "2", "--memory", "144M"])).assert_success();
    let options = ["-k", "31", "--threads", "2", "--memory", "144M", "--scratch", "16M"];
    let said = run(data.call_with(&split, &options)).assert_success().stderr;
    assert!(said.contains("partition 1 of 1 of the k-mers does not fit into memory and scratch space"), "{said}");
    assert_eq!(partitions(&whole)[0], 1);
    let [parts, bytes] = partitions(&split);
    assert!(parts > 1 && bytes <= 16 << 20, "{parts} {bytes}");
    assert_same(&split, &whole);
}

/// Each file divided into two halves, by record.
fn halves(files: &[PathBuf], folder: &str) -> Vec<[PathBuf; 2]> {
    let folder = scratch(folder);
    files
        .iter()
        .enumerate()
        .map(|(i, file)| {
            let text = gunzip(file);
            let records = records(&text);
            let (one, two) = records.split_at(records.len() / 3);
            // One half stays plain, so that both kinds of files are mixed.
            let plain = folder.join(format!("{i}-b.fq"));
            fs::write(&plain, two.concat()).expect("a file");
            [gzip(folder.join(format!("{i}-a.fq.gz")), &one.concat()), plain]
        })
        .collect()
}

#[test]
fn lanes_and_their_order_do_not_show() {
    let data = data();
    let lanes = |files: &[PathBuf], name: &str| {
        let [one, two] = &halves(files, name)[..] else { panic!("two files") };
        // The second half first.
        vec![one[1].clone(), two[1].clone(), one[0].clone(), two[0].clone()]
    };
    let split =
        Data { tumor: lanes(&data.tumor, "tumor-lanes"), normal: lanes(&data.normal, "normal-lanes"), ..data.clone() };
    let out = scratch("lanes");
    run(split.call(&out)).assert_success();
    assert_same(&out, called());
}

#[test]
fn interleaved_or_plain_files_do_not_show() {
    let (data, folder) = (data(), scratch("interleaved-reads"));
    let interleaved = |files: &[PathBuf], name: &str| {
        let texts = [gunzip(&files[0]), gunzip(&files[1])];
        let [ones, twos] = [records(&texts[0]), records(&texts[1])];
        let all: Vec<&[u8]> = ones.iter().zip(&twos).flat_map(|(one, two)| [*one, *two]).collect();
        let path = folder.join(name);
        fs::write(&path, all.concat()).expect("a file");
        vec![path]
    };
    let one = Data {
        tumor: interleaved(&data.tumor, "tumor.fq"),
        normal: interleaved(&data.normal, "normal.fq"),
        ..data.clone()
    };
    let out = scratch("interleaved");
    run(one.call_with(&out, &["--interleaved"])).assert_success();
    assert_same(&out, called());
}
