//! Sets of CPU or NUMA node numbers in the kernel's list format, for example `0-3,8`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Exclusive upper limit of the numbers in an [`IdSet`]. Chosen: larger than the CPU count of any kernel, small enough
/// to list all numbers.
const ID_LIMIT: u32 = 1 << 16;

/// A set of CPU or NUMA node numbers, sorted. Text and JSON form: `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IdSet(BTreeSet<u32>);

/// Error: a text is not a list of CPU or node numbers. The field is the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a list of numbers such as 0-3,8")]
pub struct ParseIdSetError(String);

impl IdSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether `id` is in the set.
    pub fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    /// Adds `id` to the set.
    pub fn insert(&mut self, id: u32) {
        self.0.insert(id);
    }

    /// Iterates over the numbers in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        self.0.iter().copied()
    }

    /// Number of elements in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set has no numbers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest number in the set, `None` if the set is empty.
    pub fn smallest_id(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// The numbers that are in both sets.
    pub fn intersection(&self, other: &IdSet) -> IdSet {
        IdSet(self.0.intersection(&other.0).copied().collect())
    }

    /// The numbers of this set that are not in `other`.
    pub fn difference(&self, other: &IdSet) -> IdSet {
        IdSet(self.0.difference(&other.0).copied().collect())
    }

    /// Whether every number of this set is also in `other`.
    pub fn is_subset(&self, other: &IdSet) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<u32> for IdSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        IdSet(ids.into_iter().collect())
    }
}

impl<const N: usize> From<[u32; N]> for IdSet {
    fn from(ids: [u32; N]) -> Self {
        ids.into_iter().collect()
    }
}

impl From<IdSet> for String {
    fn from(set: IdSet) -> String {
        set.to_string()
    }
}

impl TryFrom<String> for IdSet {
    type Error = ParseIdSetError;

    fn try_from(text: String) -> Result<Self, ParseIdSetError> {
        text.parse()
    }
}

impl FromStr for IdSet {
    type Err = ParseIdSetError;

    /// Parses the kernel's list format (`Documentation/admin-guide/cputopology.rst`). Empty text gives the empty set.
    fn from_str(text: &str) -> Result<Self, ParseIdSetError> {
        let invalid = || ParseIdSetError(text.trim().to_owned());
        let number = |word: &str| match word.trim().parse::<u32>() {
            Ok(id) if id < ID_LIMIT => Ok(id),
            _ => Err(invalid()),
        };
        let mut set = BTreeSet::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if last < first {
                return Err(invalid());
            }
            set.extend(first..=last);
        }
        Ok(IdSet(set))
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ids = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = ids.next() {
            let mut last = first;
            while ids.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        for text in ["", "0", "0-3", "0,2,5", "0-3,8-11,64", "7,9"] {
            let set: IdSet = text.parse().expect("a list");
            assert_eq!(set.to_string(), text);
        }
        let set: IdSet = " 3,1-2\n".parse().expect("a list");
        assert_eq!(set, IdSet::from([1, 2, 3]));
        assert_eq!(set.to_string(), "1-3");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["x", "1-", "-1", "3-1", "1,,2", "0-99999999", "1 2"] {
            assert_eq!(text.parse::<IdSet>(), Err(ParseIdSetError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn sets_are_cut_and_compared() {
        let (a, b) = (IdSet::from([0, 1, 2, 5]), IdSet::from([1, 5, 9]));
        assert_eq!(a.intersection(&b), IdSet::from([1, 5]));
        assert_eq!(a.difference(&b), IdSet::from([0, 2]));
        assert!(a.intersection(&b).is_subset(&b) && !a.is_subset(&b));
        assert_eq!((a.smallest_id(), a.len(), IdSet::new().is_empty()), (Some(0), 4, true));
    }
}
