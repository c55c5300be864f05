//! What `genuma probe` measured of this machine, for the verbs that place things.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::bail;
use genuma_machine::Topology;
use genuma_probe::MachineProfile;
use tracing::warn;

/// Names the profile where no option does.
pub(crate) const VARIABLE: &str = "GENUMA_MACHINE";

/// The profile at `path`, else the one that the environment names, if it is of a machine with the nodes of this one.
///
/// # Errors
/// There is no such file, or it is no profile.
pub(crate) fn profile(path: Option<&Path>, topology: &Topology) -> anyhow::Result<Option<MachineProfile>> {
    let named = || env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let Some(path) = path.map(Path::to_path_buf).or_else(named) else { return Ok(None) };
    let profile = MachineProfile::load(&path)?;
    if let Some(differs) = differs(&profile, topology) {
        warn!("{}: {differs}: not used", path.display());
        return Ok(None);
    }
    Ok(Some(profile))
}

/// The profile at `path`, which must be of a machine with the nodes of this one.
///
/// # Errors
/// There is no such file, it is no profile, or it is another machine's.
pub(crate) fn of_this(path: &Path, topology: &Topology) -> anyhow::Result<MachineProfile> {
    let profile = MachineProfile::load(path)?;
    match differs(&profile, topology) {
        Some(differs) => bail!("{}: {differs}; run `genuma probe` here", path.display()),
        None => Ok(profile),
    }
}

/// How the profile's machine differs from this one.
fn differs(profile: &MachineProfile, topology: &Topology) -> Option<String> {
    let (there, here) = (profile.topology.memory_nodes(), topology.memory_nodes());
    (there != here).then(|| format!("of another machine (memory on nodes {there}, here on {here})"))
}
