//! Programs genuma does not know: placeholders in their words say what is what.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use genuma_reads::AlignedOptions;

use crate::invocation::{
    Depends, Determinism, Error, Feed, Format, Invocation, Order, Output, Piece, Reads, Word,
};

const PLACES: [(&[u8], Piece); 5] = [
    (b"{reads1}", Piece::Reads1),
    (b"{reads2}", Piece::Reads2),
    (b"{reads}", Piece::Reads1),
    (b"{threads}", Piece::Threads),
    (b"{block}", Piece::Block),
];

/// Bases (bp) of a block for each thread where `{block}` asks for one.
const BLOCK: u64 = 10_000_000;

/// Understands a template. Its reads are named elsewhere, it writes SAM to standard output, one record for each read at least and in
/// the order of the reads, and answers read by read, or by blocks if it has `{block}`.
///
/// # Errors
/// `{reads2}` without `{reads1}`, or `{reads}` beside them.
pub(super) fn understand(given: &[OsString]) -> Result<Invocation, Error> {
    let program = given.first().and_then(|file| Path::new(file).file_name()).unwrap_or_default();
    let aligner = program.to_string_lossy().into_owned();
    let has = |place: &str| {
        given.iter().any(|word| word.as_bytes().windows(place.len()).any(|at| at == place.as_bytes()))
    };
    let feed = match ["{reads}", "{reads1}", "{reads2}"].map(has) {
        [false, false, false] => Feed::Stdin,
        [false, true, true] => Feed::Two,
        [true, false, false] => Feed::One,
        _ => {
            let why = "write {reads1} and {reads2} for mates in two files, or {reads} alone".to_owned();
            return Err(Error::Usage { aligner, why });
        }
    };
    let depends = match has("{block}") {
        true => {
            Depends::Blocks { bases: BLOCK, per_thread: true, even: true, least_reads: 0, numbered: false }
        }
        false => Depends::Nothing,
    };
    let why = "genuma does not know this program: that it answers read by read, in order, is taken on trust";
    Ok(Invocation {
        aligner,
        given: given.to_vec(),
        words: given.iter().map(|word| filled(word)).collect(),
        reads: Reads::Unnamed,
        aligned: AlignedOptions::default(),
        feed,
        strays: false,
        threads: if has("{threads}") { None } else { Some(1) },
        index: None,
        output: Output::Stdout,
        format: Format::Sam,
        depends,
        determinism: Determinism::Loose(why.to_owned()),
        order: Order::AsRead,
    })
}

/// A word with its placeholders taken out.
fn filled(word: &OsStr) -> Word {
    let (mut pieces, mut text, mut rest) = (Vec::new(), Vec::new(), word.as_bytes());
    while let Some((&first, behind)) = rest.split_first() {
        match PLACES.iter().find(|(place, _)| rest.starts_with(place)) {
            Some((place, piece)) => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(OsStr::from_bytes(&text).to_owned()));
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
        pieces.push(Piece::Text(OsStr::from_bytes(&text).to_owned()));
    }
    Word(pieces)
}
