//! The header of an alignment: what samtools and those after it expect to find there (SAM specification, section 1.3).

use std::fmt::Write as _;

use crate::engine::Program;
use crate::sam::Contigs;

/// An `@RG` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadGroup {
    id: String,
    /// Without line end.
    line: String,
}

/// What is wrong with a read group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read group '{text}' {fault}: write its fields as ID:lane1\\tSM:sample1")]
pub struct ReadGroupError {
    text: String,
    fault: String,
}

impl ReadGroup {
    /// From fields divided by tabs or by `\t` in two letters, with `@RG` before them or without: `ID:lane1\tSM:sample1`.
    ///
    /// # Errors
    /// A field that is not two letters, a colon and a value, a field given twice, or no `ID`.
    pub fn parse(text: &str) -> Result<ReadGroup, ReadGroupError> {
        let wrong = |fault: String| ReadGroupError { text: text.to_owned(), fault };
        let plain = text.replace("\\t", "\t");
        let mut line = "@RG".to_owned();
        let mut tags: Vec<&str> = Vec::new();
        let mut id = None;
        for field in plain.split('\t').skip(usize::from(plain.split('\t').next() == Some("@RG"))) {
            let bad = || wrong(format!("has the field '{field}'"));
            let (tag, value) = field.split_once(':').ok_or_else(bad)?;
            let letters = tag.len() == 2
                && tag.starts_with(|c: char| c.is_ascii_alphabetic())
                && tag.chars().all(|c| c.is_ascii_alphanumeric());
            if !letters || value.is_empty() || !value.chars().all(|c| matches!(c, ' '..='~')) {
                return Err(bad());
            }
            if tags.contains(&tag) {
                return Err(wrong(format!("has {tag} twice")));
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
            None => Err(wrong("has no ID".to_owned())),
        }
    }

    /// What a field of two letters says, such as `SM`.
    pub fn field(&self, tag: &str) -> Option<&str> {
        self.line.split('\t').find_map(|field| field.strip_prefix(tag)?.strip_prefix(':'))
    }

    /// What the `RG` tag of its reads says.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Who wrote the file, for a `@PG` line of its own.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// `ID` and `PN`.
    pub name: &'a str,
    /// `VN`.
    pub version: &'a str,
    /// `CL`.
    pub line: &'a str,
}

/// The header of reads in the order of their files: `@HD`, `@SQ`, `@RG` (each read group once), and two `@PG`: of the engine,
/// and of the command that ran it.
pub fn header(contigs: &Contigs, groups: &[ReadGroup], engine: Program, command: Command<'_>) -> String {
    let mut text = "@HD\tVN:1.6\tSO:unsorted\tGO:query\n".to_owned();
    text.push_str(&contigs.header_lines());
    for (i, group) in groups.iter().enumerate() {
        if !groups[..i].contains(group) {
            text.push_str(&group.line);
            text.push('\n');
        }
    }
    let Program { name, version } = engine;
    let line: String = command.line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "@PG\tID:{name}\tPN:{name}\tVN:{version}");
    let _ =
        writeln!(text, "@PG\tID:{0}\tPN:{0}\tPP:{name}\tVN:{1}\tCL:{line}", command.name, command.version);
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
        for (text, fault) in [
            ("SM:x", "has no ID"),
            ("ID", "has the field 'ID'"),
            ("ID:", "has the field 'ID:'"),
            ("", "has the field ''"),
            ("ID:a\\tSAMPLE:x", "has the field 'SAMPLE:x'"),
            ("ID:a\\tID:b", "has ID twice"),
            ("ID:\u{e4}", "has the field"),
        ] {
            let said = ReadGroup::parse(text).unwrap_err().to_string();
            assert!(
                said.contains(fault) && said.contains("write its fields as ID:lane1\\tSM:sample1"),
                "{said}"
            );
        }
    }

    #[test]
    fn lines_in_the_order_that_samtools_likes() {
        let contigs = Contigs::new([("chr1".to_owned(), 7)]);
        let group = |text| ReadGroup::parse(text).unwrap();
        let groups = [group("ID:a"), group("ID:b\\tLB:l"), group("ID:a")];
        let command = Command { name: "genuma", version: "9", line: "genuma align\tx\n" };
        let text = header(&contigs, &groups, Program { name: "engine", version: "1" }, command);
        assert_eq!(
            text,
            "@HD\tVN:1.6\tSO:unsorted\tGO:query\n@SQ\tSN:chr1\tLN:7\n@RG\tID:a\n@RG\tID:b\tLB:l\n\
             @PG\tID:engine\tPN:engine\tVN:1\n@PG\tID:genuma\tPN:genuma\tPP:engine\tVN:9\tCL:genuma align x \n"
        );
    }
}
