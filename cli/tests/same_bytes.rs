//! The same reads give the same calls, whatever the threads, the memory and the files they come in.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{Data, assert_same, called, data, gunzip, gzip, records, run, scratch};

#[test]
fn threads_do_not_show() {
    for threads in ["1", "5"] {
        let out = scratch(&format!("threads-{threads}"));
        run(data().call_with(&out, &["--threads", threads])).well();
        assert_same(&out, called());
    }
}

#[test]
fn memory_and_work_folder_do_not_show() {
    // Enough reads for the smaller memory to make the counter spill.
    let size = ["--genome-length", "3000000", "--snvs", "60", "--indels", "30", "--svs", "0"];
    let mut data = Data::simulate("more-reads", &size);
    data.reference = None;
    let [small, large] = [("128M", "small"), ("4G", "large")].map(|(memory, name)| {
        let (out, work) = (scratch(name), scratch(&format!("{name}-work")));
        let work = work.to_str().expect("UTF-8");
        run(data.call_with(&out, &["--threads", "2", "--memory", memory, "--work", work])).well();
        assert!(
            !fs::exists(work).expect("a folder that can be looked for"),
            "the work folder goes at success"
        );
        out
    });
    assert_same(&small, &large);
}

/// Each file of `files` in two halves, by record.
fn halves(files: &[PathBuf], folder: &str) -> Vec<[PathBuf; 2]> {
    let folder = scratch(folder);
    files
        .iter()
        .enumerate()
        .map(|(i, file)| {
            let text = gunzip(file);
            let records = records(&text);
            let (one, two) = records.split_at(records.len() / 3);
            // One half stays plain: both kinds may stand side by side.
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
    let split = Data {
        tumor: lanes(&data.tumor, "tumor-lanes"),
        normal: lanes(&data.normal, "normal-lanes"),
        ..data.clone()
    };
    let out = scratch("lanes");
    run(split.call(&out)).well();
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
    run(one.call_with(&out, &["--interleaved"])).well();
    assert_same(&out, called());
}
