//! Size and files of an aligner's index.

use std::path::PathBuf;

use crate::invocation::AlignerIndex;

/// Total size and paths of the files of an aligner's index, by which its memory is recognised.
#[derive(Debug, Clone, Default)]
pub(crate) struct AlignerIndexFiles {
    /// Total size of the files, bytes.
    pub(super) bytes: u64,
    /// Paths of the files, escaped as in `numa_maps`.
    pub(super) files: Vec<String>,
}

impl AlignerIndexFiles {
    /// Returns the total size and the paths of the files of `index`; size 0 if there is no index or the size of a file
    /// cannot be read.
    pub(crate) fn of_index(index: Option<&AlignerIndex>) -> Self {
        let files = index.map(|index| index.files.as_slice()).unwrap_or_default();
        let written = |path: &PathBuf| {
            // I/O error ignored: the path is then compared as it was given.
            let path = path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string();
            // Escapes as in seq_file_path() of fs/proc/task_mmu.c.
            path.replace('\n', "\\012").replace('\t', "\\011").replace('=', "\\075").replace(' ', "\\040")
        };
        let bytes = index.and_then(|index| index.total_index_bytes().ok()).unwrap_or(0);
        AlignerIndexFiles { bytes, files: files.iter().map(written).collect() }
    }
}
