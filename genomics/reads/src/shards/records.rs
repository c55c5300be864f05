//! Finds FASTQ records, and their names, in a text that may start anywhere in a file.
//!
//! A record of four lines can be recognised without reading the file from its start: the line after a header is bases,
//! and the line after qualities is a header, which starts with `@`, as no line of bases does. So a line of qualities
//! that starts with `@` or `+` is not mistaken for a header or separator.

use crate::fastq::{is_graphic_ascii, is_read_base, template_name};

/// A record found in a text: its position and its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundRecord {
    pub(super) start: usize,
    pub(super) name: Vec<u8>,
}

/// Result of searching for records in a part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordSearchResult<T> {
    Found(T),
    /// More text is needed to decide.
    NeedsMoreText,
    NotFound,
}

/// Finds the first `count` consecutive records that start at or after byte `from` of the text, after a line end.
/// `last` is whether the text extends to the end of its file; then fewer records may be found.
pub(super) fn find_records(text: &[u8], from: usize, count: usize, last: bool) -> RecordSearchResult<Vec<FoundRecord>> {
    let behind = from.saturating_sub(1);
    for end in memchr::memchr_iter(b'\n', &text[behind.min(text.len())..]) {
        match parse_records_at(text, behind + end + 1, count, last) {
            RecordSearchResult::NotFound => {}
            found => return found,
        }
    }
    if last { RecordSearchResult::NotFound } else { RecordSearchResult::NeedsMoreText }
}

/// Parses `count` consecutive records that start at byte `start` of the text.
pub(super) fn parse_records_at(
    text: &[u8],
    start: usize,
    count: usize,
    last: bool,
) -> RecordSearchResult<Vec<FoundRecord>> {
    let (mut found, mut at) = (Vec::with_capacity(count), start);
    while found.len() < count {
        if last && !found.is_empty() && text[at..].iter().all(|b| matches!(b, b'\r' | b'\n')) {
            break;
        }
        match record_at(text, at, last) {
            RecordSearchResult::Found((name, end)) => {
                found.push(FoundRecord { start: at, name });
                at = end;
            }
            RecordSearchResult::NeedsMoreText => return RecordSearchResult::NeedsMoreText,
            RecordSearchResult::NotFound => return RecordSearchResult::NotFound,
        }
    }
    RecordSearchResult::Found(found)
}

/// Parses the record that starts at byte `at` of the text. Returns its name and the position after it.
fn record_at(text: &[u8], at: usize, last: bool) -> RecordSearchResult<(Vec<u8>, usize)> {
    let short = || if last { RecordSearchResult::NotFound } else { RecordSearchResult::NeedsMoreText };
    let mut lines = LineIter { text, at, last };
    let Some(header) = lines.next() else {
        return if text.get(at).is_none_or(|&b| b == b'@') { short() } else { RecordSearchResult::NotFound };
    };
    let Some(header) = header.strip_prefix(b"@") else {
        return RecordSearchResult::NotFound;
    };
    let Some(seq) = lines.next() else {
        return short();
    };
    if !seq.iter().all(|&b| is_read_base(b)) {
        return RecordSearchResult::NotFound;
    }
    let Some(plus) = lines.next() else {
        return short();
    };
    if !plus.starts_with(b"+") {
        return RecordSearchResult::NotFound;
    }
    let Some(qual) = lines.next() else {
        return short();
    };
    if qual.len() != seq.len() || !qual.iter().all(|&b| is_graphic_ascii(b)) {
        return RecordSearchResult::NotFound;
    }
    RecordSearchResult::Found((template_name(header).to_vec(), lines.at))
}

/// Iterates over the lines of a text, without their line ends.
struct LineIter<'a> {
    text: &'a [u8],
    at: usize,
    /// Whether the text extends to the end of its file. The last line of a file may have no line end.
    last: bool,
}

impl<'a> Iterator for LineIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.at..)?;
        let line = match memchr::memchr(b'\n', rest) {
            Some(end) => &rest[..end],
            None if self.last && !rest.is_empty() => rest,
            None => return None,
        };
        self.at = (self.at + line.len() + 1).min(self.text.len());
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(look: RecordSearchResult<Vec<FoundRecord>>) -> Vec<(usize, String)> {
        match look {
            RecordSearchResult::Found(run) => {
                run.into_iter().map(|f| (f.start, String::from_utf8(f.name).unwrap())).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_next_record_is_found_from_any_offset() {
        // Misleading letters are at every possible position.
        let records = [
            "@a/1 1:N\nACGT\n+\n@+@+\n",
            "@b/1\nA\n+b/1\n@\n",
            "@@c\nAC\r\n+@\n+@\n",
            "@d\n\n+\n\n",
            "@+e 2:Y\tx\nNN\n+\n++\n",
            "@f\nACGTA\n+\n@@@@@",
        ];
        let all = records.concat();
        let starts: Vec<usize> = records.iter().scan(0, |at, r| Some(std::mem::replace(at, *at + r.len()))).collect();
        let called = ["a", "b", "@c", "d", "+e", "f"];
        for (text, tail) in [(all.clone(), ""), (all.clone(), "\n"), (all.clone(), "\r\n\n")] {
            let text = text + tail;
            for from in 1..=starts[5] {
                let next = starts.iter().position(|&start| start >= from).unwrap();
                let expected: Vec<(usize, String)> =
                    (next..6.min(next + 3)).map(|i| (starts[i], called[i].to_owned())).collect();
                assert_eq!(names(find_records(text.as_bytes(), from, 3, true)), expected, "from {from}");
            }
            for from in starts[5] + 1..text.len() {
                assert_eq!(find_records(text.as_bytes(), from, 3, true), RecordSearchResult::NotFound, "from {from}");
            }
        }
        // With less text, the search either needs more text or finds the same records.
        for end in 0..all.len() {
            match find_records(&all.as_bytes()[..end], 3, 2, false) {
                RecordSearchResult::Found(run) => assert_eq!([run[0].start, run[1].start], [starts[1], starts[2]]),
                look => assert!(look == RecordSearchResult::NeedsMoreText && end < starts[3], "{end}"),
            }
        }
    }

    #[test]
    fn text_that_is_not_fastq_has_no_records() {
        for text in ["\n@a\nACGT\n+\nFFF\n", "\n>a\nACGT\n", "\n@a\nAC-T\n+\nFFFF\n", "\n@a\nA\nA\n+\nFF\n", "", "@"] {
            assert_eq!(find_records(text.as_bytes(), 0, 1, true), RecordSearchResult::NotFound, "{text}");
        }
    }
}
