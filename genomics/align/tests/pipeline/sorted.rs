//! Sorted and marked in the pipeline: what samtools makes of the same records.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use genuma_align::bgzf::Level;
use genuma_align::engine::{Engine, Layout};
use genuma_align::header::{self, Command as Ran};
use genuma_align::placement::Loaded;
use genuma_align::sort::markdup::Marking;
use genuma_align::sort::{BamFile, Header, Options, Sorter};
use genuma_work::publish::Set;

use crate::bench::{Bench, Files, fill, sam};
use crate::data::{assert_same, pairs};

#[track_caller]
fn samtools(folder: &Path, script: &str) -> String {
    let ended = Command::new("sh").arg("-ec").arg(script).current_dir(folder).output().unwrap();
    assert!(ended.status.success(), "{script}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

/// Writes `ours.sam` in the order of the reads, and `ours.bam` sorted.
fn write<E: Engine>(bench: &Bench, engine: &Loaded<E>, lanes: &[&Files], marking: Option<Marking>) {
    let one = engine.nearest();
    let ran = Ran { name: "genuma", version: "0", line: "genuma align" };
    let header = header::header(one.contigs(), &[], one.program(), ran);
    let lines = sam(engine, lanes, 2, 20_000).unwrap().0;
    fs::write(bench.path("ours.sam"), [header.as_bytes(), &lines].concat()).unwrap();

    let marking = marking.map(Arc::new);
    let options =
        Options { memory: 1 << 22, threads: 2, work: bench.folder.path().into(), marking: marking.clone() };
    let mut sorter = Sorter::new(&options);
    fill(engine, lanes, &mut sorter, marking).unwrap();
    let file =
        BamFile::create(&bench.path("ours.bam"), Header::sorted(&header).unwrap(), Level::default()).unwrap();
    let mut set = Set::default();
    sorter.finish(file, &mut set).unwrap();
    set.publish().unwrap();
}

#[test]
fn sorted_as_by_samtools() {
    let bench = Bench::new(24);
    let files = bench.write("a", &pairs(&bench.genome, 5000, 38), Layout::Paired);
    write(&bench, &bench.minibwa(Some(300_000), &[]), &[&files], None);
    let folder = bench.folder.path();
    let theirs = samtools(folder, "samtools sort --no-PG ours.sam 2>/dev/null | samtools view --no-PG -h");
    let ours = samtools(folder, "samtools quickcheck ours.bam; samtools view --no-PG -h ours.bam");
    assert!(ours == theirs, "records or header differ");
    assert!(ours.starts_with("@HD\tVN:1.6\tSO:coordinate\n"), "{}", &ours[..60]);
    samtools(folder, "samtools sort --no-PG -o theirs.bam ours.sam; samtools index theirs.bam");
    let region = |file: &str| samtools(folder, &format!("samtools view {file} chr2:20000-40000"));
    assert!(
        !region("ours.bam").is_empty() && region("ours.bam") == region("theirs.bam"),
        "the index finds other records"
    );
}

#[test]
fn marked_as_by_samtools() {
    let bench = Bench::new(25);
    let mut reads = pairs(&bench.genome, 4000, 39);
    // Every fifth pair comes again under another name, with other qualities.
    let copies: Vec<_> = reads.chunks(2).step_by(5).flatten().cloned().collect();
    reads.extend(copies.into_iter().map(|mut read| {
        read.name += "copy";
        read.qual.iter_mut().step_by(3).for_each(|quality| *quality = b'0');
        read
    }));
    let files = bench.write("a", &reads, Layout::Paired);
    write(&bench, &bench.minibwa(None, &[]), &[&files], Some(Marking::default()));
    let folder = bench.folder.path();
    samtools(
        folder,
        "samtools fixmate -m ours.sam fixed.bam; samtools sort -o fixed.sorted.bam fixed.bam; \
         samtools markdup -l 1000 fixed.sorted.bam marked.bam",
    );
    // Name, which read and which of its records it is, whether marked; fixmate changes other flags.
    let flags = |file: &str| -> Vec<String> {
        let lines = samtools(folder, &format!("samtools view {file} | cut -f 1-6"));
        let mut flags: Vec<String> = lines
            .lines()
            .map(|line| {
                let fields: Vec<&str> = line.split('\t').collect();
                let flag = fields[1].parse::<u16>().unwrap() & 0xfc4;
                format!("{}\t{flag}\t{}", fields[0], fields[2..].join("\t"))
            })
            .collect();
        flags.sort_unstable();
        flags
    };
    assert_same(&flags("ours.bam"), &flags("marked.bam"), "marked");
    let marked: usize = samtools(folder, "samtools view -c -f 1024 ours.bam").trim().parse().unwrap();
    assert!(marked > 1000, "{marked} marked");
}
