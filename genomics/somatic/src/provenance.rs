//! Provenance of the results: command line, input files and reference.

use serde::{Deserialize, Serialize};

/// An input file of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// What the file is: the name of the sample whose reads it has, or `screen`, `panel`, `known`, `targets`, `gff` or
    /// `signatures`. The reference is not listed.
    pub role: String,
    /// Absolute path of the file; `-` for standard input.
    pub path: String,
    /// Size in bytes. `None` for a pipe.
    pub bytes: Option<u64>,
}

/// Command line and input files from which the results of a call were computed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// The command line as typed, quoted for a shell, without `--resume`.
    pub command_line: String,
    /// The input files, the reads first.
    pub inputs: Vec<InputFile>,
    /// The sequencing platform of each sample (`PL` of its read groups), if it is known.
    pub platforms: Vec<Option<String>>,
}

/// Identity of the sequences that calls are placed on: URL, assembly and MD5 sums.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ReferenceIdentity {
    /// `file:` URL of the reference; `None` if there is none and calls are placed on contigs of the normal.
    pub url: Option<String>,
    /// Name of the assembly, if it is known.
    pub assembly: Option<String>,
    /// MD5 sum of a text that lists all sequences in their order, one line `NAME TAB LENGTH TAB MD5` for each.
    pub md5: String,
    /// MD5 sum of the upper-case bases of each sequence (`M5` of SAM).
    #[serde(skip)]
    pub sequence_md5: Vec<String>,
}
