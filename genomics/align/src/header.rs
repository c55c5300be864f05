//! Builds the header of a SAM file as samtools and Picard expect it (SAM specification, section 1.3).

mod read_group;

use std::fmt::Write as _;

use crate::engine::AlignerNameAndVersion;
use crate::sam::Contigs;

pub use read_group::{ReadGroup, ReadGroupError};

/// The program that wrote a SAM file, and its command line, for the `@PG` line.
#[derive(Debug, Clone, Copy)]
pub struct ProgramWithCommandLine<'a> {
    /// Program name (`ID` and `PN` of the `@PG` line).
    pub name: &'a str,
    /// Program version (`VN` of the `@PG` line).
    pub version: &'a str,
    /// The command line as typed (`CL` of the `@PG` line).
    pub command_line: &'a str,
}

/// Builds the header of a file of unsorted reads: `@HD`, `@SQ`, `@RG` (each distinct read group once), and two `@PG`
/// lines, one for the aligner and one for the command that ran it.
pub fn format_unsorted_sam_header(
    contigs: &Contigs,
    groups: &[ReadGroup],
    engine: AlignerNameAndVersion,
    command: ProgramWithCommandLine<'_>,
) -> String {
    let mut text = "@HD\tVN:1.6\tSO:unsorted\tGO:query\n".to_owned();
    text.push_str(&contigs.format_sq_header_lines());
    for (i, group) in groups.iter().enumerate() {
        if !groups[..i].contains(group) {
            text.push_str(&group.line);
            text.push('\n');
        }
    }
    let AlignerNameAndVersion { name, version } = engine;
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
    fn lines_in_the_order_that_samtools_likes() {
        let contigs = Contigs::new([("chr1".to_owned(), 7)]);
        let group = |text| ReadGroup::parse(text).unwrap();
        let groups = [group("ID:a"), group("ID:b\\tLB:l"), group("ID:a")];
        let command = ProgramWithCommandLine { name: "genuma", version: "9", command_line: "genuma align\tx\n" };
        let text = format_unsorted_sam_header(
            &contigs,
            &groups,
            AlignerNameAndVersion { name: "engine", version: "1" },
            command,
        );
        assert_eq!(
            text,
            "@HD\tVN:1.6\tSO:unsorted\tGO:query\n@SQ\tSN:chr1\tLN:7\n@RG\tID:a\n@RG\tID:b\tLB:l\n\
             @PG\tID:engine\tPN:engine\tVN:1\n@PG\tID:genuma\tPN:genuma\tPP:engine\tVN:9\tCL:genuma align x \n"
        );
    }
}
