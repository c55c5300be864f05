//! What kind of sequence false calls and misses lie in, by a BED.

use std::collections::{BTreeMap, BTreeSet, HashMap};
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
struct Asked<'a> {
    place: &'a Place,
    class: Class,
    miss: bool,
    /// Kinds that it lies in.
    kinds: BTreeSet<String>,
}

impl Kinds {
    /// False calls and misses by the lines of the BED at `path` that their positions are in; a position in lines of several kinds counts for each.
    ///
    /// # Errors
    /// The file cannot be read, or a line has not four columns.
    pub fn of(outcome: &Outcome, path: &Path) -> Result<Kinds> {
        let ask = |place, class, miss| Asked { place, class, miss, kinds: BTreeSet::new() };
        let calls = outcome.false_calls.iter().map(|call| ask(&call.place, call.class, false));
        let misses = outcome.misses.iter().map(|miss| ask(&miss.place, miss.class, true));
        let mut by_chrom: HashMap<&str, Vec<Asked<'_>>> = HashMap::new();
        for one in calls.chain(misses) {
            by_chrom.entry(&one.place.chrom).or_default().push(one);
        }
        by_chrom.values_mut().for_each(|asked| asked.sort_by_key(|one| one.place.pos));
        let mut kinds = BTreeMap::<String, Kind>::new();
        let mut file = BufReader::new(File::open(path).map_err(Error::io(path))?);
        let (mut line, mut number) = (String::new(), 0);
        while file.read_line(&mut line).map_err(Error::io(path))? > 0 {
            number += 1;
            let text = line.trim_end();
            if !text.is_empty() && !["#", "track ", "browser "].iter().any(|word| text.starts_with(word)) {
                let (chrom, start, end, name) = columns(text).ok_or_else(|| Error::Format {
                    path: path.into(),
                    line: number,
                    what: "is no line of a BED with names: sequence, start, end and kind, with tabs between"
                        .into(),
                })?;
                match kinds.get_mut(name) {
                    Some(kind) => kind.grow(end - start),
                    None => kinds.entry(name.to_owned()).or_default().grow(end - start),
                }
                // Positions count from 1, those of a BED from 0.
                let asked = by_chrom.get_mut(chrom).map(Vec::as_mut_slice).unwrap_or_default();
                let from = asked.partition_point(|one| one.place.pos as u64 <= start);
                let to = asked.partition_point(|one| one.place.pos as u64 <= end);
                for one in &mut asked[from..to] {
                    one.kinds.insert(name.to_owned());
                }
            }
            line.clear();
        }
        for one in by_chrom.values_mut().flatten() {
            if one.kinds.is_empty() {
                one.kinds.insert(ELSEWHERE.to_owned());
            }
            for name in &one.kinds {
                kinds.entry(name.clone()).or_default().add(one.class, one.miss);
            }
        }
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
    fn grow(&mut self, bases: u64) {
        *self.bases.get_or_insert(0) += bases;
    }

    fn add(&mut self, class: Class, miss: bool) {
        let of = if miss { &mut self.misses } else { &mut self.false_calls };
        of[match class {
            Class::Snv => 0,
            Class::Indel => 1,
            Class::Sv => 2,
        }] += 1;
    }
}

/// Sequence, start, end and name of a line.
fn columns(line: &str) -> Option<(&str, u64, u64, &str)> {
    let mut columns = line.split('\t');
    let chrom = columns.next()?;
    let [start, end] = [columns.next()?.parse().ok()?, columns.next()?.parse().ok()?];
    let name = columns.next().filter(|name| !name.is_empty())?;
    (start <= end).then_some((chrom, start, end, name))
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
        std::fs::write(
            &path,
            "# about\nchr1\t10\t20\talu\nchr1\t15\t20\ttract\t0\t+\nchr1\t10\t15\talu\nchr2\t0\t1000\talu\n",
        )
        .unwrap();
        let kinds = Kinds::of(&outcome(), &path).unwrap();
        let kind = |bases, false_calls| Kind { bases, false_calls, misses: [0; 3] };
        let expected = [
            ("alu", kind(Some(1015), [1, 1, 0])),
            ("elsewhere", kind(None, [1, 0, 1])),
            ("tract", kind(Some(5), [0, 1, 0])),
        ];
        assert_eq!(kinds.0, expected.map(|(name, kind)| (name.to_owned(), kind)).into());
        assert!(
            kinds.render().lines().any(|line| line.starts_with("elsewhere                    -")),
            "{}",
            kinds.render()
        );
        for wrong in ["chr1\t10\t20\n", "chr1 10 20 alu\n", "chr1\t1x\t20\talu\n", "chr1\t20\t10\talu\n"] {
            std::fs::write(&path, format!("chr1\t1\t2\talu\n{wrong}")).unwrap();
            assert!(
                Kinds::of(&outcome(), &path).unwrap_err().to_string().contains("line 2: is no line of a BED")
            );
        }
        assert!(Kinds::of(&outcome(), &folder.path().join("none")).is_err());
    }
}
