//! Records in the midst of a text: where the next one starts, and the names of some in a row.
//!
//! A record of four lines can be told wherever one begins to read: the line after a header is bases, and that after a line of qualities is a header, which starts with `@`
//! as no line of bases does. So lines of qualities may start with `@` or `+`.

use crate::fastq::{is_iupac, is_printable, template_name};

/// A record found in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it starts.
    pub(super) start: usize,
    /// Template name.
    pub(super) name: Vec<u8>,
}

/// What is at a place of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look<T> {
    Found(T),
    /// It takes more text to tell.
    Short,
    Nothing,
}

/// The first `count` records in a row that start at `from` or after it, behind a line end. Fewer if the text, which is then the `last` of its file, ends with them.
pub(super) fn find_run(text: &[u8], from: usize, count: usize, last: bool) -> Look<Vec<Found>> {
    let behind = from.saturating_sub(1);
    for end in memchr::memchr_iter(b'\n', &text[behind.min(text.len())..]) {
        match run_at(text, behind + end + 1, count, last) {
            Look::Nothing => {}
            found => return found,
        }
    }
    if last { Look::Nothing } else { Look::Short }
}

/// Same for records of which the first starts at `start`.
pub(super) fn run_at(text: &[u8], start: usize, count: usize, last: bool) -> Look<Vec<Found>> {
    let (mut found, mut at) = (Vec::with_capacity(count), start);
    while found.len() < count {
        if last && !found.is_empty() && text[at..].iter().all(|b| matches!(b, b'\r' | b'\n')) {
            break;
        }
        match record_at(text, at, last) {
            Look::Found((name, end)) => {
                found.push(Found { start: at, name });
                at = end;
            }
            Look::Short => return Look::Short,
            Look::Nothing => return Look::Nothing,
        }
    }
    Look::Found(found)
}

/// The name of the record that starts at `at`, and where it ends.
fn record_at(text: &[u8], at: usize, last: bool) -> Look<(Vec<u8>, usize)> {
    let short = || if last { Look::Nothing } else { Look::Short };
    let mut lines = Lines { text, at, last };
    let Some(header) = lines.next() else {
        return if text.get(at).is_none_or(|&b| b == b'@') { short() } else { Look::Nothing };
    };
    let Some(header) = header.strip_prefix(b"@") else {
        return Look::Nothing;
    };
    let Some(seq) = lines.next() else {
        return short();
    };
    if !seq.iter().all(|&b| is_iupac(b)) {
        return Look::Nothing;
    }
    let Some(plus) = lines.next() else {
        return short();
    };
    if !plus.starts_with(b"+") {
        return Look::Nothing;
    }
    let Some(qual) = lines.next() else {
        return short();
    };
    if qual.len() != seq.len() || !qual.iter().all(|&b| is_printable(b)) {
        return Look::Nothing;
    }
    Look::Found((template_name(header).to_vec(), lines.at))
}

/// Lines without their ends.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    /// The text ends its file, whose last line may lack its end.
    last: bool,
}

impl<'a> Iterator for Lines<'a> {
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

    fn names(look: Look<Vec<Found>>) -> Vec<(usize, String)> {
        match look {
            Look::Found(run) => {
                run.into_iter().map(|f| (f.start, String::from_utf8(f.name).unwrap())).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_next_record_is_found_from_any_byte() {
        // Every letter that misleads stands where it may.
        let records = [
            "@a/1 1:N\nACGT\n+\n@+@+\n",
            "@b/1\nA\n+b/1\n@\n",
            "@@c\nAC\r\n+@\n+@\n",
            "@d\n\n+\n\n",
            "@+e 2:Y\tx\nNN\n+\n++\n",
            "@f\nACGTA\n+\n@@@@@",
        ];
        let all = records.concat();
        let starts: Vec<usize> =
            records.iter().scan(0, |at, r| Some(std::mem::replace(at, *at + r.len()))).collect();
        let called = ["a", "b", "@c", "d", "+e", "f"];
        for (text, tail) in [(all.clone(), ""), (all.clone(), "\n"), (all.clone(), "\r\n\n")] {
            let text = text + tail;
            for from in 1..=starts[5] {
                let next = starts.iter().position(|&start| start >= from).unwrap();
                let expected: Vec<(usize, String)> =
                    (next..6.min(next + 3)).map(|i| (starts[i], called[i].to_owned())).collect();
                assert_eq!(names(find_run(text.as_bytes(), from, 3, true)), expected, "from {from}");
            }
            for from in starts[5] + 1..text.len() {
                assert_eq!(find_run(text.as_bytes(), from, 3, true), Look::Nothing, "from {from}");
            }
        }
        // With less text, it either asks for more or finds the same.
        for end in 0..all.len() {
            match find_run(&all.as_bytes()[..end], 3, 2, false) {
                Look::Found(run) => assert_eq!([run[0].start, run[1].start], [starts[1], starts[2]]),
                look => assert!(look == Look::Short && end < starts[3], "{end}"),
            }
        }
    }

    #[test]
    fn what_is_no_fastq_has_no_records() {
        for text in
            ["\n@a\nACGT\n+\nFFF\n", "\n>a\nACGT\n", "\n@a\nAC-T\n+\nFFFF\n", "\n@a\nA\nA\n+\nFF\n", "", "@"]
        {
            assert_eq!(find_run(text.as_bytes(), 0, 1, true), Look::Nothing, "{text}");
        }
    }
}
