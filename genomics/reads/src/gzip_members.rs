//! Decompression of gzip files with one or more members. Zero bytes after the last member are skipped: they are
//! padding, for example from tapes (gzip manual, "tapes").

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Reads the uncompressed content of a gzip file with one or more members.
pub(crate) struct MultiMemberGzipReader<R> {
    state: MemberState<R>,
}

enum MemberState<R> {
    Inside(Box<GzDecoder<R>>),
    Between(R),
    /// Placeholder while the state changes.
    Moved,
}

impl<R: BufRead> MultiMemberGzipReader<R> {
    /// Creates a reader of a stream that starts with a gzip member.
    pub(crate) fn new(compressed: R) -> MultiMemberGzipReader<R> {
        MultiMemberGzipReader { state: MemberState::Inside(Box::new(GzDecoder::new(compressed))) }
    }

    /// Creates a reader of the rest of a stream after a gzip member: further members or padding.
    pub(crate) fn new_after_member(compressed: R) -> MultiMemberGzipReader<R> {
        MultiMemberGzipReader { state: MemberState::Between(compressed) }
    }

    /// Returns the compressed input, positioned after the bytes that were read.
    pub(crate) fn into_inner(self) -> Option<R> {
        match self.state {
            MemberState::Inside(member) => Some(member.into_inner()),
            MemberState::Between(compressed) => Some(compressed),
            MemberState::Moved => None,
        }
    }
}

impl<R: BufRead> Read for MultiMemberGzipReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.state {
                MemberState::Inside(member) => match member.read(buf)? {
                    0 => {}
                    n => return Ok(n),
                },
                MemberState::Between(compressed) => {
                    if !skip_padding(compressed)? {
                        return Ok(0);
                    }
                }
                MemberState::Moved => return Ok(0),
            }
            self.state = match std::mem::replace(&mut self.state, MemberState::Moved) {
                MemberState::Inside(member) => MemberState::Between(member.into_inner()),
                MemberState::Between(compressed) => MemberState::Inside(Box::new(GzDecoder::new(compressed))),
                MemberState::Moved => MemberState::Moved,
            };
        }
    }
}

/// Skips zero bytes; returns true if another byte follows. Zero bytes before another member are an error, not padding.
fn skip_padding(compressed: &mut impl BufRead) -> io::Result<bool> {
    let mut skipped = false;
    loop {
        let bytes = match compressed.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_end = zeros < bytes.len();
        skipped |= zeros > 0;
        compressed.consume(zeros);
        if is_end {
            let message = "data after zero bytes at the end of a member";
            return if skipped { Err(io::Error::new(io::ErrorKind::InvalidData, message)) } else { Ok(true) };
        }
    }
}
