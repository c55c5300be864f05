//! `machine.json` in and out, and whether what it says can be true.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use genuma_machine::{IdSet, Topology};
use serde::Deserialize;

use crate::profile::{FORMAT, MachineProfile, Measured, Spot, Unit, VERSION};

/// Why a profile cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the machine's profile: {0}")]
    Write(std::io::Error),
    /// A field is not what it has to be.
    #[error("{path}: field '{field}': {why}; measure again with 'genuma probe'")]
    Field {
        /// The file.
        path: PathBuf,
        /// Path of the field, such as `latency.pairs[0].latency.median`.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// The file is no JSON at all.
    #[error("{path}: no JSON: {why}; measure again with 'genuma probe'")]
    NoJson {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// The two fields that say whether the others can be understood.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// Path of a field, and what is wrong with it.
type Fault = (String, String);

impl MachineProfile {
    /// Reads and checks a profile.
    ///
    /// # Errors
    /// The file cannot be read, is no JSON, or a field is missing, of a wrong kind, or cannot be true.
    pub fn load(path: impl AsRef<Path>) -> Result<MachineProfile, Error> {
        let path = path.as_ref();
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
        MachineProfile::parse(&text, path)
    }

    /// The same from text; errors name `path`.
    ///
    /// # Errors
    /// As [`MachineProfile::load`].
    pub fn parse(text: &str, path: &Path) -> Result<MachineProfile, Error> {
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            return Err(Error::NoJson { path: path.into(), why: error.to_string() });
        }
        let wrong = |(field, why)| Error::Field { path: path.into(), field, why };
        // A later version may have other fields: its number is looked at first.
        let head: Head = fields(text).map_err(wrong)?;
        if head.format != FORMAT {
            return Err(wrong(("format".into(), format!("'{}' is not '{FORMAT}'", head.format))));
        }
        if head.version != VERSION {
            let why = format!("version {} is not the version {VERSION} that this genuma reads", head.version);
            return Err(wrong(("version".into(), why)));
        }
        let profile: MachineProfile = fields(text).map_err(wrong)?;
        profile.check().map_err(wrong)?;
        Ok(profile)
    }

    /// Writes the profile as JSON with a line end.
    ///
    /// # Errors
    /// The writer refuses.
    pub fn write(&self, mut to: impl Write) -> Result<(), Error> {
        serde_json::to_writer_pretty(&mut to, self).map_err(|e| Error::Write(e.into()))?;
        to.write_all(b"\n").map_err(Error::Write)
    }

    /// Whether the fields can be true together.
    fn check(&self) -> Result<(), Fault> {
        let known = Known::of(&self.topology)?;
        seconds("effort.expected_s", self.effort.expected_s)?;
        seconds("effort.took_s", self.effort.took_s)?;
        if let Some(peak) = self.theory.peak_gbs {
            positive("theory.peak_gbs", peak)?;
        }
        for (i, curve) in self.latency.curves.iter().enumerate() {
            let at = format!("latency.curves[{i}]");
            known.pair(&at, curve.cpu_node, curve.memory_node)?;
            rising(&at, "bytes", curve.points.iter().map(|p| p.bytes))?;
            for (j, point) in curve.points.iter().enumerate() {
                measured(&format!("{at}.points[{j}].latency"), &point.latency, Unit::Nanoseconds)?;
            }
        }
        for (i, level) in self.latency.levels.iter().enumerate() {
            measured(&format!("latency.levels[{i}].latency"), &level.latency, Unit::Nanoseconds)?;
        }
        for (i, pair) in self.latency.pairs.iter().enumerate() {
            let at = format!("latency.pairs[{i}]");
            known.pair(&at, pair.cpu_node, pair.memory_node)?;
            measured(&format!("{at}.latency"), &pair.latency, Unit::Nanoseconds)?;
        }
        for (i, bandwidth) in self.bandwidth.iter().enumerate() {
            let at = format!("bandwidth[{i}]");
            if let Some(node) = bandwidth.cpu_node {
                known.node(&format!("{at}.cpu_node"), node)?;
            }
            known.spot(&format!("{at}.memory"), &bandwidth.memory)?;
            known.threads(&at, bandwidth.threads, &bandwidth.cpus)?;
            measured(&format!("{at}.total"), &bandwidth.total, Unit::GigabytesPerSecond)?;
        }
        for (i, curve) in self.loaded.iter().enumerate() {
            let at = format!("loaded[{i}]");
            known.pair(&at, curve.cpu_node, curve.memory_node)?;
            known.cpus(&format!("{at}.injectors"), &curve.injectors)?;
            for (j, point) in curve.points.iter().enumerate() {
                measured(&format!("{at}.points[{j}].latency"), &point.latency, Unit::Nanoseconds)?;
                if let Some(injected) = &point.injected {
                    measured(&format!("{at}.points[{j}].injected"), injected, Unit::GigabytesPerSecond)?;
                }
            }
        }
        for (i, curve) in self.contention.iter().enumerate() {
            let at = format!("contention[{i}]");
            known.spot(&format!("{at}.memory"), &curve.memory)?;
            rising(&at, "threads", curve.points.iter().map(|p| u64::from(p.threads)))?;
            for (j, point) in curve.points.iter().enumerate() {
                let at = format!("{at}.points[{j}]");
                known.threads(&at, point.threads, &point.cpus)?;
                measured(&format!("{at}.total"), &point.total, Unit::GigabytesPerSecond)?;
                measured(&format!("{at}.per_thread"), &point.per_thread, Unit::GigabytesPerSecond)?;
            }
        }
        for (i, buffer) in self.buffers.iter().enumerate() {
            for &node in buffer.found.keys() {
                known.node(&format!("buffers[{i}].found"), node)?;
            }
        }
        Ok(())
    }
}

/// Reads text that is JSON; what does not fit is named by its path.
fn fields<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Fault> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let why = error.inner().to_string();
        // A missing field is told as a fault of what should hold it.
        let missing = why.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
        match (missing, error.path().to_string()) {
            (Some((name, _)), holder) if holder == "." => (name.to_owned(), "is missing".to_owned()),
            (Some((name, _)), holder) => (format!("{holder}.{name}"), "is missing".to_owned()),
            (None, path) => (path, why),
        }
    })
}

/// The nodes and CPUs of a topology.
struct Known {
    nodes: IdSet,
    cpus: IdSet,
}

impl Known {
    fn of(topology: &Topology) -> Result<Known, Fault> {
        let unique = |field: &str, ids: Vec<u32>| {
            let set: IdSet = ids.iter().copied().collect();
            match set.len() == ids.len() && !set.is_empty() {
                true => Ok(set),
                false => Err((format!("topology.{field}"), "none, or one number twice".to_owned())),
            }
        };
        let nodes = unique("nodes", topology.nodes.iter().map(|node| node.id).collect())?;
        let cpus = unique("cpus", topology.cpus.iter().map(|cpu| cpu.id).collect())?;
        Ok(Known { nodes, cpus })
    }

    fn node(&self, field: &str, node: u32) -> Result<(), Fault> {
        match self.nodes.contains(node) {
            true => Ok(()),
            false => Err((field.to_owned(), format!("the topology has no node {node}"))),
        }
    }

    fn pair(&self, at: &str, cpu_node: u32, memory_node: u32) -> Result<(), Fault> {
        self.node(&format!("{at}.cpu_node"), cpu_node)?;
        self.node(&format!("{at}.memory_node"), memory_node)
    }

    fn cpus(&self, field: &str, cpus: &IdSet) -> Result<(), Fault> {
        match cpus.without(&self.cpus).first() {
            None => Ok(()),
            Some(cpu) => Err((field.to_owned(), format!("the topology has no CPU {cpu}"))),
        }
    }

    fn threads(&self, at: &str, threads: u32, cpus: &IdSet) -> Result<(), Fault> {
        self.cpus(&format!("{at}.cpus"), cpus)?;
        match threads > 0 && cpus.len() == threads as usize {
            true => Ok(()),
            false => Err((format!("{at}.threads"), format!("{threads} threads on CPUs '{cpus}'"))),
        }
    }

    fn spot(&self, field: &str, spot: &Spot) -> Result<(), Fault> {
        let nodes: IdSet = match spot {
            Spot::Node(node) => IdSet::from([*node]),
            Spot::Interleaved(nodes) => nodes.clone(),
            Spot::Weighted(weights) => weighted(field, weights)?,
            Spot::Local => return Ok(()),
        };
        if nodes.is_empty() {
            return Err((field.to_owned(), "no nodes".to_owned()));
        }
        nodes.iter().try_for_each(|node| self.node(field, node))
    }
}

fn weighted(field: &str, weights: &BTreeMap<u32, u32>) -> Result<IdSet, Fault> {
    match weights.iter().find(|(_, weight)| **weight == 0) {
        Some((node, _)) => Err((field.to_owned(), format!("node {node} has weight 0"))),
        None => Ok(weights.keys().copied().collect()),
    }
}

fn seconds(field: &str, value: f64) -> Result<(), Fault> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(()),
        false => Err((field.to_owned(), format!("{value} is no time"))),
    }
}

fn positive(field: &str, value: f64) -> Result<(), Fault> {
    match value.is_finite() && value > 0.0 {
        true => Ok(()),
        false => Err((field.to_owned(), format!("{value} is not above 0"))),
    }
}

fn rising(at: &str, field: &str, values: impl Iterator<Item = u64>) -> Result<(), Fault> {
    let mut last = 0;
    for (i, value) in values.enumerate() {
        if value <= last {
            return Err((format!("{at}.points[{i}].{field}"), format!("{value} does not rise above {last}")));
        }
        last = value;
    }
    Ok(())
}

fn measured(at: &str, value: &Measured, unit: Unit) -> Result<(), Fault> {
    if value.unit != unit {
        return Err((format!("{at}.unit"), format!("{:?} where {unit:?} belong", value.unit)));
    }
    positive(&format!("{at}.min"), value.min)?;
    positive(&format!("{at}.median"), value.median)?;
    positive(&format!("{at}.max"), value.max)?;
    if !(value.min <= value.median && value.median <= value.max) {
        return Err((format!("{at}.median"), "does not lie between min and max".to_owned()));
    }
    if !(value.mad.is_finite() && value.mad >= 0.0) {
        return Err((format!("{at}.mad"), format!("{} is no distance", value.mad)));
    }
    match value.repetitions {
        0 => Err((format!("{at}.repetitions"), "0 repetitions measure nothing".to_owned())),
        _ => Ok(()),
    }
}
