//! Parses command lines of unknown programs, in which placeholders stand for reads, threads and bases of a block.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use genuma_reads::AlignedOptions;

use crate::invocation::{
    CommandWord, Determinism, Error, Invocation, OutputFormat, OutputTarget, ReadDependence, ReadFiles, ReadInputMode,
    RecordOrder, WordPart,
};

const PLACEHOLDERS: [(&[u8], WordPart); 5] = [
    (b"{reads1}", WordPart::Reads1),
    (b"{reads2}", WordPart::Reads2),
    (b"{reads}", WordPart::Reads1),
    (b"{threads}", WordPart::Threads),
    (b"{block}", WordPart::BlockBases),
];

/// Number of bases per thread in a block of reads, for the placeholder `{block}`.
const BLOCK_BASES_PER_THREAD: u64 = 10_000_000;

/// Returns whether a word of the command line contains the placeholder `place`, such as `{threads}`.
fn contains_placeholder(given: &[OsString], place: &str) -> bool {
    given.iter().any(|word| word.as_bytes().windows(place.len()).any(|at| at == place.as_bytes()))
}

/// Returns whether a command line contains a placeholder for reads or for blocks of reads.
pub(super) fn has_read_or_block_placeholder(given: &[OsString]) -> bool {
    ["{reads}", "{reads1}", "{reads2}", "{block}"].iter().any(|place| contains_placeholder(given, place))
}

/// Splits the words of a command line into text and placeholders.
pub(crate) fn split_words_at_placeholders(given: &[OsString]) -> Vec<CommandWord> {
    given.iter().map(|word| split_placeholders(word)).collect()
}

/// Parses the command line of a program without a preset, in which placeholders such as `{threads}` stand for reads,
/// threads and bases of a block.
pub(super) fn parse_command_of_unknown_program(given: &[OsString]) -> Result<Invocation, Error> {
    let program = given.first().and_then(|file| Path::new(file).file_name()).unwrap_or_default();
    let aligner = program.to_string_lossy().into_owned();
    let has = |place: &str| contains_placeholder(given, place);
    let feed = match ["{reads}", "{reads1}", "{reads2}"].map(has) {
        [false, false, false] => ReadInputMode::Stdin,
        [false, true, true] => ReadInputMode::TwoFiles,
        [true, false, false] => ReadInputMode::OneFile,
        _ => {
            let why = "write {reads1} and {reads2} for mates in two files, or {reads} alone".to_owned();
            return Err(Error::Usage { aligner, why });
        }
    };
    let depends = match has("{block}") {
        true => ReadDependence::Blocks {
            bases: BLOCK_BASES_PER_THREAD,
            per_thread: true,
            even: true,
            min_reads: 0,
            numbered: false,
        },
        false => ReadDependence::Nothing,
    };
    let why = "genuma does not know this program and assumes that it aligns read by read, in input order";
    Ok(Invocation {
        aligner,
        given: given.to_vec(),
        words: split_words_at_placeholders(given),
        reads: ReadFiles::Unnamed,
        aligned: AlignedOptions::default(),
        feed,
        unpaired_in_interleaved: false,
        threads: if has("{threads}") { None } else { Some(1) },
        index: None,
        output: OutputTarget::Stdout,
        format: OutputFormat::Sam,
        depends,
        determinism: Determinism::Nondeterministic(why.to_owned()),
        order: RecordOrder::InputOrder,
    })
}

/// Splits a word into text and placeholders.
fn split_placeholders(word: &OsStr) -> CommandWord {
    let (mut pieces, mut text, mut rest) = (Vec::new(), Vec::new(), word.as_bytes());
    while let Some((&first, behind)) = rest.split_first() {
        match PLACEHOLDERS.iter().find(|(place, _)| rest.starts_with(place)) {
            Some((place, piece)) => {
                if !text.is_empty() {
                    pieces.push(WordPart::Text(OsStr::from_bytes(&text).to_owned()));
                    text.clear();
                }
                pieces.push(piece.clone());
                rest = &rest[place.len()..];
            }
            None => {
                text.push(first);
                rest = behind;
            }
        }
    }
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(WordPart::Text(OsStr::from_bytes(&text).to_owned()));
    }
    CommandWord(pieces)
}
