//! What the result of a call depends on, line by line: a resumed run must agree with the interrupted one in all of it.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::Context;
use genuma_reads::{Lane, TUMOUR};
use genuma_somatic::pipeline::Params;

/// Version, parameters and files; threads and memory do not show in the result.
///
/// # Errors
/// A file that cannot be looked at.
pub fn of(lanes: &[Lane], reference: Option<&Path>, params: &Params) -> anyhow::Result<String> {
    let Params { k, min_base_quality, least_tumour, least_quality } = params;
    let mut lines = format!(
        "genuma {}\nk {k}\nmin-base-quality {min_base_quality}\nleast-tumour {least_tumour}\nmin-quality {least_quality}\n",
        env!("CARGO_PKG_VERSION")
    );
    for lane in lanes {
        for path in lane.paths() {
            file(&mut lines, if lane.sample == TUMOUR { "tumour" } else { "normal" }, path)?;
        }
    }
    match reference {
        Some(path) => file(&mut lines, "reference", path)?,
        None => lines.push_str("reference none\n"),
    }
    Ok(lines)
}

fn file(lines: &mut String, role: &str, path: &Path) -> anyhow::Result<()> {
    let look = || -> std::io::Result<_> {
        let meta = fs::metadata(path)?;
        let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Ok((fs::canonicalize(path)?, meta.len(), changed))
    };
    let (path, bytes, changed) = look().with_context(|| format!("{}: cannot read", path.display()))?;
    writeln!(lines, "{role} {} of {bytes} bytes, changed at {changed} ns", path.display())?;
    Ok(())
}
