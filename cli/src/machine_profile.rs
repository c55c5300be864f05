//! Finds and loads the machine profile that `genuma machine measure` wrote, for commands that place threads and memory.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::bail;
use genuma_machine::Topology;
use genuma_probe::MachineProfile;
use tracing::warn;

/// Environment variable with the path of the machine profile, used when no option names one.
pub(crate) const PROFILE_PATH_VARIABLE: &str = "GENUMA_MACHINE";

/// Returns the path in the environment variable; `None` if it is not set or empty.
pub(crate) fn profile_path_from_environment() -> Option<PathBuf> {
    env::var_os(PROFILE_PATH_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// Loads the machine profile at `path`. Returns `None`, with a warning, if the profile is of a machine with other
/// memory nodes.
///
/// # Errors
/// The file does not exist or is no profile; or the profile was measured while other programs used the machine, and
/// `force` is not set.
pub(crate) fn read_idle_profile_if_matching(
    path: &Path,
    topology: &Topology,
    force: bool,
) -> anyhow::Result<Option<MachineProfile>> {
    Ok(discard_mismatched_profile(read_idle_profile(path, force)?, path, topology))
}

/// Loads the machine profile at `path`, or the one that the environment variable names. Returns `None` if neither is
/// given, or, with a warning, if the profile is of a machine with other memory nodes. A profile that was measured under
/// load is returned too, with a warning.
///
/// # Errors
/// The file does not exist or is no profile.
pub(crate) fn read_given_or_environment_profile(
    path: Option<&Path>,
    topology: &Topology,
) -> anyhow::Result<Option<MachineProfile>> {
    let Some(path) = path.map(Path::to_path_buf).or_else(profile_path_from_environment) else { return Ok(None) };
    Ok(discard_mismatched_profile(MachineProfile::read_file(&path)?, &path, topology))
}

/// Warns if the profile was measured under load. Returns the profile, or `None`, with a warning, if it is of a machine
/// with other memory nodes.
fn discard_mismatched_profile(profile: MachineProfile, path: &Path, topology: &Topology) -> Option<MachineProfile> {
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

/// Loads the profile at `path`. It must be of a machine with the same memory nodes as this one and, unless `force` is
/// set, must have been measured on an idle machine.
///
/// # Errors
/// The file does not exist, is no profile, describes another machine, or was measured under load.
pub(crate) fn require_matching_idle_profile(
    path: &Path,
    topology: &Topology,
    force: bool,
) -> anyhow::Result<MachineProfile> {
    let profile = read_idle_profile(path, force)?;
    match describe_mismatch(&profile, topology) {
        Some(differs) => bail!("{}: {differs}; run `genuma machine measure` here", path.display()),
        None => Ok(profile),
    }
}

/// Loads the profile at `path`, of any machine. Unless `force` is set, it must have been measured on an idle machine.
///
/// # Errors
/// The file does not exist, is no profile, or was measured under load.
pub(crate) fn read_idle_profile(path: &Path, force: bool) -> anyhow::Result<MachineProfile> {
    let profile = MachineProfile::read_file(path)?;
    check_load(&profile, path, force)?;
    Ok(profile)
}

/// Returns an error if the profile was measured under load, unless `force` is set.
fn check_load(profile: &MachineProfile, path: &Path, force: bool) -> anyhow::Result<()> {
    match &profile.load {
        Some(load) if !force => bail!(
            "{}: was measured while other programs used the machine ({load}): measure again when it is idle, or give --force",
            path.display()
        ),
        _ => Ok(()),
    }
}

/// Describes how the memory nodes of the profile differ from those of this machine; `None` if they are the same.
fn describe_mismatch(profile: &MachineProfile, topology: &Topology) -> Option<String> {
    let (there, here) = (profile.topology.allowed_memory_nodes(), topology.allowed_memory_nodes());
    (there != here).then(|| format!("describes another machine (memory on nodes {there}, here on {here})"))
}
