//! Divides the reads into shards of nearly equal size that separate processes can read.
//!
//! Each lane that can be divided is cut into as many slices as there are shards, with nearly equal numbers of bytes,
//! and each shard gets one slice. A cut is a position between two records or two pairs (`shards/records.rs`); in two
//! mate files it is between the same two pairs, which are found by their names (`shards/cut_points.rs`). Finding a
//! cut reads a few MB of text around it (`shards/text.rs`), never a whole file. A gzip file that is not BGZF has no
//! random access: such a lane is assigned as a whole to the smallest shard.
//!
//! A slice is defined by its start and end in each file ([`FileSpan`](crate::FileSpan)). All readers of lanes accept
//! slices and check mates as usual.

mod text;

mod records;

mod cut_points;

use std::cmp::Reverse;
use std::fmt;
use std::path::Path;

use crate::compression::CompressionFormat;
use crate::error::Error;
use crate::file_span::{FileSpan, VirtualOffset};
use crate::lane::{Lane, LaneFiles, LaneSlice};
use crate::pipe::is_regular_file;

use text::RandomAccessText;

/// Minimum size in bytes of a slice in each file: the maximum size of a BGZF block.
const MIN_SLICE_BYTES: u64 = 64 << 10;
/// Positions at which a cut is tried, in this order: distances from the ideal position, as fractions of a slice.
const CUT_OFFSETS: [f64; 3] = [0.0, 0.125, -0.125];
/// Number of cuts of a lane that may fail before no more cuts are tried.
const MAX_FAILED_CUTS: usize = 2;

/// The lanes of a call divided into shards, each for one task of a distributed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardPlan {
    /// The lanes of each shard, whole or sliced, in the order of the input lanes. No shard is empty.
    pub shards: Vec<Vec<Lane>>,
    /// Requested number of shards.
    pub requested: usize,
    /// Lanes that were cut into fewer slices than requested.
    pub under_split_lanes: Vec<UnderSplitLane>,
}

impl ShardPlan {
    /// A sentence that explains why there are fewer shards than requested; `None` if there are not fewer.
    pub fn explain_fewer_shards(&self) -> Option<String> {
        let made = self.shards.len();
        let shards = if made == 1 { "shard" } else { "shards" };
        (made < self.requested).then(|| {
            format!(
                "{made} {shards} instead of {}: the reads cannot be divided into more (the warnings of the lanes give the reasons)",
                self.requested
            )
        })
    }
}

/// A lane that was cut into fewer slices than requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderSplitLane {
    /// The lane as it was given.
    pub lane: Lane,
    /// Number of slices; 1 if the lane was not cut.
    pub num_slices: usize,
    /// Why the lane could not be cut into more slices.
    pub reason: SplitObstacle,
}

impl fmt::Display for UnderSplitLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<String> = self.lane.paths().map(|path| path.display().to_string()).collect();
        write!(f, "{}: ", paths.join(" and "))?;
        match self.num_slices {
            1 => write!(f, "not divided: {}", self.reason),
            slices => write!(f, "divided into only {slices} slices: {}", self.reason),
        }
    }
}

/// Why a lane cannot be cut, or only into fewer slices than requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SplitObstacle {
    /// The input is a pipe, a device or the standard input.
    #[error("it is not a regular file, so it can only be read from its start")]
    NotRegular,
    /// The input is compressed, but is not BGZF, so it has no random access.
    #[error("{0} that is not BGZF can only be read from its start: compress the file with bgzip")]
    Compressed(CompressionFormat),
    /// The input is BAM, CRAM or BINSEQ, where mates may be anywhere in the file.
    #[error("mates may be anywhere in a BAM, CRAM or BINSEQ file; for more shards give several files, or BGZF FASTQ")]
    Aligned,
    /// The input is FASTA or another format.
    #[error("it is not FASTQ")]
    NotFastq,
    /// The file is too small for more slices.
    #[error("it is too small for more")]
    TooSmall,
    /// There are no FASTQ records near the ideal position of a cut.
    #[error("there are no records of four lines where it would be divided")]
    NoRecords,
    /// Consecutive reads have equal names, so that mates cannot be recognised.
    #[error(
        "read names are not unique where it would be divided, so the same pair cannot be found in both files, or mates cannot be recognised"
    )]
    EqualNames,
    /// The read names at a cut of the first file are not found in the second file, or consecutive reads of an
    /// interleaved file are not mates.
    #[error(
        "read 1 and read 2 do not match near the place where it would be divided: if they are not in the same order \
         (in two files, or alternating in an interleaved file), correct this before the call"
    )]
    MatesNotFound,
}

/// Divides lanes into `n` shards (at least one). A lane that can be cut into `n` slices of nearly equal size on disk
/// gives one slice to each shard. Whole lanes, and slices of lanes that can only be cut into fewer, are assigned one
/// by one to the shard that is then the smallest, the largest first. There are fewer than `n` shards if there are not
/// enough slices. The result depends only on the files and `n`.
///
/// ```
/// use genuma_reads::{Lane, LaneFiles, NORMAL_SAMPLE, split_lanes_into_shards};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("reads.fq");
/// # std::fs::write(&path, (0..20_000).map(|i| format!("@r{i}\nACGT\n+\nFFFF\n")).collect::<String>())?;
/// let lanes = [Lane::with_whole_files(NORMAL_SAMPLE, LaneFiles::Single(path))];
/// let plan = split_lanes_into_shards(&lanes, 2)?;
/// let [first, second] = &plan.shards[..] else { panic!("two shards") };
/// assert_eq!(first[0].slice.unwrap().first_file.end, Some(second[0].slice.unwrap().first_file.start));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A file is missing or cannot be read. Errors in the reads are reported by [`check_lanes`](crate::check_lanes).
pub fn split_lanes_into_shards(lanes: &[Lane], n: usize) -> Result<ShardPlan, Error> {
    let n = n.max(1);
    let (mut bins, mut rest, mut uncut) = (vec![ShardBuilder::default(); n], Vec::new(), Vec::new());
    for (number, lane) in lanes.iter().enumerate() {
        let (slices, why) = slice_lane(lane, n)?;
        let mut pieces = Vec::new();
        for lane in slices {
            pieces.push(SizedLane { lane_index: number, disk_bytes: lane.disk_bytes()?, lane });
        }
        if let Some(why) = why {
            uncut.push(UnderSplitLane { lane: lane.clone(), num_slices: pieces.len(), reason: why });
        }
        if pieces.len() == n {
            bins.iter_mut().zip(pieces).for_each(|(bin, piece)| bin.push(piece));
        } else {
            rest.extend(pieces);
        }
    }
    // A stable sort keeps the order of equal sizes.
    rest.sort_by_key(|piece| Reverse(piece.disk_bytes));
    for piece in rest {
        if let Some(bin) = bins.iter_mut().min_by_key(|bin| (bin.disk_bytes, bin.lanes.len())) {
            bin.push(piece);
        }
    }
    let filled = bins.into_iter().filter(|bin| !bin.lanes.is_empty());
    Ok(ShardPlan { shards: filled.map(ShardBuilder::into_lanes).collect(), requested: n, under_split_lanes: uncut })
}

/// A lane or a slice of a lane, with its size.
#[derive(Debug, Clone)]
struct SizedLane {
    /// Index of the lane in the input.
    lane_index: usize,
    disk_bytes: u64,
    lane: Lane,
}

/// A shard to which lanes and slices are added, and its size.
#[derive(Debug, Clone, Default)]
struct ShardBuilder {
    disk_bytes: u64,
    lanes: Vec<SizedLane>,
}

impl ShardBuilder {
    fn push(&mut self, piece: SizedLane) {
        self.disk_bytes += piece.disk_bytes;
        self.lanes.push(piece);
    }

    fn into_lanes(mut self) -> Vec<Lane> {
        let from = |lane: &Lane| lane.slice.map(|slice| slice.first_file.start);
        self.lanes.sort_by_key(|piece| (piece.lane_index, from(&piece.lane)));
        self.lanes.into_iter().map(|piece| piece.lane).collect()
    }
}

/// Cuts a lane into `n` slices, or into fewer and returns the reason. A lane of a reference genome, and any lane if
/// `n` is 1, stays whole without a reason.
fn slice_lane(lane: &Lane, n: usize) -> Result<(Vec<Lane>, Option<SplitObstacle>), Error> {
    let whole = |why| Ok((vec![lane.clone()], why));
    if n == 1 {
        return whole(None);
    }
    if let LaneFiles::Aligned(_) = lane.files {
        return whole(Some(SplitObstacle::Aligned));
    }
    if let LaneFiles::Reference(_) = lane.files {
        return whole(None);
    }
    let mut parts = Vec::new();
    for (path, span) in lane.paths_with_spans() {
        match open_random_access_text(path, span)? {
            Ok(part) => parts.push(part),
            Err(why) => return whole(Some(why)),
        }
    }
    let room = parts.iter().map(|part| part.span().len_bytes() / MIN_SLICE_BYTES).min().unwrap_or(0);
    let slices = room.clamp(1, n as u64);
    let (cuts, failed) = find_cuts(lane, &parts, slices)?;
    let why = failed.or((slices < n as u64).then_some(SplitObstacle::TooSmall));
    if cuts.is_empty() { whole(why) } else { Ok((lanes_between_cuts(lane, &parts, &cuts), why)) }
}

fn open_random_access_text(
    path: &Path,
    span: Option<FileSpan>,
) -> Result<Result<RandomAccessText, SplitObstacle>, Error> {
    let unreadable = |source| Error::Read { path: path.into(), source };
    if !is_regular_file(path).map_err(unreadable)? {
        return Ok(Err(SplitObstacle::NotRegular));
    }
    RandomAccessText::open(path, span).map_err(unreadable)
}

/// Finds the positions, in each file of a lane, that cut the lane into `slices` slices. Returns fewer positions, with
/// the reason, if some cannot be found.
fn find_cuts(
    lane: &Lane,
    parts: &[RandomAccessText],
    slices: u64,
) -> Result<(Vec<Vec<VirtualOffset>>, Option<SplitObstacle>), Error> {
    let (mut cuts, mut failed): (Vec<Vec<VirtualOffset>>, Vec<SplitObstacle>) = (Vec::new(), Vec::new());
    let start: Vec<VirtualOffset> = parts.iter().map(|part| part.span().start).collect();
    for cut in 1..slices {
        let last = cuts.last().unwrap_or(&start);
        match find_cut(lane, parts, last, cut as f64, slices as f64)? {
            Ok(places) => cuts.push(places),
            Err(why) => failed.push(why),
        }
        if failed.len() == MAX_FAILED_CUTS {
            break;
        }
    }
    Ok((cuts, failed.first().copied()))
}

/// Finds the position of cut number `cut` in each file, after the cut `last`.
fn find_cut(
    lane: &Lane,
    parts: &[RandomAccessText],
    last: &[VirtualOffset],
    cut: f64,
    slices: f64,
) -> Result<Result<Vec<VirtualOffset>, SplitObstacle>, Error> {
    let mut why = SplitObstacle::TooSmall;
    for aside in CUT_OFFSETS {
        let share = (cut + aside) / slices;
        match find_cut_near(lane, parts, last, share)? {
            Ok(places) => {
                let behind = |((place, last), part): ((&VirtualOffset, &VirtualOffset), &RandomAccessText)| {
                    place > last && part.contains_strictly_inside(*place)
                };
                if places.iter().zip(last).zip(parts).all(behind) {
                    return Ok(Ok(places));
                }
            }
            Err(SplitObstacle::EqualNames) => return Ok(Err(SplitObstacle::EqualNames)),
            Err(found) => why = found,
        }
    }
    Ok(Err(why))
}

/// Finds a position in each file for a cut near the fraction `share` of the first file.
fn find_cut_near(
    lane: &Lane,
    parts: &[RandomAccessText],
    last: &[VirtualOffset],
    share: f64,
) -> Result<Result<Vec<VirtualOffset>, SplitObstacle>, Error> {
    let unreadable = |source| {
        let path = lane.paths().next().unwrap_or(Path::new("")).into();
        Error::Read { path, source }
    };
    let near =
        |part: &RandomAccessText| part.span().start.file_offset + (part.span().len_bytes() as f64 * share) as u64;
    let found = match (&lane.files, parts) {
        (LaneFiles::Pair(..), [one, two]) => {
            let last = [last[0], last[1]];
            cut_points::find_cut_in_mate_files([one, two], near(one), last)
                .map(|found| found.map(|places| places.to_vec()))
        }
        (LaneFiles::Interleaved(_), [one, ..]) => {
            cut_points::find_cut_between_interleaved_pairs(one, near(one)).map(|found| found.map(|place| vec![place]))
        }
        (_, [one, ..]) => {
            cut_points::find_cut_between_unpaired_reads(one, near(one)).map(|found| found.map(|place| vec![place]))
        }
        (_, []) => return Ok(Err(SplitObstacle::TooSmall)),
    };
    found.map_err(unreadable)
}

/// Divides a lane at its cuts, of which there is at least one, into slices.
fn lanes_between_cuts(lane: &Lane, parts: &[RandomAccessText], cuts: &[Vec<VirtualOffset>]) -> Vec<Lane> {
    let span = |file: usize, slice: usize| {
        let whole = parts.get(file)?.span();
        let from = slice.checked_sub(1).map_or(whole.start, |before| cuts[before][file]);
        Some(FileSpan { start: from, end: cuts.get(slice).map_or(whole.end, |cut| Some(cut[file])), ..whole })
    };
    let slice = |slice| Some(LaneSlice { first_file: span(0, slice)?, second_file: span(1, slice) });
    (0..=cuts.len()).map(|number| Lane { slice: slice(number), ..lane.clone() }).collect()
}
