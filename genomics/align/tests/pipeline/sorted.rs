//! Sorting and duplicate marking in the pipeline give the same records as samtools.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use genuma_align::bgzf::CompressionLevel;
use genuma_align::engine::{Engine, ReadLayout};
use genuma_align::header::{self, ProgramWithCommandLine as Ran};
use genuma_align::index_placement::LoadedIndex;
use genuma_align::sort::markdup::MarkdupOptions;
use genuma_align::sort::{BamFileWriter, SortOptions, SortedFileHeader, Sorter};
use genuma_work::publish::AtomicFileSet;

use crate::bench::{Bench, Files, assert_same, fill, sam};
use crate::data::pairs;

#[track_caller]
fn samtools(folder: &Path, script: &str) -> String {
    let ended = Command::new("sh").arg("-ec").arg(script).current_dir(folder).output().unwrap();
    assert!(ended.status.success(), "{script}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

/// Writes `ours.sam` in the order of the reads, and `ours.bam` sorted.
fn write<E: Engine>(bench: &Bench, engine: &LoadedIndex<E>, lanes: &[&Files], marking: Option<MarkdupOptions>) {
    let one = engine.nearest_copy();
    let ran = Ran { name: "genuma", version: "0", command_line: "genuma align" };
    let header = header::format_unsorted_sam_header(one.contigs(), &[], one.program(), ran);
    let lines = sam(engine, lanes, 2, 20_000).unwrap().0;
    fs::write(bench.path("ours.sam"), [header.as_bytes(), &lines].concat()).unwrap();

    let marking = marking.map(Arc::new);
    let options = SortOptions {
        memory_bytes: 1 << 22,
        threads: 2,
        work_dir: bench.folder.path().into(),
        markdup: marking.clone(),
    };
    let mut sorter = Sorter::new(&options);
    fill(engine, lanes, &mut sorter, marking).unwrap();
    let file = BamFileWriter::create(
        &bench.path("ours.bam"),
        SortedFileHeader::from_sam_header(&header).unwrap(),
        CompressionLevel::default(),
    )
    .unwrap();
    let mut set = AtomicFileSet::default();
    sorter.write_bam(file, &mut set).unwrap();
    set.publish_all().unwrap();
}

#[test]
fn sorted_as_by_samtools() {
    let bench = Bench::new(24);
    let files = bench.write("a", &pairs(&bench.genome, 5000, 38), ReadLayout::Paired);
    write(&bench, &bench.engine(300_000, &[]), &[&files], None);
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
    // Every fifth pair is repeated with another name and other qualities.
    let copies: Vec<_> = reads.chunks(2).step_by(5).flatten().cloned().collect();
    reads.extend(copies.into_iter().map(|mut read| {
        read.name += "copy";
        read.qual.iter_mut().step_by(3).for_each(|quality| *quality = b'0');
        read
    }));
    let files = bench.write("a", &reads, ReadLayout::Paired);
    write(&bench, &bench.engine(25_000_000, &[]), &[&files], Some(MarkdupOptions::default()));
    let folder = bench.folder.path();
    samtools(
        folder,
        "samtools fixmate -m ours.sam fixed.bam; samtools sort -o fixed.sorted.bam fixed.bam; \
         samtools markdup -l 1000 fixed.sorted.bam marked.bam",
    );
    // Name, flags of read and record, and the duplicate flag; fixmate changes other flags.
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
