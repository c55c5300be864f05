//! Finds positions at which a lane can be cut: consecutive records near a byte of its first file, and the records with
//! the same read names in its second file.
//!
//! A name is searched in the second file near the corresponding fraction of that file, in a window that is enlarged
//! until the name is found. The following names must match the following names of the first file, and the match must
//! be unique in the window. The fraction is computed from the last position that is known in both files, because read
//! 1 and read 2 do not compress equally everywhere.

use std::io;

use memchr::memmem::Finder;

use crate::file_span::VirtualOffset;

use super::SplitObstacle;
use super::records::{FoundRecord, RecordSearchResult, find_records, parse_records_at};
use super::text::{RandomAccessText, TextWindow};

/// Number of consecutive records that must be valid at a cut, and must have equal names in both files; fewer at the end
/// of a file.
const RUN_RECORDS: usize = 8;
/// Maximum number of bytes of text in which [`RUN_RECORDS`] consecutive valid records are searched.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// Half of the size of the first window in which mates are searched, in bytes of plain text.
const MIN_WINDOW_REACH_BYTES: u64 = 4 << 20;
/// Half of the size of the largest window in which mates are searched, in bytes of plain text.
const MAX_WINDOW_REACH_BYTES: u64 = 256 << 20;
/// A window reaches at most this fraction (1/8) of the span's length, in bytes of the file, to either side.
const MAX_WINDOW_DIVISOR: u64 = 8;
/// Factor by which each window is larger than the one before.
const WINDOW_GROWTH: u64 = 4;
/// Assumed bytes of text per byte of BGZF.
const TEXT_PER_BGZF_BYTE: u64 = 4;
/// Maximum number of times that the distance to the next position is halved if mates are too far from their expected
/// position.
const MAX_HALVINGS: u32 = 4;
/// Bytes of text of a window that are searched in one step.
const SEARCH_STEP_BYTES: usize = 1 << 20;

/// Consecutive records of a file, and the text in which they were found.
struct RecordRun<'a> {
    text: TextWindow<'a>,
    records: Vec<FoundRecord>,
}

impl RecordRun<'_> {
    fn record_position(&self, record: usize) -> Option<VirtualOffset> {
        self.text.file_position(self.records[record].start)
    }
}

/// Result of searching for a cut: an I/O error, a position, or the reason why the file cannot be cut there.
type CutResult<T> = io::Result<Result<T, SplitObstacle>>;

/// Finds [`RUN_RECORDS`] consecutive records, or fewer at the end of a file, that start after about byte `near`.
fn find_run_near(part: &RandomAccessText, near: u64) -> CutResult<RecordRun<'_>> {
    let Some(mut text) = part.open_window_near(near)? else {
        return Ok(Err(SplitObstacle::NoRecords));
    };
    while text.bytes.len() < MAX_TEXT_BYTES {
        // Search again only when there is twice as much text, so that all searches together cost little.
        let enough = text.bytes.len() * 2;
        let mut more = text.read_more_text()?;
        while more && text.bytes.len() < enough {
            more = text.read_more_text()?;
        }
        match find_records(&text.bytes, text.near_index, RUN_RECORDS, text.reaches_file_end()) {
            RecordSearchResult::Found(records) => return Ok(Ok(RecordRun { text, records })),
            RecordSearchResult::NeedsMoreText if more => {}
            RecordSearchResult::NeedsMoreText | RecordSearchResult::NotFound => break,
        }
    }
    Ok(Err(SplitObstacle::NoRecords))
}

/// Finds a position between two records near byte `near` of a file of reads without mates.
pub(super) fn find_cut_between_unpaired_reads(part: &RandomAccessText, near: u64) -> CutResult<VirtualOffset> {
    Ok(find_run_near(part, near)?.and_then(|run| run.record_position(0).ok_or(SplitObstacle::NoRecords)))
}

/// Finds a position between two pairs near byte `near` of an interleaved file.
pub(super) fn find_cut_between_interleaved_pairs(part: &RandomAccessText, near: u64) -> CutResult<VirtualOffset> {
    Ok(find_run_near(part, near)?.and_then(|run| {
        let first = first_mate_index(&run.records)?;
        run.record_position(first).ok_or(SplitObstacle::NoRecords)
    }))
}

/// Index (0 or 1) of the first record that is read 1 of a pair, among records of an interleaved file: mates have equal
/// names, which differ from those of their neighbours.
fn first_mate_index(records: &[FoundRecord]) -> Result<usize, SplitObstacle> {
    let alike: Vec<bool> = records.windows(2).map(|two| two[0].name == two[1].name).collect();
    if alike.is_empty() || alike.windows(2).any(|two| two[0] == two[1]) {
        let all = alike.contains(&true) && !alike.contains(&false) && alike.len() > 1;
        return Err(if all { SplitObstacle::EqualNames } else { SplitObstacle::MatesNotFound });
    }
    Ok(usize::from(!alike[0]))
}

/// Finds a position between two records of the first file, near byte `near`, and the position between their mates in
/// the second file. `last` are earlier positions of mates in both files.
///
/// If the mates are too far from their expected position, intermediate positions are searched for first, in smaller
/// and smaller steps.
pub(super) fn find_cut_in_mate_files(
    parts: [&RandomAccessText; 2],
    near: u64,
    last: [VirtualOffset; 2],
) -> CutResult<[VirtualOffset; 2]> {
    let (mut known, mut halvings) = (last, 0);
    // Bytes of the second file per byte of the first: initially for the rest of both files, later for the last step.
    let mut rate = byte_ratio_between(
        last,
        parts.map(|part| VirtualOffset { file_offset: part.span().end_file_offset(), offset_in_block: 0 }),
    );
    loop {
        let step = near.saturating_sub(last[0].file_offset) >> halvings;
        let next = known[0].file_offset.saturating_add(step).min(near);
        let expected = known[1].file_offset + (next.saturating_sub(known[0].file_offset) as f64 * rate) as u64;
        match find_cut_in_mate_files_near(parts, next, expected)? {
            Ok(places) if next == near => return Ok(Ok(places)),
            Ok(places) if places[0] > known[0] && places[1] > known[1] => {
                rate = byte_ratio_between(known, places);
                known = places;
            }
            Err(SplitObstacle::MatesNotFound) if halvings < MAX_HALVINGS && step > MIN_WINDOW_REACH_BYTES => {
                halvings += 1
            }
            Ok(_) => return Ok(Err(SplitObstacle::MatesNotFound)),
            Err(why) => return Ok(Err(why)),
        }
    }
}

/// Ratio of the bytes of the second file to those of the first file, between two positions in both.
fn byte_ratio_between(from: [VirtualOffset; 2], to: [VirtualOffset; 2]) -> f64 {
    let [one, two] = [0, 1].map(|file| to[file].file_offset.saturating_sub(from[file].file_offset) as f64);
    two / one.max(1.0)
}

/// Like [`find_cut_in_mate_files`], with the mates searched for around byte `expected` of the second file only.
fn find_cut_in_mate_files_near(
    [one, two]: [&RandomAccessText; 2],
    near: u64,
    expected: u64,
) -> CutResult<[VirtualOffset; 2]> {
    let run = match find_run_near(one, near)? {
        Ok(run) => run,
        Err(why) => return Ok(Err(why)),
    };
    let names: Vec<&[u8]> = run.records.iter().map(|record| &record.name[..]).collect();
    if names.len() > 1 && names.iter().all(|name| name == &names[0]) {
        return Ok(Err(SplitObstacle::EqualNames));
    }
    let mates = find_names_near(two, expected, &names)?;
    Ok(run.record_position(0).zip(mates).map(|(first, second)| [first, second]).ok_or(SplitObstacle::MatesNotFound))
}

/// Finds the position in a file, near byte `around`, at which consecutive records with the names `names` start; `None`
/// if there is no such position or more than one.
fn find_names_near(part: &RandomAccessText, around: u64, names: &[&[u8]]) -> io::Result<Option<VirtualOffset>> {
    let span = part.span();
    let text_of = if part.is_bgzf() { TEXT_PER_BGZF_BYTE } else { 1 };
    let mut reach = MIN_WINDOW_REACH_BYTES / text_of;
    let last = (span.len_bytes() / MAX_WINDOW_DIVISOR).min(MAX_WINDOW_REACH_BYTES / text_of);
    loop {
        let from = around.saturating_sub(reach).max(span.start.file_offset);
        let to = around.saturating_add(reach).min(span.file_bytes);
        match find_name_runs(part, [from, to], names)?[..] {
            [place] => return Ok(Some(place)),
            [] if reach < last => reach = (reach * WINDOW_GROWTH).min(last),
            _ => return Ok(None),
        }
    }
}

/// Finds the positions in a window (`from..to`, bytes of the file) at which consecutive records with the names `names`
/// start. Returns at most two positions.
fn find_name_runs(part: &RandomAccessText, [from, to]: [u64; 2], names: &[&[u8]]) -> io::Result<Vec<VirtualOffset>> {
    let mut places = Vec::new();
    let (Some(mut text), Some(first)) = (part.open_window_near(from)?, names.first()) else {
        return Ok(places);
    };
    let header = [b"\n@", *first].concat();
    let finder = Finder::new(&header);
    loop {
        let mut more = true;
        while more && text.next_file_offset() < to && text.bytes.len() < SEARCH_STEP_BYTES {
            more = text.read_more_text()?;
        }
        let mut at = 0;
        while let Some(found) = finder.find(&text.bytes[at..]) {
            at += found + 1;
            if starts_with_names(&mut text, at, names)?
                && let Some(place) = text.file_position(at)
            {
                places.push(place);
                if places.len() == 2 {
                    return Ok(places);
                }
            }
        }
        if !more || text.next_file_offset() >= to {
            return Ok(places);
        }
        // Keep the end of the text, where a header may have started.
        text.drop_first_bytes(at.max(text.bytes.len().saturating_sub(header.len() - 1)));
    }
}

/// Whether the consecutive records that start at byte `at` of the text have exactly the names `names`.
fn starts_with_names(text: &mut TextWindow<'_>, at: usize, names: &[&[u8]]) -> io::Result<bool> {
    loop {
        match parse_records_at(&text.bytes, at, RUN_RECORDS, text.reaches_file_end()) {
            RecordSearchResult::Found(run) => {
                return Ok(run.iter().map(|record| &record.name[..]).eq(names.iter().copied()));
            }
            RecordSearchResult::NotFound => return Ok(false),
            RecordSearchResult::NeedsMoreText if text.bytes.len() - at > MAX_TEXT_BYTES => return Ok(false),
            // At the end of a file, no more text is needed.
            RecordSearchResult::NeedsMoreText if text.read_more_text()? || text.reaches_file_end() => {}
            RecordSearchResult::NeedsMoreText => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::DeflateEncoder;
    use flate2::{Compression, Crc};

    use super::*;

    /// BGZF with blocks of `block` uncompressed bytes and an end-of-file marker; and the start of each block.
    fn bgzf(text: &[u8], block: usize) -> (Vec<u8>, Vec<u64>) {
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        for part in text.chunks(block).chain([&b""[..]]) {
            starts.push(bytes.len() as u64);
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(part).unwrap();
            let packed = encoder.finish().unwrap();
            let mut crc = Crc::new();
            crc.update(part);
            bytes.extend([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0]);
            bytes.extend((packed.len() as u16 + 25).to_le_bytes());
            bytes.extend(packed);
            bytes.extend(crc.sum().to_le_bytes());
            bytes.extend((part.len() as u32).to_le_bytes());
        }
        (bytes, starts)
    }

    #[test]
    fn cuts_are_at_record_starts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads");
        let record = |i: usize| {
            let length = i * 37 % 90;
            format!("@r{i}\n{}\n+\n{}\n", "A".repeat(length), "@".repeat(length))
        };
        let records: Vec<String> = (0..2000).map(record).collect();
        let text = records.concat();
        let starts: Vec<usize> = records.iter().scan(0, |at, r| Some(std::mem::replace(at, *at + r.len()))).collect();
        for block in [0, 700, 5000, 60_000] {
            let (bytes, blocks) =
                if block == 0 { (text.clone().into_bytes(), Vec::new()) } else { bgzf(text.as_bytes(), block) };
            std::fs::write(&path, &bytes).unwrap();
            let part = RandomAccessText::open(&path, None).unwrap().unwrap();
            let places: Vec<VirtualOffset> = (starts.iter())
                .map(|&start| match block {
                    0 => VirtualOffset { file_offset: start as u64, offset_in_block: 0 },
                    _ => VirtualOffset { file_offset: blocks[start / block], offset_in_block: (start % block) as u16 },
                })
                .collect();
            let size = bytes.len() as u64;
            for near in (1..size).step_by(211).chain(size - 300..size) {
                let Ok(place) = find_cut_between_unpaired_reads(&part, near).unwrap() else {
                    // After the last record there is no cut.
                    let last = places.last().unwrap().file_offset;
                    assert!(near > last, "{near} of {size}");
                    continue;
                };
                assert!(places.contains(&place), "{block} {near} {place:?}");
                let off = if block == 0 { place.file_offset - near } else { place.file_offset.abs_diff(near) };
                assert!(off < 200 + block as u64, "{block} {near} {place:?}");
            }
            // There is a cut in the last block with text, if a record starts there.
            let last = blocks.len().wrapping_sub(2);
            if block > 0 && starts[starts.len() - 1] / block == last {
                assert_eq!(
                    find_cut_between_unpaired_reads(&part, blocks[last] + 1).unwrap().unwrap().file_offset,
                    blocks[last]
                );
            } else {
                assert!(block < 5000, "blocks that several records start in");
            }
        }
    }

    #[test]
    fn mates_in_one_file_are_recognised_by_their_names() {
        let first = |names: &[&str]| {
            let found = |name: &&str| FoundRecord { start: 0, name: name.as_bytes().to_vec() };
            first_mate_index(&names.iter().map(found).collect::<Vec<_>>())
        };
        assert_eq!(first(&["a", "a", "b", "b", "c"]), Ok(0));
        assert_eq!(first(&["a", "b", "b", "c"]), Ok(1));
        assert_eq!(first(&["a", "a"]), Ok(0));
        assert_eq!(first(&["a", "a", "a"]), Err(SplitObstacle::EqualNames));
        for names in [&["a"][..], &["a", "b", "c"], &["a", "a", "b", "c"], &["a", "a", "a", "b"]] {
            assert_eq!(first(names), Err(SplitObstacle::MatesNotFound), "{names:?}");
        }
    }
}
