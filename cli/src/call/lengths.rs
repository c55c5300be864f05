//! A look at the first reads: samples of different read length are called, but the user should know.

use genuma_reads::{Error, Lane, Meter, for_each_batch, samples};

/// How the look ends: with the first batch, or an error of reading.
enum End {
    Seen(usize),
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        End::Failed(error)
    }
}

/// Length of the longest of the first reads of each sample.
///
/// # Errors
/// The first reads cannot be read.
pub(crate) fn of_samples(lanes: &[Lane]) -> Result<Vec<usize>, Error> {
    let mut lengths = vec![0; samples(lanes)];
    for (sample, length) in lengths.iter_mut().enumerate() {
        let Some(lane) = lanes.iter().find(|lane| usize::from(lane.sample) == sample) else { continue };
        let looked = for_each_batch(
            std::slice::from_ref(lane),
            1,
            &Meter::default(),
            || (),
            |(), batch| {
                let longest = batch.iter().flat_map(|pair| pair.mates).map(|mate| mate.seq.len()).max();
                Err(End::Seen(longest.unwrap_or(0)))
            },
        );
        match looked {
            Ok(_) => {}
            Err(End::Seen(longest)) => *length = longest,
            Err(End::Failed(error)) => return Err(error),
        }
    }
    Ok(lengths)
}
