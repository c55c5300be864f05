//! Whether the work folder has room for what a call may write there.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use genuma_reads::Lane;

use crate::sizes;

/// Bytes that a base takes in the spill file at most, as super-k-mers of reads that share nothing.
const SPILL_PER_BASE: f64 = 1.3;

/// Bytes that the files of a call's units take at least.
pub const UNITS: u64 = 1 << 20;

/// A guess at the bases in a file, from its size: gzip'd FASTQ has about two bases a byte, plain FASTQ two fifths.
fn bases(path: &Path) -> u64 {
    let bytes = path.metadata().map_or(0, |m| m.len());
    let mut magic = [0; 2];
    let gzip = File::open(path).and_then(|mut f| f.read_exact(&mut magic)).is_ok() && magic == [0x1f, 0x8b];
    if gzip { bytes * 2 } else { bytes * 2 / 5 }
}

/// Bytes that a call may need on disk.
pub fn needed(lanes: &[Lane], memory: u64) -> u64 {
    let bases: u64 = lanes.iter().flat_map(Lane::paths).map(bases).sum();
    let all = (bases as f64 * SPILL_PER_BASE) as u64;
    // A quarter of the memory at least holds bins before any of them goes to the disk.
    all.saturating_sub(memory / 4)
}

/// Fails when fewer than `needed` bytes are free in `folder`.
pub fn check(folder: &Path, needed: u64) -> anyhow::Result<()> {
    let stat = rustix::fs::statvfs(folder)
        .with_context(|| format!("{}: cannot tell how much room there is", folder.display()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free < needed {
        bail!(
            "{}: {} are free, the run may need {}: name a work folder with more room with --work, or give more --memory",
            folder.display(),
            sizes::show(free),
            sizes::show(needed)
        );
    }
    tracing::debug!(
        "{}: {} free, {} needed at most",
        folder.display(),
        sizes::show(free),
        sizes::show(needed)
    );
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
        let lanes = [Lane { sample: TUMOUR, files: LaneFiles::Pair(plain, gzip) }];
        assert_eq!(needed(&lanes, 0), 3120);
        assert_eq!(needed(&lanes, 2000), 2620);
        assert_eq!(needed(&lanes, 1 << 30), 0);
        check(folder.path(), 1).unwrap();
        assert!(check(folder.path(), 1 << 60).unwrap_err().to_string().contains("--work"));
    }
}
