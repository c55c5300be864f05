//! Reads from pipes: one pass, no seeking, and no thread that waits for ever.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use crate::common::{Folder, as_pipes, bgzf, fastq, gzip, interleave, make_fifo, pull, reads};
use genuma_reads::{BatchLimits, ProgressCounters, ReadBatch, ReadStream, StreamLane, StreamOptions};

#[test]
fn a_pipe_has_no_total_size() {
    let folder = Folder::new();
    let lane = StreamLane::Single(folder.write("r.fq", fastq(0, 100, 1)));
    let progress = Arc::new(ProgressCounters::default());
    let options =
        StreamOptions { progress: progress.clone(), ..StreamOptions::new(BatchLimits::with_reads_per_batch(8)) };
    assert!(pull(&[as_pipes(lane)], options).1.is_none());
    assert_eq!((progress.bytes_done(), progress.bytes_total()), (fastq(0, 100, 1).len() as u64, 0));
}

/// Environment variable of the process that reads its standard input.
const CHILD: &str = "GENUMA_READS_TEST_CHILD";

#[test]
fn the_standard_input_is_read_once() {
    let lane = StreamLane::Interleaved("-".into());
    if std::env::var_os(CHILD).is_some() {
        let (batches, error) = pull(&[lane], StreamOptions::new(BatchLimits::with_reads_per_batch(64)));
        let reads: Vec<_> = batches.into_iter().flat_map(|(.., reads)| reads).collect();
        // The test harness writes to the standard output, too.
        std::fs::write(std::env::var_os(CHILD).unwrap(), format!("{reads:?} {:?}", error.map(|e| e.to_string())))
            .unwrap();
        return;
    }
    let folder = Folder::new();
    let message = folder.path().join("message");
    let child = |stdin: Stdio| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "pipes::the_standard_input_is_read_once"])
            .env(CHILD, &message)
            .stdin(stdin)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let message = || std::fs::read_to_string(&message).unwrap();
    let text = interleave(&fastq(0, 3000, 1), &fastq(0, 3000, 2));
    let path = folder.write("both.fq", &text);
    let expected = format!("{:?} None", reads(&[StreamLane::Interleaved(path.clone())]));

    for packed in [text.clone(), gzip(&text), bgzf(&text)] {
        let mut piped = child(Stdio::piped());
        piped.stdin.take().unwrap().write_all(&packed).unwrap();
        assert!(piped.wait().unwrap().success());
        assert!(message() == expected);
    }
    assert!(child(File::open(path).unwrap().into()).wait().unwrap().success());
    assert!(message() == expected, "a file as standard input");
    assert!(child(Stdio::null()).wait().unwrap().success());
    assert_eq!(message(), r#"[] Some("-: is empty: give a file with at least one record")"#);
}

#[test]
fn a_stream_dropped_early_stops_its_threads() {
    let folder = Folder::new();
    let mates = [1, 2].map(|mate| folder.write(&format!("{mate}.bgz"), bgzf(&fastq(0, 50_000, mate))));
    let [one, two] = mates;
    let options = StreamOptions { inflate_threads: 4, ..StreamOptions::new(BatchLimits::with_reads_per_batch(10)) };
    let mut batch = ReadBatch::new();
    // After no batch or one batch: dropping joins all threads, so it would hang if one did not stop.
    for pulled in [0, 3] {
        let lanes = [StreamLane::Pair(one.clone(), two.clone())];
        let mut stream = ReadStream::open(&lanes, options.clone()).unwrap();
        (0..pulled).for_each(|_| assert!(stream.fill_batch(&mut batch).unwrap()));
        drop(stream);
    }
    // The pipe has no writer, or a writer that stops writing without closing it.
    let fifo = folder.path().join("fifo");
    make_fifo(&fifo);
    let lanes = [StreamLane::Single(fifo.clone())];
    drop(ReadStream::open(&lanes, options.clone()).unwrap());
    let mut stream = ReadStream::open(&lanes, options).unwrap();
    let mut writer = OpenOptions::new().write(true).open(&fifo).unwrap();
    // More than one decompressed chunk and than all buffered batches, so that reads arrive.
    let text = fastq(0, 4000, 1);
    writer.write_all(&text).unwrap();
    assert!(stream.fill_batch(&mut batch).unwrap());
    assert_eq!(batch.read(0).name, b"lane:0");
    drop(stream);
    let refused = writer.write_all(&text).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn an_error_is_reported_while_the_other_file_waits() {
    let folder = Folder::new();
    let (one, two) = (folder.write("1.fq", "@a\nAC\n+\nFF\n"), folder.path().join("fifo"));
    make_fifo(&two);
    let lanes = [StreamLane::Pair(one, two.clone())];
    let mut stream = ReadStream::open(&lanes, StreamOptions::new(BatchLimits::with_reads_per_batch(1))).unwrap();
    let silent = OpenOptions::new().write(true).open(&two).unwrap();
    // More than one block: the reader of the pipe waits for the rest of the last block.
    let text = fastq(0, 4000, 2);
    thread::scope(|scope| {
        // The reader may have closed the pipe.
        scope.spawn(|| (&silent).write_all(&text));
        let message = stream.fill_batch(&mut ReadBatch::new()).unwrap_err().to_string();
        let expected = format!(
            "{}/1.fq: record 1: read \"a\" has mate \"lane:0\" in {}: mates must come in the same order",
            folder.path().display(),
            two.display()
        );
        assert_eq!(message, expected);
    });
}
