//! What the samples of a call are called: the normal, and one tumour or several of the same person.

use serde::{Deserialize, Serialize};

/// Names of the samples by number, the normal's first: the columns of the VCF and the read groups of the BAM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples(Vec<String>);

/// Name of the normal.
pub const NORMAL: &str = "NORMAL";
/// Name of a tumour that has none, with its number behind it where there are several.
pub const TUMOUR: &str = "TUMOR";

impl Default for Samples {
    /// One tumour without a name.
    fn default() -> Samples {
        Samples::of([None])
    }
}

impl Samples {
    /// Of tumours with names or without, at least one; the normal without.
    pub fn of(tumours: impl IntoIterator<Item = Option<String>>) -> Samples {
        Samples::named(None, tumours)
    }

    /// Of a normal and of tumours, at least one, with names or without.
    pub fn named(normal: Option<String>, tumours: impl IntoIterator<Item = Option<String>>) -> Samples {
        let tumours: Vec<Option<String>> = tumours.into_iter().collect();
        let several = tumours.len() > 1;
        let usual = |number: usize| if several { format!("{TUMOUR}_{number}") } else { TUMOUR.to_owned() };
        let named = (1..).zip(tumours).map(|(number, name)| name.unwrap_or_else(|| usual(number)));
        Samples(std::iter::once(normal.unwrap_or_else(|| NORMAL.to_owned())).chain(named).collect())
    }

    /// All names, the normal's first.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Names of the tumours.
    pub fn tumours(&self) -> &[String] {
        &self.0[1..]
    }

    /// How many samples there are, the normal among them.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: there is a normal.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are several tumours.
    pub fn several(&self) -> bool {
        self.tumours().len() > 1
    }

    /// What sentences call a sample.
    pub fn word(&self, sample: usize) -> String {
        match sample {
            0 => "normal".to_owned(),
            _ if self.several() => format!("tumour {}", self.0.get(sample).map_or("", |name| name)),
            _ => "tumour".to_owned(),
        }
    }
}
