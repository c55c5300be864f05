//! What kind of sequence false calls and misses lie in, by a BED.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Serialize;

use super::score::{Class, Outcome, Place};
use crate::error::{Error, Result};

/// What lies in sequence of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// Bases of the BED; of what is in none of its lines they are not known.
    pub bases: Option<u64>,
    /// False calls: SNVs, indels, structural variants.
    pub false_calls: [usize; 3],
    /// Misses, likewise.
    pub misses: [usize; 3],
}

/// Kinds by name: the fourth column of the BED.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Kinds(pub BTreeMap<String, Kind>);

/// Name of what is in no line.
const ELSEWHERE: &str = "elsewhere";

/// One false call or miss.
struct Asked {
    /// From 0.
    pos: usize,
    class: Class,
    miss: bool,
    known: bool,
}

impl Kinds {
    /// False calls and misses by the lines of the BED at `path` that their positions are in; a position in lines of several kinds counts for each.
    ///
    /// # Errors
    /// The file cannot be read, or a line has not four columns.
    pub fn of(outcome: &Outcome, path: &Path) -> Result<Kinds> {
        let mut by_chrom: HashMap<&str, Vec<Asked>> = HashMap::new();
        let ask = |place: &Place, class, miss| Asked {
            pos: place.pos.saturating_sub(1),
            class,
            miss,
            known: false,
        };
        for call in &outcome.false_calls {
            by_chrom.entry(&call.place.chrom).or_default().push(ask(&call.place, call.class, false));
        }
        for miss in &outcome.misses {
            by_chrom.entry(&miss.place.chrom).or_default().push(ask(&miss.place, miss.class, true));
        }
        by_chrom.values_mut().for_each(|asked| asked.sort_by_key(|one| one.pos));
        let mut kinds = BTreeMap::<String, Kind>::new();
        let mut text = BufReader::new(File::open(path).map_err(Error::io(path))?);
        let (mut line, mut number) = (String::new(), 0);
        while text.read_line(&mut line).map_err(Error::io(path))? > 0 {
            number += 1;
            let text = line.trim_end();
            if !(text.is_empty()
                || text.starts_with('#')
                || text.starts_with("track")
                || text.starts_with("browser"))
            {
                let (chrom, start, end, name) = columns(text).ok_or_else(|| Error::Format {
                    path: path.into(),
                    line: number,
                    what: "is no line of a BED with names: sequence, start, end and kind, with tabs between"
                        .into(),
                })?;
                if !kinds.contains_key(name) {
                    kinds.insert(name.to_owned(), Kind::default());
                }
                let kind = kinds.get_mut(name);
                let asked = by_chrom.get_mut(chrom).map(Vec::as_mut_slice).unwrap_or_default();
                let from = asked.partition_point(|one| one.pos < start);
                let to = asked.partition_point(|one| one.pos < end).max(from);
                if let Some(kind) = kind {
                    *kind.bases.get_or_insert(0) += end.saturating_sub(start) as u64;
                    for one in &mut asked[from..to] {
                        one.known = true;
                        kind.add(one);
                    }
                }
            }
            line.clear();
        }
        let unknown = by_chrom.values().flatten().filter(|one| !one.known);
        unknown.for_each(|one| kinds.entry(ELSEWHERE.to_owned()).or_default().add(one));
        Ok(Kinds(kinds))
    }

    /// As a table.
    pub fn render(&self) -> String {
        let mut out =
            String::from("\nkind                       Mbp   false SNV INDEL SV    missed SNV INDEL SV\n");
        for (name, Kind { bases, false_calls: [fs, fi, fv], misses: [ms, mi, mv] }) in &self.0 {
            let mbp = bases.map_or("-".to_owned(), |bases| format!("{:.1}", bases as f64 / 1e6));
            let _ = writeln!(out, "{name:<22} {mbp:>7} {fs:>11} {fi:>5} {fv:>2} {ms:>13} {mi:>5} {mv:>2}");
        }
        out
    }
}

impl Kind {
    fn add(&mut self, one: &Asked) {
        let of = if one.miss { &mut self.misses } else { &mut self.false_calls };
        of[match one.class {
            Class::Snv => 0,
            Class::Indel => 1,
            Class::Sv => 2,
        }] += 1;
    }
}

fn columns(line: &str) -> Option<(&str, usize, usize, &str)> {
    let mut columns = line.split('\t');
    let (chrom, start, end) = (columns.next()?, columns.next()?, columns.next()?);
    let name = columns.next().filter(|name| !name.is_empty())?;
    Some((chrom, start.parse().ok()?, end.parse().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::score::{False, Part};

    fn outcome() -> Outcome {
        let place = |pos| Place { chrom: "chr1".into(), pos, reference: "A".into(), alternate: "C".into() };
        let call = |(pos, class)| False {
            class,
            part: Part::Repeat,
            place: place(pos),
            quality: "9".into(),
            filter: "PASS".into(),
            note: String::new(),
        };
        let calls = [(10, Class::Snv), (11, Class::Snv), (20, Class::Indel), (21, Class::Sv)];
        Outcome { false_calls: calls.map(call).into(), ..Outcome::default() }
    }

    #[test]
    fn calls_count_for_the_lines_they_are_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.bed");
        // From 0, the end not in it: positions 11 to 20 are in the first line.
        std::fs::write(&path, "# about\nchr1\t10\t20\talu\nchr1\t15\t20\ttract\t0\t+\nchr2\t0\t1000\talu\n")
            .unwrap();
        let kinds = Kinds::of(&outcome(), &path).unwrap();
        let kind = |bases, false_calls| Kind { bases, false_calls, misses: [0; 3] };
        let expected = [
            ("alu", kind(Some(1010), [1, 1, 0])),
            ("elsewhere", kind(None, [1, 0, 1])),
            ("tract", kind(Some(5), [0, 1, 0])),
        ];
        assert_eq!(kinds.0, expected.map(|(name, kind)| (name.to_owned(), kind)).into());
        assert!(
            kinds.render().lines().any(|line| line.starts_with("elsewhere                    -")),
            "{}",
            kinds.render()
        );
        for wrong in ["chr1\t10\t20\n", "chr1 10 20 alu\n", "chr1\t1x\t20\talu\n"] {
            std::fs::write(&path, format!("chr1\t1\t2\talu\n{wrong}")).unwrap();
            assert!(
                Kinds::of(&outcome(), &path).unwrap_err().to_string().contains("line 2: is no line of a BED")
            );
        }
        assert!(Kinds::of(&outcome(), &folder.path().join("none")).is_err());
    }
}
