//! Where a lane can be cut: records in a row near a byte of its first file, and the same names in a row in its second.
//!
//! A name is looked for in the second file near the share of its bytes that the place in the first one has of that, in a window that widens until it is found. It has to
//! be followed by the names that follow in the first file, and to be found once in the window. The share is reckoned from the last place that is known in both files, for reads
//! 1 and 2 do not take the same share of their files everywhere.

use std::io;

use memchr::memmem::Finder;

use crate::span::Offset;

use super::WhyUncut;
use super::records::{Found, Look, find_run, run_at};
use super::text::{Part, Text};

/// Records in a row that have to be sound, and named alike in both files.
const RUN: usize = 8;
/// Text in which so many records are sought before there are none, in bytes.
const MOST_TEXT: usize = 16 << 20;
/// Half of the first window in which mates are sought and of the widest, in bytes of plain text; a share of the file beyond which a window does not widen either.
const FIRST_REACH: u64 = 4 << 20;
const LAST_REACH: u64 = 256 << 20;
const LARGEST_SHARE: u64 = 8;
/// How much wider each window is than the one before.
const WIDER: u64 = 4;
/// Bytes of text that one of BGZF is taken for.
const PACKED: u64 = 4;
/// How often the way from one place to the next is halved, where mates are too far from where they are expected.
const HALVINGS: u32 = 4;
/// Text of a window that is searched at once, in bytes.
const SEARCHED: usize = 1 << 20;

/// Records in a row in the midst of a file.
struct Run<'a> {
    text: Text<'a>,
    records: Vec<Found>,
}

impl Run<'_> {
    fn place(&self, record: usize) -> Option<Offset> {
        self.text.place(self.records[record].start)
    }
}

/// A place, or why there is none.
type Sought<T> = io::Result<Result<T, WhyUncut>>;

/// The next records of a file from about a byte of it on.
fn run_near(part: &Part, near: u64) -> Sought<Run<'_>> {
    let Some(mut text) = part.text_near(near)? else {
        return Ok(Err(WhyUncut::NoRecords));
    };
    while text.bytes.len() < MOST_TEXT {
        // Looked at when there is twice as much as the last time, so that all looks together cost little.
        let enough = text.bytes.len() * 2;
        let mut more = text.extend()?;
        while more && text.bytes.len() < enough {
            more = text.extend()?;
        }
        match find_run(&text.bytes, text.near, RUN, text.is_last()) {
            Look::Found(records) => return Ok(Ok(Run { text, records })),
            Look::Short if more => {}
            Look::Short | Look::Nothing => break,
        }
    }
    Ok(Err(WhyUncut::NoRecords))
}

/// A place between two records, near a byte of the file.
pub(super) fn single(part: &Part, near: u64) -> Sought<Offset> {
    Ok(run_near(part, near)?.and_then(|run| run.place(0).ok_or(WhyUncut::NoRecords)))
}

/// A place between two pairs of mates that lie in one file.
pub(super) fn interleaved(part: &Part, near: u64) -> Sought<Offset> {
    Ok(run_near(part, near)?.and_then(|run| {
        let first = first_of_pair(&run.records)?;
        run.place(first).ok_or(WhyUncut::NoRecords)
    }))
}

/// Which of the first two records in a row is the first of two mates: these have one name, which their neighbours have not.
fn first_of_pair(records: &[Found]) -> Result<usize, WhyUncut> {
    let alike: Vec<bool> = records.windows(2).map(|two| two[0].name == two[1].name).collect();
    if alike.is_empty() || alike.windows(2).any(|two| two[0] == two[1]) {
        let all = alike.contains(&true) && !alike.contains(&false) && alike.len() > 1;
        return Err(if all { WhyUncut::Alike } else { WhyUncut::NoMates });
    }
    Ok(usize::from(!alike[0]))
}

/// A place between two records of the first file, near a byte of it, and the place between their mates in the second; both files have mates at the `last` places too.
///
/// Where the mates are too far from where they are expected, places between the last ones and these are found first, nearer and nearer to the last ones.
pub(super) fn pair(parts: [&Part; 2], near: u64, last: [Offset; 2]) -> Sought<[Offset; 2]> {
    let (mut known, mut halvings) = (last, 0);
    // Bytes of the second file for one of the first: as in all that is left of them, and after a step as in that.
    let mut rate = rate_between(last, parts.map(|part| Offset { byte: part.span().end(), within: 0 }));
    loop {
        let step = near.saturating_sub(last[0].byte) >> halvings;
        let next = known[0].byte.saturating_add(step).min(near);
        let expected = known[1].byte + (next.saturating_sub(known[0].byte) as f64 * rate) as u64;
        match pair_near(parts, next, expected)? {
            Ok(places) if next == near => return Ok(Ok(places)),
            Ok(places) if places[0] > known[0] && places[1] > known[1] => {
                rate = rate_between(known, places);
                known = places;
            }
            Err(WhyUncut::NoMates) if halvings < HALVINGS && step > FIRST_REACH => halvings += 1,
            Ok(_) => return Ok(Err(WhyUncut::NoMates)),
            Err(why) => return Ok(Err(why)),
        }
    }
}

/// Bytes of the second file for one of the first, between two places in both.
fn rate_between(from: [Offset; 2], to: [Offset; 2]) -> f64 {
    let [one, two] = [0, 1].map(|file| to[file].byte.saturating_sub(from[file].byte) as f64);
    two / one.max(1.0)
}

/// Same as [`pair`], the mates sought from one byte of the second file on.
fn pair_near([one, two]: [&Part; 2], near: u64, expected: u64) -> Sought<[Offset; 2]> {
    let run = match run_near(one, near)? {
        Ok(run) => run,
        Err(why) => return Ok(Err(why)),
    };
    let names: Vec<&[u8]> = run.records.iter().map(|record| &record.name[..]).collect();
    if names.len() > 1 && names.iter().all(|name| name == &names[0]) {
        return Ok(Err(WhyUncut::Alike));
    }
    let mates = find_names(two, expected, &names)?;
    Ok(run.place(0).zip(mates).map(|(first, second)| [first, second]).ok_or(WhyUncut::NoMates))
}

/// Where in a file, around a byte of it, records of these names start; `None` when nowhere or not in one place only.
fn find_names(part: &Part, around: u64, names: &[&[u8]]) -> io::Result<Option<Offset>> {
    let span = part.span();
    let text_of = if part.is_packed() { PACKED } else { 1 };
    let mut reach = FIRST_REACH / text_of;
    let last = (span.bytes() / LARGEST_SHARE).min(LAST_REACH / text_of);
    loop {
        let from = around.saturating_sub(reach).max(span.from.byte);
        let to = around.saturating_add(reach).min(span.size);
        match places_of(part, [from, to], names)?[..] {
            [place] => return Ok(Some(place)),
            [] if reach < last => reach = (reach * WIDER).min(last),
            _ => return Ok(None),
        }
    }
}

/// Where in a window, of bytes of the file, records of these names start: up to two places.
fn places_of(part: &Part, [from, to]: [u64; 2], names: &[&[u8]]) -> io::Result<Vec<Offset>> {
    let mut places = Vec::new();
    let (Some(mut text), Some(first)) = (part.text_near(from)?, names.first()) else {
        return Ok(places);
    };
    let header = [b"\n@", *first].concat();
    let finder = Finder::new(&header);
    loop {
        let mut more = true;
        while more && text.next() < to && text.bytes.len() < SEARCHED {
            more = text.extend()?;
        }
        let mut at = 0;
        while let Some(found) = finder.find(&text.bytes[at..]) {
            at += found + 1;
            if has_names(&mut text, at, names)?
                && let Some(place) = text.place(at)
            {
                places.push(place);
                if places.len() == 2 {
                    return Ok(places);
                }
            }
        }
        if !more || text.next() >= to {
            return Ok(places);
        }
        // A header that has begun is found with the next text.
        text.forget(at.max(text.bytes.len().saturating_sub(header.len() - 1)));
    }
}

/// Whether the records that start at `at` have these names, and no other record follows if these are fewer than in other runs.
fn has_names(text: &mut Text<'_>, at: usize, names: &[&[u8]]) -> io::Result<bool> {
    loop {
        match run_at(&text.bytes, at, RUN, text.is_last()) {
            Look::Found(run) => {
                return Ok(run.iter().map(|record| &record.name[..]).eq(names.iter().copied()));
            }
            Look::Nothing => return Ok(false),
            Look::Short if text.bytes.len() - at > MOST_TEXT => return Ok(false),
            // In the last text of a file nothing is too short to tell.
            Look::Short if text.extend()? || text.is_last() => {}
            Look::Short => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::DeflateEncoder;
    use flate2::{Compression, Crc};

    use super::*;

    /// BGZF of blocks that hold so much each, and an end marker; where each block starts.
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
    fn a_cut_near_any_byte_is_where_a_record_starts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads");
        let record = |i: usize| {
            let length = i * 37 % 90;
            format!("@r{i}\n{}\n+\n{}\n", "A".repeat(length), "@".repeat(length))
        };
        let records: Vec<String> = (0..2000).map(record).collect();
        let text = records.concat();
        let starts: Vec<usize> =
            records.iter().scan(0, |at, r| Some(std::mem::replace(at, *at + r.len()))).collect();
        for block in [0, 700, 5000, 60_000] {
            let (bytes, blocks) = if block == 0 {
                (text.clone().into_bytes(), Vec::new())
            } else {
                bgzf(text.as_bytes(), block)
            };
            std::fs::write(&path, &bytes).unwrap();
            let part = Part::open(&path, None).unwrap().unwrap();
            let places: Vec<Offset> = (starts.iter())
                .map(|&start| match block {
                    0 => Offset { byte: start as u64, within: 0 },
                    _ => Offset { byte: blocks[start / block], within: (start % block) as u16 },
                })
                .collect();
            let size = bytes.len() as u64;
            for near in (1..size).step_by(211).chain(size - 300..size) {
                let Ok(place) = single(&part, near).unwrap() else {
                    // Only behind the last record there is none.
                    let last = places.last().unwrap().byte;
                    assert!(near > last, "{near} of {size}");
                    continue;
                };
                assert!(places.contains(&place), "{block} {near} {place:?}");
                let off = if block == 0 { place.byte - near } else { place.byte.abs_diff(near) };
                assert!(off < 200 + block as u64, "{block} {near} {place:?}");
            }
            // In the last block that holds something there is one, if a record starts there.
            let last = blocks.len().wrapping_sub(2);
            if block > 0 && starts[starts.len() - 1] / block == last {
                assert_eq!(single(&part, blocks[last] + 1).unwrap().unwrap().byte, blocks[last]);
            } else {
                assert!(block < 5000, "blocks that several records start in");
            }
        }
    }

    #[test]
    fn mates_in_one_file_are_told_by_their_names() {
        let first = |names: &[&str]| {
            let found = |name: &&str| Found { start: 0, name: name.as_bytes().to_vec() };
            first_of_pair(&names.iter().map(found).collect::<Vec<_>>())
        };
        assert_eq!(first(&["a", "a", "b", "b", "c"]), Ok(0));
        assert_eq!(first(&["a", "b", "b", "c"]), Ok(1));
        assert_eq!(first(&["a", "a"]), Ok(0));
        assert_eq!(first(&["a", "a", "a"]), Err(WhyUncut::Alike));
        for names in [&["a"][..], &["a", "b", "c"], &["a", "a", "b", "c"], &["a", "a", "a", "b"]] {
            assert_eq!(first(names), Err(WhyUncut::NoMates), "{names:?}");
        }
    }
}
