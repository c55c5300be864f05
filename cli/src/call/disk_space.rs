//! Checks the free disk space of the work folder, and limits the disk space that a call or a k-mer count may use.

use std::path::Path;

use anyhow::{Context, bail};
use genuma_reads::{Lane, ReadEstimate};
use genuma_work::quantity;
use tracing::{debug, warn};

/// Maximum bytes of the spill file for each sequenced base, reached if the reads share no super-k-mers. Empirical.
const SPILL_BYTES_PER_BASE: f64 = 1.3;

/// Minimum free bytes in the work folder, for the result files of finished units.
const MIN_FREE_BYTES_FOR_UNIT_FILES: u64 = 1 << 20;

/// Minimum free disk space that a call leaves (bytes), or half of the free space if that is less.
const FREE_MARGIN_BYTES: u64 = 1 << 30;

/// Returns the maximum bytes that a k-mer count of the reads may spill to disk with a memory budget of `memory` bytes.
/// The number of bases is estimated from the beginnings of the files.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn estimate_max_kmer_spill_bytes(lanes: &[Lane], memory: u64) -> anyhow::Result<u64> {
    let spill_bytes = (ReadEstimate::estimate_reads_of_lanes(lanes)?.bases as f64 * SPILL_BYTES_PER_BASE) as u64;
    // At least a quarter of the memory holds bins before any of them is spilled.
    Ok(spill_bytes.saturating_sub(memory / 4))
}

/// Returns the bytes that spilled k-mers and packed reads may occupy in `folder`. The default and the upper limit is
/// the free space less a margin: 5%, or 1 GiB if that is more, but never more than half of the free space. Warns if
/// `requested` is above the limit. If `folder` does not exist yet, its nearest existing parent folder is examined.
///
/// # Errors
/// Less than 1 MiB is free, or the free space cannot be determined.
pub(crate) fn choose_scratch_bytes(folder: &Path, requested: Option<u64>) -> anyhow::Result<u64> {
    // I/O error ignored: free_bytes reports a folder that cannot be examined.
    let folder = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let free = free_bytes(folder)?;
    if free < MIN_FREE_BYTES_FOR_UNIT_FILES {
        bail!(
            "{}: {} are free, but the files of finished units need {} or more: choose a work folder with more free space with --work",
            folder.display(),
            quantity::format_bytes(free),
            quantity::format_bytes(MIN_FREE_BYTES_FOR_UNIT_FILES)
        );
    }
    let max_bytes = free - (free / 20).max(FREE_MARGIN_BYTES.min(free / 2));
    let scratch = requested.unwrap_or(max_bytes).min(max_bytes);
    if let Some(asked) = requested.filter(|&asked| asked > max_bytes) {
        let [asked, free, max] = [asked, free, max_bytes].map(quantity::format_bytes);
        warn!(
            "--scratch: {asked} are requested, but {} has {free} free, of which a margin stays free, so at most {max} \
             are used: the calls are the same, but the input may be read more often. Choose another folder with --work",
            folder.display()
        );
    }
    debug!(
        "{}: {} free, {} for spilled k-mers and packed reads",
        folder.display(),
        quantity::format_bytes(free),
        quantity::format_bytes(scratch)
    );
    Ok(scratch)
}

/// Returns the free bytes of the file system that contains a folder.
fn free_bytes(folder: &Path) -> anyhow::Result<u64> {
    let stat = rustix::fs::statvfs(folder)
        .with_context(|| format!("{}: cannot determine the free disk space", folder.display()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns an error if fewer than `needed` bytes are free in `folder`, or if the free space cannot be determined.
pub(crate) fn check_free_space(folder: &Path, needed: u64) -> anyhow::Result<()> {
    let free = free_bytes(folder)?;
    if free < needed {
        bail!(
            "{}: {} are free, but the run may need {}: choose a work folder with more free space with --work, or raise --memory",
            folder.display(),
            quantity::format_bytes(free),
            quantity::format_bytes(needed)
        );
    }
    debug!(
        "{}: {} free, {} needed at most",
        folder.display(),
        quantity::format_bytes(free),
        quantity::format_bytes(needed)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::{LaneFiles, TUMOUR_SAMPLE};

    #[test]
    fn needs_follow_the_input_and_what_memory_holds() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, gzip) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&plain, [b'@'; 1000]).unwrap();
        std::fs::write(&gzip, [0x1f, 0x8b].repeat(500)).unwrap();
        let lanes = [Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Pair(plain, gzip))];
        assert_eq!(estimate_max_kmer_spill_bytes(&lanes, 0).unwrap(), 3120);
        assert_eq!(estimate_max_kmer_spill_bytes(&lanes, 2000).unwrap(), 2620);
        assert_eq!(estimate_max_kmer_spill_bytes(&lanes, 1 << 30).unwrap(), 0);
        check_free_space(folder.path(), 1).unwrap();
        assert!(check_free_space(folder.path(), 1 << 60).unwrap_err().to_string().contains("--work"));
    }

    #[test]
    fn scratch_is_what_is_asked_for_or_nearly_all_that_is_free() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(choose_scratch_bytes(folder.path(), Some(0)).unwrap(), 0);
        assert_eq!(choose_scratch_bytes(folder.path(), Some(5000)).unwrap(), 5000);
        let all = free_bytes(folder.path()).unwrap();
        for asked in [None, Some(u64::MAX)] {
            let most = choose_scratch_bytes(folder.path(), asked).unwrap();
            // Other processes write to this file system too.
            assert!(most >= all / 4 && most < all, "{most} of {all}");
        }
        // The work folder does not exist yet.
        assert_eq!(choose_scratch_bytes(&folder.path().join("none/work"), Some(5000)).unwrap(), 5000);
    }
}
