//! Counts false calls and missed variants by class of genome region; a BED file gives the regions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Serialize;

use super::scores::{EvaluationResult, VariantClass, VariantPositionAndAlleles};
use crate::error::{Error, Result};

/// Number of false calls and missed variants in the regions of one class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RegionErrors {
    /// Total length of the BED intervals of the class; `None` for the class of variants outside all intervals.
    pub bases: Option<u64>,
    /// Numbers of false SNVs, indels and structural variants.
    pub false_calls: [usize; 3],
    /// Numbers of missed SNVs, indels and structural variants.
    pub misses: [usize; 3],
}

/// False calls and missed variants by region class. The class is the fourth column of the BED file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ErrorsByRegion(pub BTreeMap<String, RegionErrors>);

/// Name of the class of variants outside all BED intervals.
const OUTSIDE_ALL_REGIONS: &str = "elsewhere";

/// A false call or missed variant, with the classes of the regions that contain it.
struct EvaluatedVariant<'a> {
    place: &'a VariantPositionAndAlleles,
    class: VariantClass,
    is_miss: bool,
    /// Classes of the regions that contain the variant.
    region_classes: BTreeSet<String>,
}

impl ErrorsByRegion {
    /// Counts the false calls and missed variants of an evaluation by the BED intervals at `path` that contain their
    /// positions. A position in intervals of several classes counts for each class.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if a line is not a BED line with a
    /// region class in column 4.
    pub fn count_errors_by_region(outcome: &EvaluationResult, path: &Path) -> Result<ErrorsByRegion> {
        let ask =
            |place, class, miss| EvaluatedVariant { place, class, is_miss: miss, region_classes: BTreeSet::new() };
        let calls = outcome.false_calls.iter().map(|call| ask(&call.place, call.class, false));
        let misses = outcome.misses.iter().map(|miss| ask(&miss.place, miss.class, true));
        let mut by_chrom: HashMap<&str, Vec<EvaluatedVariant<'_>>> = HashMap::new();
        for one in calls.chain(misses) {
            by_chrom.entry(&one.place.chrom).or_default().push(one);
        }
        by_chrom.values_mut().for_each(|asked| asked.sort_by_key(|one| one.place.pos));
        let mut kinds = BTreeMap::<String, RegionErrors>::new();
        let mut file = BufReader::new(File::open(path).map_err(Error::add_path_to_error(path))?);
        let (mut line, mut number) = (String::new(), 0);
        while file.read_line(&mut line).map_err(Error::add_path_to_error(path))? > 0 {
            number += 1;
            let text = line.trim_end();
            if !text.is_empty() && !["#", "track ", "browser "].iter().any(|word| text.starts_with(word)) {
                let (chrom, start, end, name) = parse_bed_line(text).ok_or_else(|| Error::Format {
                    path: path.into(),
                    line: number,
                    what: "is not a BED line with a name: expected sequence, start, end and region class, separated by tabs"
                        .into(),
                })?;
                match kinds.get_mut(name) {
                    Some(kind) => kind.add_bases(end - start),
                    None => kinds.entry(name.to_owned()).or_default().add_bases(end - start),
                }
                // VCF positions are 1-based, BED positions 0-based.
                let asked = by_chrom.get_mut(chrom).map(Vec::as_mut_slice).unwrap_or_default();
                let from = asked.partition_point(|one| one.place.pos as u64 <= start);
                let to = asked.partition_point(|one| one.place.pos as u64 <= end);
                for one in &mut asked[from..to] {
                    one.region_classes.insert(name.to_owned());
                }
            }
            line.clear();
        }
        for one in by_chrom.values_mut().flatten() {
            if one.region_classes.is_empty() {
                one.region_classes.insert(OUTSIDE_ALL_REGIONS.to_owned());
            }
            for name in &one.region_classes {
                kinds.entry(name.clone()).or_default().count_error(one.class, one.is_miss);
            }
        }
        Ok(ErrorsByRegion(kinds))
    }

    /// Formats the counts as a text table.
    pub fn format_table(&self) -> String {
        let mut out = String::from("\nregion                     Mbp   false SNV INDEL SV    missed SNV INDEL SV\n");
        for (name, RegionErrors { bases, false_calls: [fs, fi, fv], misses: [ms, mi, mv] }) in &self.0 {
            let mbp = bases.map_or("-".to_owned(), |bases| format!("{:.1}", bases as f64 / 1e6));
            let _ = writeln!(out, "{name:<22} {mbp:>7} {fs:>11} {fi:>5} {fv:>2} {ms:>13} {mi:>5} {mv:>2}");
        }
        out
    }
}

impl RegionErrors {
    fn add_bases(&mut self, bases: u64) {
        *self.bases.get_or_insert(0) += bases;
    }

    fn count_error(&mut self, class: VariantClass, miss: bool) {
        let of = if miss { &mut self.misses } else { &mut self.false_calls };
        of[match class {
            VariantClass::Snv => 0,
            VariantClass::Indel => 1,
            VariantClass::Sv => 2,
        }] += 1;
    }
}

/// Parses contig, start, end and name of a BED line; `None` if the line is malformed.
fn parse_bed_line(line: &str) -> Option<(&str, u64, u64, &str)> {
    let mut columns = line.split('\t');
    let chrom = columns.next()?;
    let [start, end] = [columns.next()?.parse().ok()?, columns.next()?.parse().ok()?];
    let name = columns.next().filter(|name| !name.is_empty())?;
    (start <= end).then_some((chrom, start, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::scores::{FalseCall, UniqueOrRepeat};

    fn outcome() -> EvaluationResult {
        let place =
            |pos| VariantPositionAndAlleles { chrom: "chr1".into(), pos, reference: "A".into(), alternate: "C".into() };
        let call = |(pos, class)| FalseCall {
            class,
            part: UniqueOrRepeat::Repeat,
            place: place(pos),
            quality: "9".into(),
            filter: "PASS".into(),
            note: String::new(),
        };
        let calls =
            [(10, VariantClass::Snv), (11, VariantClass::Snv), (20, VariantClass::Indel), (21, VariantClass::Sv)];
        EvaluationResult { false_calls: calls.map(call).into(), ..EvaluationResult::default() }
    }

    #[test]
    fn calls_count_for_the_lines_they_are_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.bed");
        // BED starts are 0-based, ends exclusive: the first line contains positions 11 to 20.
        std::fs::write(
            &path,
            "# about\nchr1\t10\t20\talu\nchr1\t15\t20\ttract\t0\t+\nchr1\t10\t15\talu\nchr2\t0\t1000\talu\n",
        )
        .unwrap();
        let kinds = ErrorsByRegion::count_errors_by_region(&outcome(), &path).unwrap();
        let kind = |bases, false_calls| RegionErrors { bases, false_calls, misses: [0; 3] };
        let expected = [
            ("alu", kind(Some(1015), [1, 1, 0])),
            ("elsewhere", kind(None, [1, 0, 1])),
            ("tract", kind(Some(5), [0, 1, 0])),
        ];
        assert_eq!(kinds.0, expected.map(|(name, kind)| (name.to_owned(), kind)).into());
        assert!(
            kinds.format_table().lines().any(|line| line.starts_with("elsewhere                    -")),
            "{}",
            kinds.format_table()
        );
        for wrong in ["chr1\t10\t20\n", "chr1 10 20 alu\n", "chr1\t1x\t20\talu\n", "chr1\t20\t10\talu\n"] {
            std::fs::write(&path, format!("chr1\t1\t2\talu\n{wrong}")).unwrap();
            assert!(
                ErrorsByRegion::count_errors_by_region(&outcome(), &path)
                    .unwrap_err()
                    .to_string()
                    .contains("line 2: is not a BED line")
            );
        }
        assert!(ErrorsByRegion::count_errors_by_region(&outcome(), &folder.path().join("none")).is_err());
    }
}
