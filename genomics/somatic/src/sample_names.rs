//! Names of the samples of a call: the normal and one or more tumours of the same person.

use serde::{Deserialize, Serialize};

/// Names of the samples, indexed by sample number. The normal is number 0. The names are VCF columns and BAM read
/// groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleNames {
    names: Vec<String>,
    /// Whether there is a normal. Without one, the reference takes its place as sample 0.
    has_normal: bool,
}

/// Name of sample 0 in a tumour-only call. The output has no column for it.
const REFERENCE_NAME: &str = "REFERENCE";

/// Name of the normal sample if the user gives none.
pub const DEFAULT_NORMAL_NAME: &str = "NORMAL";
/// Name of a tumour sample if the user gives none. With several tumours, `_` and the tumour's number are appended.
pub const DEFAULT_TUMOUR_NAME: &str = "TUMOR";

impl Default for SampleNames {
    /// A normal and one tumour, both with default names.
    fn default() -> SampleNames {
        SampleNames::from_tumour_names([None])
    }
}

impl SampleNames {
    /// Builds sample names from the names of the tumours, at least one. `None` gives a tumour its default name. The
    /// normal has its default name.
    pub fn from_tumour_names(tumours: impl IntoIterator<Item = Option<String>>) -> SampleNames {
        SampleNames::from_normal_and_tumour_names(None, tumours)
    }

    /// Builds sample names from the name of the normal and the names of the tumours, at least one. `None` gives a
    /// sample its default name.
    pub fn from_normal_and_tumour_names(
        normal: Option<String>,
        tumours: impl IntoIterator<Item = Option<String>>,
    ) -> SampleNames {
        let tumours: Vec<Option<String>> = tumours.into_iter().collect();
        let several = tumours.len() > 1;
        let usual = |number: usize| {
            if several { format!("{DEFAULT_TUMOUR_NAME}_{number}") } else { DEFAULT_TUMOUR_NAME.to_owned() }
        };
        let named = (1..).zip(tumours).map(|(number, name)| name.unwrap_or_else(|| usual(number)));
        let normal = normal.unwrap_or_else(|| DEFAULT_NORMAL_NAME.to_owned());
        SampleNames { names: std::iter::once(normal).chain(named).collect(), has_normal: true }
    }

    /// Returns the names for a tumour-only call: the reference takes the place of the normal as sample 0.
    #[must_use]
    pub fn replace_normal_by_reference(self) -> SampleNames {
        let tumours = self.names.into_iter().skip(1);
        SampleNames { names: std::iter::once(REFERENCE_NAME.to_owned()).chain(tumours).collect(), has_normal: false }
    }

    /// Whether there is a normal.
    pub fn has_normal(&self) -> bool {
        self.has_normal
    }

    /// Names of the samples that have a column in the output: the normal first, if there is one.
    pub fn output_sample_names(&self) -> &[String] {
        &self.names[usize::from(!self.has_normal)..]
    }

    /// Names of all samples, sample 0 (the normal or the reference) first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Names of the tumours, in the order of the `--tumor` options.
    pub fn tumour_names(&self) -> &[String] {
        &self.names[1..]
    }

    /// Number of samples, including sample 0 (the normal or the reference).
    pub fn num_samples(&self) -> usize {
        self.names.len()
    }

    /// Whether the call has more than one tumour.
    pub fn has_several_tumours(&self) -> bool {
        self.tumour_names().len() > 1
    }

    /// Name of a sample in messages: `normal`, `reference`, `tumour`, or `tumour NAME` if there are several tumours.
    pub fn name_in_messages(&self, sample: usize) -> String {
        match sample {
            0 if self.has_normal => "normal".to_owned(),
            0 => "reference".to_owned(),
            _ if self.has_several_tumours() => format!("tumour {}", self.names.get(sample).map_or("", |name| name)),
            _ => "tumour".to_owned(),
        }
    }
}
