//! Withholds the results of a call whose inputs are not what they should be.

use anyhow::bail;
use genuma_somatic::pipeline::FinishedCall;
use genuma_somatic::result_warnings::{ResultWarning, find_result_warnings};

/// Returns the warnings on the result of a call, after those that are known of its input.
///
/// # Errors
/// A warning on the result withholds the results, and `force` is not set.
pub(super) fn check_result(
    finished: &FinishedCall,
    mut warnings: Vec<ResultWarning>,
    force: bool,
) -> anyhow::Result<Vec<ResultWarning>> {
    let found = find_result_warnings(finished);
    refuse_unless_forced(&found, force)?;
    warnings.extend(found);
    Ok(warnings)
}

/// Fails if a warning withholds the results, unless `force` is set.
///
/// # Errors
/// See above.
pub(super) fn refuse_unless_forced(warnings: &[ResultWarning], force: bool) -> anyhow::Result<()> {
    let withheld: Vec<&str> = warnings.iter().filter(|w| w.withholds_results).map(|w| &*w.message).collect();
    if !withheld.is_empty() && !force {
        bail!(
            "{}. No results are written; to write them all the same, repeat the command with --force",
            withheld.join("; ")
        );
    }
    Ok(())
}
