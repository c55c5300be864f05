//! Finds the machine profile that `genuma probe` wrote, for commands that place threads and memory.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::bail;
use genuma_machine::Topology;
use genuma_probe::MachineProfile;
use tracing::warn;

/// Environment variable with the path of the profile, used when no option names one.
pub(crate) const PROFILE_VARIABLE: &str = "GENUMA_MACHINE";

/// Loads the profile at `path`, or the one that the environment variable names. Returns `None`, with a warning, if it
/// describes a machine with other memory nodes.
///
/// # Errors
/// The file does not exist or is no profile.
pub(crate) fn find_profile(path: Option<&Path>, topology: &Topology) -> anyhow::Result<Option<MachineProfile>> {
    let named = || env::var_os(PROFILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let Some(path) = path.map(Path::to_path_buf).or_else(named) else { return Ok(None) };
    let profile = MachineProfile::read_file(&path)?;
    if let Some(differs) = describe_mismatch(&profile, topology) {
        warn!(
            "{}: {differs}, so it is not used: results are the same, but may take longer; run `genuma probe` here",
            path.display()
        );
        return Ok(None);
    }
    Ok(Some(profile))
}

/// Loads the profile at `path` and requires that it describes a machine with the memory nodes of this one.
///
/// # Errors
/// The file does not exist, is no profile, or describes another machine.
pub(crate) fn load_matching_profile(path: &Path, topology: &Topology) -> anyhow::Result<MachineProfile> {
    let profile = MachineProfile::read_file(path)?;
    match describe_mismatch(&profile, topology) {
        Some(differs) => bail!("{}: {differs}; run `genuma probe` here", path.display()),
        None => Ok(profile),
    }
}

/// How the profile's machine differs from this one; `None` if the memory nodes are the same.
fn describe_mismatch(profile: &MachineProfile, topology: &Topology) -> Option<String> {
    let (there, here) = (profile.topology.allowed_memory_nodes(), topology.allowed_memory_nodes());
    (there != here).then(|| format!("describes another machine (memory on nodes {there}, here on {here})"))
}
