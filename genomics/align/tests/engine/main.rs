//! The engine: its records are consistent, and do not depend on batches, threads and instructions.

mod data;
mod genuma;

use std::io::Write as _;

/// Prints that a test is skipped, in spite of libtest's output capture.
fn report_skipped_test(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}
