//! Files that changed after their division into slices are reported.

use super::*;

/// The second of two slices of a file, and the byte at which it starts.
fn second(lane: &Lane) -> (Lane, u64) {
    let sharding = split_lanes_into_shards(std::slice::from_ref(lane), 2).unwrap();
    let lane = sharding.shards[1][0].clone();
    let from = lane.slice.unwrap().first_file.start;
    (lane, from.file_offset)
}

#[test]
fn files_that_changed_after_division_are_reported() {
    let folder = Folder::new();
    let [text, _] = mates(ILLUMINA, 2000, 9);
    let path = folder.write("a.fq", &text);
    let lane = single(path.clone());
    let first = split_lanes_into_shards(std::slice::from_ref(&lane), 2).unwrap().shards[0][0].clone();
    let (slice, from) = second(&lane);

    let cut_off = &text[..text.len() - 1000];
    folder.write("a.fq", cut_off);
    let resized = format!(
        "a.fq: is {} bytes long and was {} when the call was planned (genuma call --plan): restore the file, or plan the call again",
        cut_off.len(),
        text.len()
    );
    for lane in [&first, &slice] {
        assert_eq!(message(&folder, lane), resized);
        assert!(check_lanes(std::slice::from_ref(lane)).is_err());
    }
    // As if the file had been truncated after it was opened.
    let mut short = slice.clone();
    let span = &mut short.slice.as_mut().unwrap().first_file;
    (span.file_bytes, span.end) =
        (cut_off.len() as u64, Some(VirtualOffset { file_offset: text.len() as u64, offset_in_block: 0 }));
    assert_eq!(message(&folder, &short), "a.fq: cannot read: the file ends inside the slice");

    // Another text with the same length.
    folder.write("a.fq", [b"x", &text.as_bytes()[..text.len() - 1]].concat());
    assert_eq!(
        message(&folder, &slice),
        format!(
            "a.fq: record 1 after byte {from}: starts with an empty line instead of '@': FASTQ must have four lines per record; check the file"
        )
    );
    // Gzip instead of plain text.
    let mut gzipped = text.clone().into_bytes();
    gzipped[from as usize..from as usize + 2].copy_from_slice(&[0x1f, 0x8b]);
    folder.write("a.fq", &gzipped);
    let changed = "has changed since the call was planned (genuma call --plan; at byte";
    assert!(message(&folder, &slice).starts_with(&format!("a.fq: {changed} {from}): restore the file")));

    // An invalid record is counted from the start of the slice, which for the first slice is the start of the file.
    let wrong = text.replace("AC", "A-");
    let path = folder.write("b.fq", &text);
    let lane = single(path);
    let first = split_lanes_into_shards(std::slice::from_ref(&lane), 2).unwrap().shards[0][0].clone();
    let (slice, from) = second(&lane);
    folder.write("b.fq", wrong);
    let letter = "'-' in the sequence is not a base (IUPAC letter)";
    assert_eq!(message(&folder, &first), format!("b.fq: record 1: {letter}"));
    assert_eq!(message(&folder, &slice), format!("b.fq: record 1 after byte {from}: {letter}"));
}

#[test]
fn bgzf_files_that_changed_after_division_are_reported() {
    let folder = Folder::new();
    let [text, _] = mates(ILLUMINA, 3000, 9);
    let packed = usual(text.as_bytes());
    let lane = single(folder.write("a.gz", &packed));
    let first = split_lanes_into_shards(std::slice::from_ref(&lane), 2).unwrap().shards[0][0].clone();
    let (slice, from) = second(&lane);
    let within = slice.slice.unwrap().first_file.start.offset_in_block;
    let at = from as usize;
    assert!(within > 0);
    let place = format!("byte {within} of the block at byte {from}");

    // A block that both slices read is damaged.
    let mut damaged = packed.clone();
    damaged[at + 2000] ^= 0xff;
    folder.write("a.gz", &damaged);
    let error_text = message(&folder, &slice);
    assert!(error_text.starts_with("a.gz: record "), "{error_text}");
    assert!(error_text.contains(&format!(" after {place}: damaged gzip data (")), "{error_text}");
    let error_text = message(&folder, &first);
    assert!(error_text.contains(": damaged gzip data (") && !error_text.contains("after"), "{error_text}");
    // The block does not exist any more.
    let mut other = packed.clone();
    other[at] = b'@';
    folder.write("a.gz", &other);
    for lane in [&slice, &first] {
        let changed = "a.gz: has changed since the call was planned (genuma call --plan; at";
        assert_eq!(message(&folder, lane), format!("{changed} {place}): restore the file, or plan the call again"));
    }
    // The block has fewer bytes.
    let mut less = packed.clone();
    less.splice(at.., usual(b"@a\nA\n+\nF\n"));
    less.resize(packed.len(), 0);
    folder.write("a.gz", &less);
    for lane in [&slice, &first] {
        assert!(!message(&folder, lane).is_empty());
    }
    // As if the file had been truncated after it was opened.
    folder.write("a.gz", &packed[..packed.len() - 200]);
    let mut short = slice.clone();
    let span = &mut short.slice.as_mut().unwrap().first_file;
    span.end = Some(VirtualOffset { file_offset: packed.len() as u64 - 28, offset_in_block: 0 });
    span.file_bytes = packed.len() as u64 - 200;
    let error_text = message(&folder, &short);
    assert!(
        error_text.starts_with("a.gz: record ")
            && error_text.ends_with(&format!(
                " after {place}: the gzip data end too early: the file is truncated, copy or make it again"
            )),
        "{error_text}"
    );
}
