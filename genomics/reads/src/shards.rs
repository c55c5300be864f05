//! Shards: the reads cut into parts that processes can read each by itself, as evenly as can be.
//!
//! Each lane that can be cut is cut into as many slices as there are to be shards, near equal shares of its bytes, and each shard gets one. A cut is a place between two
//! records or two pairs (`shards/records.rs`), in the two files of a lane between the same two pairs, which their names tell (`shards/cut.rs`). To find it takes a few
//! MB of text around it (`shards/text.rs`), never a pass over a file. A gzip that is not BGZF cannot be read from its midst: such a lane stays whole, and goes where there is least.
//!
//! A slice says where it begins and ends in each file ([`Span`](crate::Span)). Whatever reads lanes reads slices too, and checks mates as in any lane.

mod text;

mod records;

mod cut;

use std::cmp::Reverse;
use std::fmt;
use std::path::Path;

use crate::error::Error;
use crate::lane::{Lane, LaneFiles, Slice};
use crate::pipe::is_regular;
use crate::span::{Offset, Span};

use text::Part;

/// Bytes on the disk that a slice has of each file at least, about: the longest block of BGZF.
const LEAST: u64 = 64 << 10;
/// Where a cut is tried, as parts of a slice before or after its even place.
const TRIES: [f64; 3] = [0.0, 0.125, -0.125];
/// Cuts of a lane that are not found before no further ones are sought.
const FAILURES: usize = 2;

/// Lanes cut into shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharding {
    /// The lanes of each shard, whole or sliced, in the order of those that were cut. No shard is empty.
    pub shards: Vec<Vec<Lane>>,
    /// How many shards were asked for.
    pub asked: usize,
    /// The lanes that are in fewer slices than that.
    pub uncut: Vec<Uncut>,
}

impl Sharding {
    /// That there are fewer shards than were asked for, in a sentence; `None` if there are as many.
    pub fn shortfall(&self) -> Option<String> {
        let made = self.shards.len();
        let shards = if made == 1 { "shard" } else { "shards" };
        (made < self.asked).then(|| {
            format!(
                "{made} {shards} instead of {}: the reads cannot be cut into more (see each lane)",
                self.asked
            )
        })
    }
}

/// A lane that is in fewer slices than there were to be shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncut {
    /// The lane as it was given.
    pub lane: Lane,
    /// Slices that it was cut into; 1 if it is whole.
    pub slices: usize,
    /// Why not more.
    pub why: WhyUncut,
}

impl fmt::Display for Uncut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<String> = self.lane.paths().map(|path| path.display().to_string()).collect();
        write!(f, "{}: ", paths.join(" and "))?;
        match self.slices {
            1 => write!(f, "not cut: {}", self.why),
            slices => write!(f, "cut into {slices} slices only: {}", self.why),
        }
    }
}

/// Why a lane is not cut, or into fewer slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WhyUncut {
    /// A pipe, a device or the standard input.
    #[error("not a regular file, so it can only be read from its beginning")]
    NotRegular,
    /// Gzip of large members.
    #[error(
        "gzip that is not BGZF, which can only be read from its beginning: compress it with bgzip to have it cut"
    )]
    Gzip,
    /// BAM or CRAM, whose mates may be anywhere in it.
    #[error("aligned reads, whose mates may lie anywhere in the file")]
    Aligned,
    /// FASTA, or anything else.
    #[error("not FASTQ")]
    NotFastq,
    /// Fewer than some tens of kB for each slice.
    #[error("too small for more")]
    Small,
    /// No records of four lines near the places.
    #[error("no records of four lines where it would be cut")]
    NoRecords,
    /// The names of reads in a row are the same.
    #[error(
        "reads in a row have the same name, so names do not tell where the same pair is in both files, or which reads are mates"
    )]
    Alike,
    /// The names of the first file are not found in the second, or reads in turn are no mates.
    #[error(
        "the mates of the reads where it would be cut are not in the same order near them, or nowhere near"
    )]
    NoMates,
}

/// Cuts lanes into `n` shards (at least one), each with as even a share as can be of every lane that can be cut, by bytes on the disk. Lanes in fewer slices, or
/// whole, go where there is least so far, the largest first. There are fewer shards where there are not slices for all. The same files and `n` give the same shards.
///
/// ```
/// use genuma_reads::{Lane, LaneFiles, NORMAL, shards};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("reads.fq");
/// # std::fs::write(&path, (0..20_000).map(|i| format!("@r{i}\nACGT\n+\nFFFF\n")).collect::<String>())?;
/// let lanes = [Lane::whole(NORMAL, LaneFiles::Single(path))];
/// let sharding = shards(&lanes, 2)?;
/// let [first, second] = &sharding.shards[..] else { panic!("two shards") };
/// assert_eq!(first[0].slice.unwrap().one.to, Some(second[0].slice.unwrap().one.from));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A file that is missing or cannot be read. What is wrong with the reads in it is for [`check_lanes`](crate::check_lanes) to tell.
pub fn shards(lanes: &[Lane], n: usize) -> Result<Sharding, Error> {
    let n = n.max(1);
    let (mut bins, mut rest, mut uncut) = (vec![Bin::default(); n], Vec::new(), Vec::new());
    for (number, lane) in lanes.iter().enumerate() {
        let (slices, why) = sliced(lane, n)?;
        let mut pieces = Vec::new();
        for lane in slices {
            pieces.push(Piece { number, bytes: lane.bytes()?, lane });
        }
        if let Some(why) = why {
            uncut.push(Uncut { lane: lane.clone(), slices: pieces.len(), why });
        }
        if pieces.len() == n {
            bins.iter_mut().zip(pieces).for_each(|(bin, piece)| bin.put(piece));
        } else {
            rest.extend(pieces);
        }
    }
    // Ties stay in their order.
    rest.sort_by_key(|piece| Reverse(piece.bytes));
    for piece in rest {
        if let Some(bin) = bins.iter_mut().min_by_key(|bin| (bin.bytes, bin.pieces.len())) {
            bin.put(piece);
        }
    }
    let filled = bins.into_iter().filter(|bin| !bin.pieces.is_empty());
    Ok(Sharding { shards: filled.map(Bin::into_lanes).collect(), asked: n, uncut })
}

/// A lane or a slice of one.
#[derive(Debug, Clone)]
struct Piece {
    /// Of the lane that it is of.
    number: usize,
    /// On the disk.
    bytes: u64,
    lane: Lane,
}

/// A shard being filled.
#[derive(Debug, Clone, Default)]
struct Bin {
    bytes: u64,
    pieces: Vec<Piece>,
}

impl Bin {
    fn put(&mut self, piece: Piece) {
        self.bytes += piece.bytes;
        self.pieces.push(piece);
    }

    fn into_lanes(mut self) -> Vec<Lane> {
        let from = |lane: &Lane| lane.slice.map(|slice| slice.one.from);
        self.pieces.sort_by_key(|piece| (piece.number, from(&piece.lane)));
        self.pieces.into_iter().map(|piece| piece.lane).collect()
    }
}

/// A lane in `n` slices, or in fewer, and why in fewer.
fn sliced(lane: &Lane, n: usize) -> Result<(Vec<Lane>, Option<WhyUncut>), Error> {
    let whole = |why| Ok((vec![lane.clone()], why));
    if n == 1 {
        return whole(None);
    }
    if let LaneFiles::Aligned(_) = lane.files {
        return whole(Some(WhyUncut::Aligned));
    }
    let mut parts = Vec::new();
    for (path, span) in lane.parts() {
        match opened(path, span)? {
            Ok(part) => parts.push(part),
            Err(why) => return whole(Some(why)),
        }
    }
    let room = parts.iter().map(|part| part.span().bytes() / LEAST).min().unwrap_or(0);
    let slices = room.clamp(1, n as u64);
    let (cuts, failed) = cuts(lane, &parts, slices)?;
    let why = failed.or((slices < n as u64).then_some(WhyUncut::Small));
    if cuts.is_empty() { whole(why) } else { Ok((between(lane, &parts, &cuts), why)) }
}

fn opened(path: &Path, span: Option<Span>) -> Result<Result<Part, WhyUncut>, Error> {
    let unreadable = |source| Error::Read { path: path.into(), source };
    if !is_regular(path).map_err(unreadable)? {
        return Ok(Err(WhyUncut::NotRegular));
    }
    Part::open(path, span).map_err(unreadable)
}

/// Where a lane is cut into so many slices, in each of its files; fewer places, and why, if not all are found.
fn cuts(lane: &Lane, parts: &[Part], slices: u64) -> Result<(Vec<Vec<Offset>>, Option<WhyUncut>), Error> {
    let (mut cuts, mut failed): (Vec<Vec<Offset>>, Vec<WhyUncut>) = (Vec::new(), Vec::new());
    let start: Vec<Offset> = parts.iter().map(|part| part.span().from).collect();
    for cut in 1..slices {
        let last = cuts.last().unwrap_or(&start);
        match one_cut(lane, parts, last, cut as f64, slices as f64)? {
            Ok(places) => cuts.push(places),
            Err(why) => failed.push(why),
        }
        if failed.len() == FAILURES {
            break;
        }
    }
    Ok((cuts, failed.first().copied()))
}

/// The place of one of the cuts in each file, behind the `last` one.
fn one_cut(
    lane: &Lane,
    parts: &[Part],
    last: &[Offset],
    cut: f64,
    slices: f64,
) -> Result<Result<Vec<Offset>, WhyUncut>, Error> {
    let mut why = WhyUncut::Small;
    for aside in TRIES {
        let share = (cut + aside) / slices;
        match places(lane, parts, last, share)? {
            Ok(places) => {
                let behind =
                    |((place, last), part): ((&Offset, &Offset), &Part)| place > last && part.holds(*place);
                if places.iter().zip(last).zip(parts).all(behind) {
                    return Ok(Ok(places));
                }
            }
            Err(WhyUncut::Alike) => return Ok(Err(WhyUncut::Alike)),
            Err(found) => why = found,
        }
    }
    Ok(Err(why))
}

/// A place in each file near a share of the first.
fn places(
    lane: &Lane,
    parts: &[Part],
    last: &[Offset],
    share: f64,
) -> Result<Result<Vec<Offset>, WhyUncut>, Error> {
    let unreadable = |source| {
        let path = lane.paths().next().unwrap_or(Path::new("")).into();
        Error::Read { path, source }
    };
    let near = |part: &Part| part.span().from.byte + (part.span().bytes() as f64 * share) as u64;
    let found = match (&lane.files, parts) {
        (LaneFiles::Pair(..), [one, two]) => {
            let last = [last[0], last[1]];
            cut::pair([one, two], near(one), last).map(|found| found.map(|places| places.to_vec()))
        }
        (LaneFiles::Interleaved(_), [one, ..]) => {
            cut::interleaved(one, near(one)).map(|found| found.map(|place| vec![place]))
        }
        (_, [one, ..]) => cut::single(one, near(one)).map(|found| found.map(|place| vec![place])),
        (_, []) => return Ok(Err(WhyUncut::Small)),
    };
    found.map_err(unreadable)
}

/// The slices of a lane between cuts, of which there is one at least.
fn between(lane: &Lane, parts: &[Part], cuts: &[Vec<Offset>]) -> Vec<Lane> {
    let span = |file: usize, slice: usize| {
        let whole = parts.get(file)?.span();
        let from = slice.checked_sub(1).map_or(whole.from, |before| cuts[before][file]);
        Some(Span { from, to: cuts.get(slice).map_or(whole.to, |cut| Some(cut[file])), ..whole })
    };
    let slice = |slice| Some(Slice { one: span(0, slice)?, two: span(1, slice) });
    (0..=cuts.len()).map(|number| Lane { slice: slice(number), ..lane.clone() }).collect()
}
