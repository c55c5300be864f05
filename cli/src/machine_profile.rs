//! Finds the machine profile that `genuma machine measure` wrote, for commands that place threads and memory.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::bail;
use genuma_machine::Topology;
use genuma_probe::MachineProfile;
use tracing::warn;

/// Environment variable with the path of the profile, used when no option names one.
pub(crate) const PROFILE_VARIABLE: &str = "GENUMA_MACHINE";

/// The path that the environment variable names.
pub(crate) fn profile_path_from_environment() -> Option<PathBuf> {
    env::var_os(PROFILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// As [`read_profile`], but a profile that was measured under load is an error unless `force` is given.
///
/// # Errors
/// As for [`read_profile`], and a profile that was measured under load.
pub(crate) fn read_idle_profile(
    path: &Path,
    topology: &Topology,
    force: bool,
) -> anyhow::Result<Option<MachineProfile>> {
    let profile = MachineProfile::read_file(path)?;
    check_load(&profile, path, force)?;
    Ok(warn_of_unfit_profile(profile, path, topology))
}

/// Loads the profile at `path`, or the one that the environment variable names. Returns `None`, with a warning, if it
/// describes a machine with other memory nodes.
///
/// # Errors
/// The file does not exist or is no profile.
pub(crate) fn read_profile(path: Option<&Path>, topology: &Topology) -> anyhow::Result<Option<MachineProfile>> {
    let Some(path) = path.map(Path::to_path_buf).or_else(profile_path_from_environment) else { return Ok(None) };
    Ok(warn_of_unfit_profile(MachineProfile::read_file(&path)?, &path, topology))
}

/// Warns if the profile was measured under load. Returns `None`, with a warning, if it describes a machine with other memory
/// nodes.
fn warn_of_unfit_profile(profile: MachineProfile, path: &Path, topology: &Topology) -> Option<MachineProfile> {
    if let Some(load) = &profile.load {
        warn!(
            "{}: was measured while other programs used the machine ({load}): results are the same, but may take longer; run \
             `genuma machine measure` on the idle machine",
            path.display()
        );
    }
    if let Some(differs) = describe_mismatch(&profile, topology) {
        warn!(
            "{}: {differs}, so it is not used: results are the same, but may take longer; run `genuma machine measure` here",
            path.display()
        );
        return None;
    }
    Some(profile)
}

/// Loads the profile at `path` and requires that it describes a machine with the memory nodes of this one, and, unless
/// `force` is given, that it was measured on an idle machine.
///
/// # Errors
/// The file does not exist, is no profile, describes another machine, or was measured under load.
pub(crate) fn load_matching_profile(path: &Path, topology: &Topology, force: bool) -> anyhow::Result<MachineProfile> {
    let profile = MachineProfile::read_file(path)?;
    check_load(&profile, path, force)?;
    match describe_mismatch(&profile, topology) {
        Some(differs) => bail!("{}: {differs}; run `genuma machine measure` here", path.display()),
        None => Ok(profile),
    }
}

/// Fails if the profile was measured under load, unless `force` is given.
fn check_load(profile: &MachineProfile, path: &Path, force: bool) -> anyhow::Result<()> {
    match &profile.load {
        Some(load) if !force => bail!(
            "{}: was measured while other programs used the machine ({load}): measure again when it is idle, or give --force",
            path.display()
        ),
        _ => Ok(()),
    }
}

/// Describes how the machine of the profile differs from this one; `None` if the memory nodes are the same.
fn describe_mismatch(profile: &MachineProfile, topology: &Topology) -> Option<String> {
    let (there, here) = (profile.topology.allowed_memory_nodes(), topology.allowed_memory_nodes());
    (there != here).then(|| format!("describes another machine (memory on nodes {there}, here on {here})"))
}
