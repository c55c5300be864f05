//! Reads from the index of a BAM or CRAM file how many bytes the reads of each part of a contig take.
//!
//! Formats: SAM specification, section 5.2 (BAI), CSI version 1, and CRAM specification, section 12 (crai).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::intervals::CumulativeWeight;

/// Length of the windows of the linear index of BAI, bp.
const BAI_WINDOW_BP: u64 = 1 << 14;
/// Number of the BAI bin that holds counts instead of reads.
const BAI_METADATA_BIN: u32 = 37450;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reason why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// There is no index.
    #[error("{}: the index is missing; make it with 'samtools index {0}'", .path.display())]
    Missing {
        /// The BAM or CRAM file.
        path: PathBuf,
    },
    /// The index cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The index.
        path: PathBuf,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// The index is damaged.
    #[error("{}: is not a valid index; make it again with samtools index", path.display())]
    Damaged {
        /// The index.
        path: PathBuf,
    },
}

/// Finds the index of a BAM or CRAM file, next to it.
///
/// # Errors
/// There is none.
pub fn find_index(reads: &Path) -> Result<PathBuf, IndexError> {
    let is_cram = reads.extension().is_some_and(|end| end.eq_ignore_ascii_case("cram"));
    let ends: &[&str] = if is_cram { &["crai"] } else { &["bai", "csi"] };
    let appended = ends.iter().map(|end| {
        let mut name = reads.as_os_str().to_owned();
        name.push(format!(".{end}"));
        PathBuf::from(name)
    });
    let replaced = ends.iter().map(|end| reads.with_extension(end));
    // I/O error ignored: reported as a missing index.
    appended.chain(replaced).find(|path| path.is_file()).ok_or_else(|| IndexError::Missing { path: reads.to_owned() })
}

/// Reads from an index the bytes of the reads of each contig, in the order of the header. Contigs at the end that the
/// index does not have are left out.
///
/// # Errors
/// The index cannot be read, or is damaged.
pub fn read_weights(index: &Path) -> Result<Vec<CumulativeWeight>, IndexError> {
    let io = |source| IndexError::Io { path: index.to_owned(), source };
    let damaged = || IndexError::Damaged { path: index.to_owned() };
    let mut bytes = std::fs::read(index).map_err(io)?;
    if bytes.starts_with(&GZIP_MAGIC) {
        let mut text = Vec::new();
        MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text).map_err(|_| damaged())?;
        bytes = text;
    }
    let weights = match index.extension().and_then(OsStr::to_str) {
        Some("crai") => parse_crai(&bytes),
        _ if bytes.starts_with(b"CSI\x01") => parse_csi(&mut Fields(&bytes[4..])),
        _ if bytes.starts_with(b"BAI\x01") => parse_bai(&mut Fields(&bytes[4..])),
        _ => None,
    };
    weights.ok_or_else(damaged)
}

/// Little-endian numbers of a binary index.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn skip(&mut self, num_bytes: usize) -> Option<&[u8]> {
        let (field, rest) = self.0.split_at_checked(num_bytes)?;
        self.0 = rest;
        Some(field)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.skip(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.skip(8)?.try_into().ok()?))
    }

    /// Position in the compressed file of the block of a virtual offset.
    fn block_offset(&mut self) -> Option<u64> {
        Some(self.u64()? >> 16)
    }

    /// The chunks of a bin: the position of their first and last block.
    fn chunks(&mut self) -> Option<Vec<(u64, u64)>> {
        (0..self.u32()?).map(|_| Some((self.block_offset()?, self.block_offset()?))).collect()
    }
}

fn parse_bai(fields: &mut Fields) -> Option<Vec<CumulativeWeight>> {
    let contig = |fields: &mut Fields| {
        let (mut windows, mut end) = (Vec::new(), 0);
        for _ in 0..fields.u32()? {
            let is_metadata = fields.u32()? == BAI_METADATA_BIN;
            let chunks = fields.chunks()?;
            end = chunks.into_iter().filter(|_| !is_metadata).map(|(_, to)| to).fold(end, u64::max);
        }
        for window in 0..u64::from(fields.u32()?) {
            windows.push((window * BAI_WINDOW_BP, fields.block_offset()?));
        }
        Some(weight_of_windows(windows, end, BAI_WINDOW_BP))
    };
    (0..fields.u32()?).map(|_| contig(fields)).collect()
}

fn parse_csi(fields: &mut Fields) -> Option<Vec<CumulativeWeight>> {
    let (min_shift, depth, aux_bytes) = (fields.u32()?, fields.u32()?, fields.u32()?);
    fields.skip(aux_bytes as usize)?;
    // Number of the first bin of a level.
    let first_bin = |level: u32| Some((1_u64.checked_shl(3 * level)? - 1) / 7);
    let metadata_bin = first_bin(depth.checked_add(1)?)? + 1;
    let window_bp = 1_u64.checked_shl(min_shift)?;
    let contig = |fields: &mut Fields| {
        let (mut windows, mut end) = (Vec::new(), 0);
        for _ in 0..fields.u32()? {
            let (bin, offset) = (u64::from(fields.u32()?), fields.block_offset()?);
            let chunks = fields.chunks()?;
            if bin == metadata_bin {
                continue;
            }
            end = chunks.into_iter().map(|(_, to)| to).fold(end, u64::max);
            let level = (0..=depth).rev().find(|&level| first_bin(level).is_some_and(|first| first <= bin))?;
            let bin_bp = 1_u64.checked_shl(min_shift.checked_add(3 * (depth - level))?)?;
            windows.push(((bin - first_bin(level)?).checked_mul(bin_bp)?, offset));
        }
        Some(weight_of_windows(windows, end, window_bp))
    };
    (0..fields.u32()?).map(|_| contig(fields)).collect()
}

/// Weight of a contig from the file position of the first read that overlaps each window, and the file position of the
/// end. A window without reads has the position of an earlier one, or is missing.
fn weight_of_windows(mut windows: Vec<(u64, u64)>, end: u64, window_bp: u64) -> CumulativeWeight {
    windows.sort_unstable();
    // Indexes of old programs have 0 for windows without reads.
    windows.retain(|(_, offset)| *offset > 0);
    let mut highest = 0;
    windows.retain(|&(_, offset)| {
        let is_higher = offset > highest;
        highest = highest.max(offset);
        is_higher
    });
    let Some(&(_, begin)) = windows.first() else { return CumulativeWeight::default() };
    let after = windows.iter().skip(1).map(|(pos, offset)| (Some(*pos), *offset)).chain([(None, end)]);
    let mut points = Vec::with_capacity(2 * windows.len());
    for (&(pos, offset), (next, next_offset)) in windows.iter().zip(after) {
        points.push((pos, (offset - begin) as f64));
        // The reads are in this window; the windows up to the next one have none.
        if next.is_none_or(|next| next > pos + window_bp) {
            points.push((pos + window_bp, next_offset.saturating_sub(begin) as f64));
        }
    }
    CumulativeWeight::from_points(points)
}

/// Lines of a crai: number of the contig, first position, length, container, slice, bytes of the slice.
fn parse_crai(bytes: &[u8]) -> Option<Vec<CumulativeWeight>> {
    let mut slices: BTreeMap<usize, Vec<(u64, u64, u64)>> = BTreeMap::new();
    for line in std::str::from_utf8(bytes).ok()?.lines() {
        let numbers: Vec<i64> = line.split('\t').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [contig, start, span, _, _, slice_bytes] = numbers[..] else { return None };
        // Unmapped reads have a negative number.
        if let Ok(contig) = usize::try_from(contig) {
            let first = u64::try_from(start.max(1) - 1).ok()?;
            slices.entry(contig).or_default().push((
                first,
                u64::try_from(span).ok()?,
                u64::try_from(slice_bytes).ok()?,
            ));
        }
    }
    let num_contigs = slices.last_key_value().map_or(0, |(contig, _)| contig + 1);
    let mut weights = vec![CumulativeWeight::default(); num_contigs];
    for (contig, mut slices) in slices {
        slices.sort_unstable();
        let (mut points, mut total) = (Vec::new(), 0);
        for (n, (start, span, slice_bytes)) in slices.iter().enumerate() {
            points.push((*start, total as f64));
            total += slice_bytes;
            if slices.get(n + 1).is_none_or(|next| next.0 > start + span) {
                points.push((start + span, total as f64));
            }
        }
        weights[contig] = CumulativeWeight::from_points(points);
    }
    Some(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[&[u8]]) -> Vec<u8> {
        numbers.concat()
    }

    fn weight(points: &[(u64, f64)]) -> CumulativeWeight {
        CumulativeWeight::from_points(points.to_vec())
    }

    #[test]
    fn a_bai_gives_the_bytes_of_its_windows() {
        let (n, at) = (|n: u32| n.to_le_bytes(), |block: u64| (block << 16 | 7).to_le_bytes());
        let index = bytes(&[
            &n(2),
            // Contig 1: a bin and the metadata, then five windows; the third and the fourth have no reads.
            &n(2),
            &n(4681),
            &n(1),
            &at(100),
            &at(900),
            &n(BAI_METADATA_BIN),
            &n(1),
            &at(5),
            &at(9_999),
            &n(5),
            &at(100),
            &at(400),
            &at(400),
            &at(400),
            &at(600),
            // Contig 2 has no reads.
            &n(0),
            &n(0),
        ]);
        let found = parse_bai(&mut Fields(&index)).expect("an index");
        let w = BAI_WINDOW_BP;
        let expected = weight(&[(0, 0.0), (w, 300.0), (2 * w, 500.0), (4 * w, 500.0), (5 * w, 800.0)]);
        assert_eq!(found, [expected, CumulativeWeight::default()]);
        assert_eq!(parse_bai(&mut Fields(&index[..index.len() - 9])), None);
    }

    #[test]
    fn a_csi_gives_the_bytes_of_its_bins() {
        let (n, at) = (|n: u32| n.to_le_bytes(), |block: u64| (block << 16).to_le_bytes());
        // Depth 1 with windows of 16 kb: bin 0 is the contig, bins 1 to 8 are windows, bin 10 the metadata.
        let index = bytes(&[
            &n(14),
            &n(1),
            &n(0),
            &n(1),
            &n(3),
            &n(1),
            &at(10),
            &n(1),
            &at(10),
            &at(30),
            &n(4),
            &at(30),
            &n(1),
            &at(30),
            &at(70),
            &n(10),
            &at(0),
            &n(1),
            &at(1),
            &at(9_999),
        ]);
        let w = 1 << 14;
        let found = parse_csi(&mut Fields(&index)).expect("an index");
        assert_eq!(found, [weight(&[(0, 0.0), (w, 20.0), (3 * w, 20.0), (4 * w, 60.0)])]);
    }

    #[test]
    fn a_crai_gives_the_bytes_of_its_slices() {
        let found = parse_crai(b"0\t1\t100\t1\t2\t50\n0\t201\t100\t1\t2\t30\n2\t11\t5\t1\t2\t9\n-1\t0\t0\t1\t2\t77\n")
            .expect("an index");
        let expected = [
            weight(&[(0, 0.0), (100, 50.0), (200, 50.0), (300, 80.0)]),
            CumulativeWeight::default(),
            weight(&[(10, 0.0), (15, 9.0)]),
        ];
        assert_eq!(found, expected);
        assert_eq!(parse_crai(b"0\t1\tx\n"), None);
    }

    #[test]
    fn a_missing_index_is_reported_with_the_command_that_makes_it() {
        let error = find_index(Path::new("/no/such.bam")).unwrap_err().to_string();
        assert_eq!(error, "/no/such.bam: the index is missing; make it with 'samtools index /no/such.bam'");
    }
}
