//! Measures the length of the first reads of each sample.

use genuma_reads::{Error, Lane, ProgressCounters, for_each_batch, num_samples};

/// Error type that ends the reading of a lane: after the first batch (with the length in bp of its longest read), or
/// because a read cannot be read.
enum StopReading {
    FirstBatch(usize),
    Failed(Error),
}

impl From<Error> for StopReading {
    fn from(error: Error) -> Self {
        StopReading::Failed(error)
    }
}

/// Returns for each sample the length in bp of the longest read of the first batch of its first lane; 0 if there are no
/// reads.
///
/// # Errors
/// The first reads cannot be read.
pub(crate) fn max_read_bp_of_first_batch_by_sample(lanes: &[Lane]) -> Result<Vec<usize>, Error> {
    let mut lengths = vec![0; num_samples(lanes)];
    for (sample, length) in lengths.iter_mut().enumerate() {
        let Some(lane) = lanes.iter().find(|lane| usize::from(lane.sample) == sample) else { continue };
        let result = for_each_batch(
            std::slice::from_ref(lane),
            1,
            &ProgressCounters::default(),
            || (),
            |(), batch| {
                let longest = batch.iter().flat_map(|pair| pair.mates).map(|mate| mate.seq.len()).max();
                Err(StopReading::FirstBatch(longest.unwrap_or(0)))
            },
        );
        match result {
            Ok(_) => {}
            Err(StopReading::FirstBatch(longest)) => *length = longest,
            Err(StopReading::Failed(error)) => return Err(error),
        }
    }
    Ok(lengths)
}
