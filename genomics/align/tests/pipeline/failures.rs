//! Errors in the reads are reported after the records before them, and the pipeline does not hang.

use std::fs;
use std::io::{self, Write};

use genuma_align::engine::ReadLayout;
use genuma_align::pipeline::{AlignOutput, AlignWorkerPool, Error};
use genuma_reads::StreamLane;

use crate::bench::{Bench, Files, open, sam, text, threads};
use crate::data::pairs;

/// A writer that accepts this many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn faults_end_a_run_with_their_words() {
    let bench = Bench::new(26);
    let files = bench.write("a", &pairs(&bench.genome, 1500, 40), ReadLayout::Paired);
    let engine = bench.engine(100_000, &[]);
    let whole = sam(&engine, &[&files], 2, 20_000).unwrap().0;

    // Late in the file.
    let two = bench.path("a_2.fq");
    let cut = text(&two);
    fs::write(&two, &cut[..cut.len() * 9 / 10]).unwrap();
    for workers in [1, 2, 8] {
        let mut out = Vec::new();
        let job = AlignWorkerPool { engine: &engine, cpu_slots: threads(workers) };
        let error = job.align_reads(open(&[&files], 20_000).unwrap(), AlignOutput::Sam(&mut out)).unwrap_err();
        assert!(matches!(error, Error::Reads(_)) && error.to_string().contains("a_2.fq"), "{error}");
        assert!(whole.starts_with(&out), "what was written is right");
    }

    fs::write(&two, &cut).unwrap();
    for room in [0, 1, whole.len() / 2, whole.len() - 1] {
        let job = AlignWorkerPool { engine: &engine, cpu_slots: threads(2) };
        let error = job.align_reads(open(&[&files], 20_000).unwrap(), AlignOutput::Sam(&mut Full(room))).unwrap_err();
        assert!(matches!(&error, Error::Write(e) if e.kind() == io::ErrorKind::StorageFull), "{room}: {error}");
    }

    // A read whose name cannot be written as SAM.
    fs::write(bench.path("name.fq"), "@@name\nACGT\n+\nFFFF\n").unwrap();
    let named = Files { lane: StreamLane::Single(bench.path("name.fq")), layout: ReadLayout::Single };
    let error = sam(&engine, &[&named], 2, 20_000).unwrap_err();
    assert!(matches!(error, Error::Engine(_)) && error.to_string().contains("begins with '@'"), "{error}");
    // A farm without CPU slots.
    let job = AlignWorkerPool { engine: &engine, cpu_slots: Vec::new() };
    let error = job.align_reads(open(&[&files], 20_000).unwrap(), AlignOutput::Sam(&mut Vec::new())).unwrap_err();
    assert!(matches!(error, Error::Farm(_)), "{error}");
}
