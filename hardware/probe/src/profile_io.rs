//! Reads, checks and writes `machine.json`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use genuma_machine::{IdSet, Topology};
use serde::Deserialize;

use crate::profile::{
    MachineProfile, Measurement, MeasurementUnit, MemoryLocation, PROFILE_FORMAT_NAME, PROFILE_FORMAT_VERSION,
};

/// Why a machine profile cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the machine's profile: {0}")]
    Write(std::io::Error),
    /// A field is missing, has the wrong type, or has an impossible value.
    #[error("{path}: field '{field}': {why}; measure again with 'genuma machine measure'")]
    InvalidField {
        /// Path of the file.
        path: PathBuf,
        /// Path of the field, for example `latency.pairs[0].latency.median`.
        field: String,
        /// What is wrong with the value.
        why: String,
    },
    /// The file is not valid JSON.
    #[error("{path}: is not JSON: {why}; measure again with 'genuma machine measure'")]
    InvalidJson {
        /// Path of the file.
        path: PathBuf,
        /// Message of the JSON parser.
        why: String,
    },
}

/// Format name and version of a file, which decide whether this version of genuma can read it.
#[derive(Deserialize)]
struct FormatAndVersion {
    format: String,
    version: u32,
}

/// Path of a field, and what is wrong with its value.
type FieldError = (String, String);

impl MachineProfile {
    /// Reads and checks a machine profile.
    ///
    /// # Errors
    /// The file cannot be read, is not JSON, has another format or version, or a field is missing, has the wrong type,
    /// or has an impossible value.
    pub fn read_file(path: impl AsRef<Path>) -> Result<MachineProfile, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
        MachineProfile::parse_json(&text, path)
    }

    /// Parses and checks a machine profile. `path` is used in error messages only.
    ///
    /// # Errors
    /// As for [`MachineProfile::read_file`].
    pub fn parse_json(text: &str, path: &Path) -> Result<MachineProfile, Error> {
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            return Err(Error::InvalidJson { path: path.into(), why: error.to_string() });
        }
        let wrong = |(field, why)| Error::InvalidField { path: path.into(), field, why };
        // Another version may have other fields, so the version number is checked first.
        let head: FormatAndVersion = parse_with_field_path(text).map_err(wrong)?;
        if head.format != PROFILE_FORMAT_NAME {
            return Err(wrong(("format".into(), format!("'{}' is not '{PROFILE_FORMAT_NAME}'", head.format))));
        }
        if head.version != PROFILE_FORMAT_VERSION {
            let why =
                format!("version {} is not the version {PROFILE_FORMAT_VERSION} that this genuma reads", head.version);
            return Err(wrong(("version".into(), why)));
        }
        let profile: MachineProfile = parse_with_field_path(text).map_err(wrong)?;
        profile.check_consistency().map_err(wrong)?;
        Ok(profile)
    }

    /// Writes the profile as indented JSON with a newline at the end.
    ///
    /// # Errors
    /// The writer returns an error.
    pub fn write_json(&self, mut to: impl Write) -> Result<(), Error> {
        serde_json::to_writer_pretty(&mut to, self).map_err(|e| Error::Write(e.into()))?;
        to.write_all(b"\n").map_err(Error::Write)
    }

    /// Checks that the measurements are possible: node and CPU numbers exist, chain sizes and thread numbers ascend,
    /// measured values are positive and have the right unit.
    fn check_consistency(&self) -> Result<(), FieldError> {
        let known = TopologyIds::from_topology(&self.topology)?;
        check_seconds("effort.expected_s", self.effort.expected_s)?;
        check_seconds("effort.took_s", self.effort.took_s)?;
        if let Some(peak) = self.theory.peak_gbs {
            check_positive("theory.peak_gbs", peak)?;
        }
        for (i, curve) in self.latency.curves.iter().enumerate() {
            let at = format!("latency.curves[{i}]");
            known.check_node_pair(&at, curve.cpu_node, curve.memory_node)?;
            check_ascending(&at, "bytes", curve.points.iter().map(|p| p.bytes))?;
            for (j, point) in curve.points.iter().enumerate() {
                check_measurement(&format!("{at}.points[{j}].latency"), &point.latency, MeasurementUnit::Nanoseconds)?;
            }
        }
        for (i, level) in self.latency.memory_levels.iter().enumerate() {
            check_measurement(&format!("latency.levels[{i}].latency"), &level.latency, MeasurementUnit::Nanoseconds)?;
        }
        for (i, pair) in self.latency.node_pairs.iter().enumerate() {
            let at = format!("latency.pairs[{i}]");
            known.check_node_pair(&at, pair.cpu_node, pair.memory_node)?;
            check_measurement(&format!("{at}.latency"), &pair.latency, MeasurementUnit::Nanoseconds)?;
        }
        for (i, bandwidth) in self.bandwidth.iter().enumerate() {
            let at = format!("bandwidth[{i}]");
            if let Some(node) = bandwidth.cpu_node {
                known.check_node(&format!("{at}.cpu_node"), node)?;
            }
            known.check_memory_location(&format!("{at}.memory"), &bandwidth.memory)?;
            known.check_threads(&at, bandwidth.threads, &bandwidth.cpus)?;
            check_measurement(&format!("{at}.total"), &bandwidth.total, MeasurementUnit::GigabytesPerSecond)?;
        }
        for (i, curve) in self.loaded.iter().enumerate() {
            let at = format!("loaded[{i}]");
            known.check_node_pair(&at, curve.cpu_node, curve.memory_node)?;
            known.check_cpus(&format!("{at}.injectors"), &curve.injectors)?;
            for (j, point) in curve.points.iter().enumerate() {
                check_measurement(&format!("{at}.points[{j}].latency"), &point.latency, MeasurementUnit::Nanoseconds)?;
                if let Some(injected) = &point.injected {
                    check_measurement(
                        &format!("{at}.points[{j}].injected"),
                        injected,
                        MeasurementUnit::GigabytesPerSecond,
                    )?;
                }
            }
        }
        for (i, curve) in self.contention.iter().enumerate() {
            let at = format!("contention[{i}]");
            known.check_memory_location(&format!("{at}.memory"), &curve.memory)?;
            check_ascending(&at, "threads", curve.points.iter().map(|p| u64::from(p.threads)))?;
            for (j, point) in curve.points.iter().enumerate() {
                let at = format!("{at}.points[{j}]");
                known.check_threads(&at, point.threads, &point.cpus)?;
                check_measurement(&format!("{at}.total"), &point.total, MeasurementUnit::GigabytesPerSecond)?;
                check_measurement(&format!("{at}.per_thread"), &point.per_thread, MeasurementUnit::GigabytesPerSecond)?;
            }
        }
        for (i, buffer) in self.buffers.iter().enumerate() {
            for &node in buffer.bytes_by_node.keys() {
                known.check_node(&format!("buffers[{i}].found"), node)?;
            }
        }
        Ok(())
    }
}

/// Parses JSON into `T`. An error consists of the path of the invalid field and what is wrong with its value.
fn parse_with_field_path<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FieldError> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let why = error.inner().to_string();
        // serde reports a missing field as an error of the enclosing object.
        let missing = why.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
        match (missing, error.path().to_string()) {
            (Some((name, _)), holder) if holder == "." => (name.to_owned(), "is missing".to_owned()),
            (Some((name, _)), holder) => (format!("{holder}.{name}"), "is missing".to_owned()),
            (None, path) => (path, why),
        }
    })
}

/// The node and CPU numbers of a topology.
struct TopologyIds {
    nodes: IdSet,
    cpus: IdSet,
}

impl TopologyIds {
    fn from_topology(topology: &Topology) -> Result<TopologyIds, FieldError> {
        let unique = |field: &str, ids: Vec<u32>| {
            let set: IdSet = ids.iter().copied().collect();
            match set.len() == ids.len() && !set.is_empty() {
                true => Ok(set),
                false => Err((format!("topology.{field}"), "is empty or has a number twice".to_owned())),
            }
        };
        let nodes = unique("nodes", topology.nodes.iter().map(|node| node.id).collect())?;
        let cpus = unique("cpus", topology.cpus.iter().map(|cpu| cpu.id).collect())?;
        Ok(TopologyIds { nodes, cpus })
    }

    fn check_node(&self, field: &str, node: u32) -> Result<(), FieldError> {
        match self.nodes.contains(node) {
            true => Ok(()),
            false => Err((field.to_owned(), format!("the topology has no node {node}"))),
        }
    }

    fn check_node_pair(&self, at: &str, cpu_node: u32, memory_node: u32) -> Result<(), FieldError> {
        self.check_node(&format!("{at}.cpu_node"), cpu_node)?;
        self.check_node(&format!("{at}.memory_node"), memory_node)
    }

    fn check_cpus(&self, field: &str, cpus: &IdSet) -> Result<(), FieldError> {
        match cpus.difference(&self.cpus).smallest_id() {
            None => Ok(()),
            Some(cpu) => Err((field.to_owned(), format!("the topology has no CPU {cpu}"))),
        }
    }

    fn check_threads(&self, at: &str, threads: u32, cpus: &IdSet) -> Result<(), FieldError> {
        self.check_cpus(&format!("{at}.cpus"), cpus)?;
        match threads > 0 && cpus.len() == threads as usize {
            true => Ok(()),
            false => Err((format!("{at}.threads"), format!("{threads} threads on CPUs '{cpus}'"))),
        }
    }

    fn check_memory_location(&self, field: &str, spot: &MemoryLocation) -> Result<(), FieldError> {
        let nodes: IdSet = match spot {
            MemoryLocation::Node(node) => IdSet::from([*node]),
            MemoryLocation::Interleaved(nodes) => nodes.clone(),
            MemoryLocation::Weighted(weights) => check_weights(field, weights)?,
            MemoryLocation::Local => return Ok(()),
        };
        if nodes.is_empty() {
            return Err((field.to_owned(), "no nodes".to_owned()));
        }
        nodes.iter().try_for_each(|node| self.check_node(field, node))
    }
}

fn check_weights(field: &str, weights: &BTreeMap<u32, u32>) -> Result<IdSet, FieldError> {
    match weights.iter().find(|(_, weight)| **weight == 0) {
        Some((node, _)) => Err((field.to_owned(), format!("node {node} has weight 0"))),
        None => Ok(weights.keys().copied().collect()),
    }
}

fn check_seconds(field: &str, value: f64) -> Result<(), FieldError> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(()),
        false => Err((field.to_owned(), format!("{value} is not a time"))),
    }
}

fn check_positive(field: &str, value: f64) -> Result<(), FieldError> {
    match value.is_finite() && value > 0.0 {
        true => Ok(()),
        false => Err((field.to_owned(), format!("{value} is not above 0"))),
    }
}

fn check_ascending(at: &str, field: &str, values: impl Iterator<Item = u64>) -> Result<(), FieldError> {
    let mut last = 0;
    for (i, value) in values.enumerate() {
        if value <= last {
            return Err((format!("{at}.points[{i}].{field}"), format!("{value} is not above {last}")));
        }
        last = value;
    }
    Ok(())
}

fn check_measurement(at: &str, value: &Measurement, unit: MeasurementUnit) -> Result<(), FieldError> {
    if value.unit != unit {
        return Err((format!("{at}.unit"), format!("is {:?} instead of {unit:?}", value.unit)));
    }
    check_positive(&format!("{at}.min"), value.min)?;
    check_positive(&format!("{at}.median"), value.median)?;
    check_positive(&format!("{at}.max"), value.max)?;
    if !(value.min <= value.median && value.median <= value.max) {
        return Err((format!("{at}.median"), "is not between min and max".to_owned()));
    }
    if !(value.median_absolute_deviation.is_finite() && value.median_absolute_deviation >= 0.0) {
        return Err((format!("{at}.mad"), format!("{} is not a deviation", value.median_absolute_deviation)));
    }
    match value.repetitions {
        0 => Err((format!("{at}.repetitions"), "0 repetitions measure nothing".to_owned())),
        _ => Ok(()),
    }
}
