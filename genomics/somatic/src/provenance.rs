//! Provenance of the results: command line, input files and reference.

use serde::{Deserialize, Serialize};

/// An input file of a call, with its size and modification time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// The sample whose reads the file has, or `screen`, `panel`, `known`, `targets` or `gff`.
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

/// Identity of the sequences that calls are placed on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ReferenceIdentity {
    /// `file:` URL of the reference; `None` if there is none and calls are placed on contigs of the normal.
    pub url: Option<String>,
    /// Name of the assembly, if it is known.
    pub assembly: Option<String>,
    /// MD5 sum of the names, lengths and MD5 sums of the sequences: of one line `NAME TAB LENGTH TAB MD5` for each, in
    /// their order.
    pub md5: String,
    /// MD5 sum of each sequence in upper case (`M5` of SAM).
    #[serde(skip)]
    pub sequence_md5: Vec<String>,
}
