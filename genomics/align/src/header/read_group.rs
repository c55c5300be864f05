//! Read groups as they are given on the command line (`-R`).

use std::fmt::Write as _;

/// A read group: an `@RG` header line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadGroup {
    id: String,
    /// The `@RG` line without line end.
    pub(super) line: String,
}

/// Why a read group description is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read group '{text}' {problem}: write its fields as ID:lane1\\tSM:sample1")]
pub struct ReadGroupError {
    text: String,
    problem: String,
}

impl ReadGroup {
    /// Parses the fields of a read group. Fields are separated by tabs or by a backslash and a `t`; a leading `@RG`
    /// is optional. Example: `ID:lane1\tSM:sample1`.
    ///
    /// # Errors
    /// A field that is not a tag of two characters, a colon and a value; a field that is given twice; or no `ID` field.
    pub fn parse(text: &str) -> Result<ReadGroup, ReadGroupError> {
        let error = |problem: String| ReadGroupError { text: text.to_owned(), problem };
        let plain = text.replace("\\t", "\t");
        let mut line = "@RG".to_owned();
        let mut tags: Vec<&str> = Vec::new();
        let mut id = None;
        for field in plain.split('\t').skip(usize::from(plain.split('\t').next() == Some("@RG"))) {
            let invalid_field = || error(format!("has the field '{field}'"));
            let (tag, value) = field.split_once(':').ok_or_else(invalid_field)?;
            let is_valid_tag = tag.len() == 2
                && tag.starts_with(|c: char| c.is_ascii_alphabetic())
                && tag.chars().all(|c| c.is_ascii_alphanumeric());
            if !is_valid_tag || value.is_empty() || !value.chars().all(|c| matches!(c, ' '..='~')) {
                return Err(invalid_field());
            }
            if tags.contains(&tag) {
                return Err(error(format!("has {tag} twice")));
            }
            if tag == "ID" {
                id = Some(value.to_owned());
            }
            tags.push(tag);
            // Writing to a string cannot fail.
            let _ = write!(line, "\t{tag}:{value}");
        }
        match id {
            Some(id) => Ok(ReadGroup { id, line }),
            None => Err(error("has no ID".to_owned())),
        }
    }

    /// Value of the field with this two-letter tag, for example `SM`; `None` if the read group lacks the field.
    pub fn tag_value(&self, tag: &str) -> Option<&str> {
        self.line.split('\t').find_map(|field| field.strip_prefix(tag)?.strip_prefix(':'))
    }

    /// Value of the `ID` field, which is the value of the `RG` tag of its reads.
    pub fn id(&self) -> &str {
        &self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_groups_as_people_write_them() {
        for text in ["ID:a b\\tSM:x", "@RG\\tID:a b\\tSM:x", "@RG\tID:a b\tSM:x"] {
            let group = ReadGroup::parse(text).unwrap();
            assert_eq!((group.id(), group.line.as_str()), ("a b", "@RG\tID:a b\tSM:x"), "{text}");
        }
        for (text, problem) in [
            ("SM:x", "has no ID"),
            ("ID", "has the field 'ID'"),
            ("ID:", "has the field 'ID:'"),
            ("", "has the field ''"),
            ("ID:a\\tSAMPLE:x", "has the field 'SAMPLE:x'"),
            ("ID:a\\tID:b", "has ID twice"),
            ("ID:\u{e4}", "has the field"),
        ] {
            let said = ReadGroup::parse(text).unwrap_err().to_string();
            assert!(said.contains(problem) && said.contains("write its fields as ID:lane1\\tSM:sample1"), "{said}");
        }
    }
}
