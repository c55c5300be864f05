//! What room the work folder has for what a call or a count may write there.

use std::path::Path;

use anyhow::{Context, bail};
use genuma_reads::{Estimate, Lane};
use tracing::{debug, warn};

use crate::sizes;

/// Bytes that a base takes in the spill file at most, as super-k-mers of reads that share nothing.
const SPILL_PER_BASE: f64 = 1.3;

/// Bytes that the files of a call's units take at least.
const UNITS: u64 = 1 << 20;

/// Bytes that stay free beside what a call takes by itself, at least, where there are so many.
const MARGIN: u64 = 1 << 30;

/// Bytes that a count may need on disk.
pub(crate) fn needed(lanes: &[Lane], memory: u64) -> u64 {
    let all = (Estimate::of(lanes).bases as f64 * SPILL_PER_BASE) as u64;
    // A quarter of the memory at least holds bins before any of them goes to the disk.
    all.saturating_sub(memory / 4)
}

/// Bytes that k-mers and a copy of the reads may take in `folder`: what was asked for if so much is free there, which is told if not, or what is free less a
/// twentieth, and less 1 GiB at least if that is not more than half.
///
/// # Errors
/// Fewer bytes are free than the files of finished units take.
pub(crate) fn scratch(folder: &Path, asked: Option<u64>) -> anyhow::Result<u64> {
    let free = free(folder)?;
    if free < UNITS {
        bail!(
            "{}: {} are free, the files of finished steps need {} or more: name a work folder with more room with --work",
            folder.display(),
            sizes::show(free),
            sizes::show(UNITS)
        );
    }
    let most = free - (free / 20).max(MARGIN.min(free / 2));
    let scratch = asked.unwrap_or(most).min(most);
    if let Some(asked) = asked.filter(|&asked| asked > most) {
        let (asked, folder) = (sizes::show(asked), folder.display());
        warn!("--scratch: {asked} are more than is free in {folder}, and taken as {}", sizes::show(most));
    }
    debug!(
        "{}: {} free, {} for k-mers and a copy of the reads",
        folder.display(),
        sizes::show(free),
        sizes::show(scratch)
    );
    Ok(scratch)
}

/// Bytes that are free where a folder is.
fn free(folder: &Path) -> anyhow::Result<u64> {
    let stat = rustix::fs::statvfs(folder)
        .with_context(|| format!("{}: cannot tell how much room there is", folder.display()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Fails when fewer than `needed` bytes are free in `folder`.
pub(crate) fn check(folder: &Path, needed: u64) -> anyhow::Result<()> {
    let free = free(folder)?;
    if free < needed {
        bail!(
            "{}: {} are free, the run may need {}: name a work folder with more room with --work, or give more --memory",
            folder.display(),
            sizes::show(free),
            sizes::show(needed)
        );
    }
    debug!("{}: {} free, {} needed at most", folder.display(), sizes::show(free), sizes::show(needed));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::{LaneFiles, TUMOUR};

    #[test]
    fn needs_follow_the_input_and_what_memory_holds() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, gzip) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&plain, [b'@'; 1000]).unwrap();
        std::fs::write(&gzip, [0x1f, 0x8b].repeat(500)).unwrap();
        let lanes = [Lane::whole(TUMOUR, LaneFiles::Pair(plain, gzip))];
        assert_eq!(needed(&lanes, 0), 3120);
        assert_eq!(needed(&lanes, 2000), 2620);
        assert_eq!(needed(&lanes, 1 << 30), 0);
        check(folder.path(), 1).unwrap();
        assert!(check(folder.path(), 1 << 60).unwrap_err().to_string().contains("--work"));
    }

    #[test]
    fn scratch_is_what_is_asked_for_or_nearly_all_that_is_free() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(scratch(folder.path(), Some(0)).unwrap(), 0);
        assert_eq!(scratch(folder.path(), Some(5000)).unwrap(), 5000);
        let all = free(folder.path()).unwrap();
        for asked in [None, Some(u64::MAX)] {
            let most = scratch(folder.path(), asked).unwrap();
            // Others write there too.
            assert!(most >= all / 4 && most < all, "{most} of {all}");
        }
        assert!(scratch(&folder.path().join("none"), None).unwrap_err().to_string().contains("cannot tell"));
    }
}
