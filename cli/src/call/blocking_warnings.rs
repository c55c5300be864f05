//! Decides from the warnings on inputs and results whether the results of a call are written.

use genuma_somatic::pipeline::FinishedCall;
use genuma_somatic::result_warnings::{ResultWarning, find_result_warnings};

use crate::logging::num_data_warnings;

/// The results are withheld because of warnings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultsWithheldError {
    /// The warnings, whose texts it has, make the results meaningless.
    #[error(
        "no results are written, because they are probably meaningless: {0}. To write them nevertheless, run again \
         with --force (`genuma call`: and --resume, which keeps finished units)"
    )]
    Meaningless(String),
    /// With `--strict` every warning withholds the results. It has the whole message.
    #[error("{0}")]
    Strict(String),
}

/// Which warnings prevent the results from being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockingWarningRule {
    /// None: the results are written despite all warnings (`--force`).
    Accept,
    /// The default: only warnings that make the results meaningless.
    Usual,
    /// Every warning (`--strict`).
    Strict,
}

impl BlockingWarningRule {
    /// Returns the rule for the options `--force` and `--strict`, of which at most one is set.
    pub(crate) fn from_force_and_strict(force: bool, strict: bool) -> BlockingWarningRule {
        match (force, strict) {
            (true, _) => BlockingWarningRule::Accept,
            (false, true) => BlockingWarningRule::Strict,
            (false, false) => BlockingWarningRule::Usual,
        }
    }
}

/// Checks the result of a call. Returns all warnings: first `warnings`, which are known from the inputs, then those on
/// the result.
///
/// # Errors
/// According to `rule`, a warning prevents the results from being written.
pub(super) fn collect_and_check_warnings(
    finished: &FinishedCall,
    mut warnings: Vec<ResultWarning>,
    rule: BlockingWarningRule,
) -> anyhow::Result<Vec<ResultWarning>> {
    let found = find_result_warnings(finished);
    check_no_blocking_warnings(&found, rule)?;
    warnings.extend(found);
    // Those of a plan were accepted by the options of the plan, which had no --strict.
    if rule == BlockingWarningRule::Strict {
        check_no_blocking_warnings(&warnings, rule)?;
    }
    check_no_logged_warnings_if_strict(rule)?;
    Ok(warnings)
}

/// With [`BlockingWarningRule::Strict`], checks that no warning about the inputs or results was logged.
///
/// # Errors
/// Some were.
pub(super) fn check_no_logged_warnings_if_strict(rule: BlockingWarningRule) -> anyhow::Result<()> {
    match num_data_warnings() {
        1.. if rule == BlockingWarningRule::Strict => {
            let message =
                "no results are written because of --strict: see the warnings above (remove the cause, or omit it)";
            Err(ResultsWithheldError::Strict(message.to_owned()).into())
        }
        _ => Ok(()),
    }
}

/// Checks that no warning prevents the results from being written, according to `rule`.
///
/// # Errors
/// Some warnings prevent it; the error lists them.
pub(super) fn check_no_blocking_warnings(warnings: &[ResultWarning], rule: BlockingWarningRule) -> anyhow::Result<()> {
    let withholds = |warning: &&ResultWarning| match rule {
        BlockingWarningRule::Accept => false,
        BlockingWarningRule::Usual => warning.withholds_results,
        BlockingWarningRule::Strict => true,
    };
    let withheld: Vec<&str> = warnings.iter().filter(withholds).map(|warning| &*warning.message).collect();
    if withheld.is_empty() {
        return Ok(());
    }
    let warnings = withheld.join("; ");
    let error = match rule {
        BlockingWarningRule::Strict => ResultsWithheldError::Strict(format!(
            "no results are written because of --strict (omit it, or remove the cause): {warnings}"
        )),
        _ => ResultsWithheldError::Meaningless(warnings),
    };
    Err(error.into())
}
