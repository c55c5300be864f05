//! Builds the header of a SAM file as samtools and Picard expect it (SAM specification, section 1.3).

use std::fmt::Write as _;

use crate::engine::Program;
use crate::sam::Contigs;

/// A read group: an `@RG` header line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadGroup {
    id: String,
    /// The `@RG` line without line end.
    line: String,
}

/// A read group description that is not valid, with the reason.
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
    /// A field that is not two letters, a colon and a value; a field that is given twice; or no `ID` field.
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

    /// Value of the field with this two-letter tag, for example `SM`.
    pub fn tag_value(&self, tag: &str) -> Option<&str> {
        self.line.split('\t').find_map(|field| field.strip_prefix(tag)?.strip_prefix(':'))
    }

    /// Value of the `ID` field, which is the value of the `RG` tag of its reads.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// The program and command line that wrote a SAM file, for its `@PG` line.
#[derive(Debug, Clone, Copy)]
pub struct CommandProgram<'a> {
    /// Program name (`ID` and `PN` of the `@PG` line).
    pub name: &'a str,
    /// Program version (`VN` of the `@PG` line).
    pub version: &'a str,
    /// The command line as typed (`CL` of the `@PG` line).
    pub command_line: &'a str,
}

/// The header of unsorted reads: `@HD`, `@SQ`, `@RG` (each distinct read group once), and two `@PG` lines, one for
/// the aligner and one for the command that ran it.
pub fn sam_header(contigs: &Contigs, groups: &[ReadGroup], engine: Program, command: CommandProgram<'_>) -> String {
    let mut text = "@HD\tVN:1.6\tSO:unsorted\tGO:query\n".to_owned();
    text.push_str(&contigs.header_lines());
    for (i, group) in groups.iter().enumerate() {
        if !groups[..i].contains(group) {
            text.push_str(&group.line);
            text.push('\n');
        }
    }
    let Program { name, version } = engine;
    let line: String = command.command_line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "@PG\tID:{name}\tPN:{name}\tVN:{version}");
    let _ = writeln!(text, "@PG\tID:{0}\tPN:{0}\tPP:{name}\tVN:{1}\tCL:{line}", command.name, command.version);
    text
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

    #[test]
    fn lines_in_the_order_that_samtools_likes() {
        let contigs = Contigs::new([("chr1".to_owned(), 7)]);
        let group = |text| ReadGroup::parse(text).unwrap();
        let groups = [group("ID:a"), group("ID:b\\tLB:l"), group("ID:a")];
        let command = CommandProgram { name: "genuma", version: "9", command_line: "genuma align\tx\n" };
        let text = sam_header(&contigs, &groups, Program { name: "engine", version: "1" }, command);
        assert_eq!(
            text,
            "@HD\tVN:1.6\tSO:unsorted\tGO:query\n@SQ\tSN:chr1\tLN:7\n@RG\tID:a\n@RG\tID:b\tLB:l\n\
             @PG\tID:engine\tPN:engine\tVN:1\n@PG\tID:genuma\tPN:genuma\tPP:engine\tVN:9\tCL:genuma align x \n"
        );
    }
}
