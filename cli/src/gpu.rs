//! `--gpu`: which devices count k-mers beside the threads.

use std::convert::Infallible;
use std::str::FromStr;

use genuma_gpu::{Described, Device, Kind, Trial, find, has_device_files, rates};
use genuma_kmers::{Devices, Expected, Gain, gain};
use genuma_reads::{Estimate, Lane};
use tracing::{debug, info, warn};

use crate::failure::Usage;
use crate::report::markup::counted;

/// The option.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Gpus {
    /// Count k-mers on devices as well: `auto` where it is worth it, `off`, or those of these numbers or names, as `genuma topology`
    /// shows them. The result is the same
    #[arg(long, value_name = "auto|off|DEVICE,...", default_value = "auto", help_heading = "Resources")]
    gpu: Wish,
}

/// What is wished for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wish {
    Auto,
    Off,
    /// Devices, each by its number or a part of its name.
    These(Vec<String>),
}

impl FromStr for Wish {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "auto" => Wish::Auto,
            "off" => Wish::Off,
            names => Wish::These(names.split(',').map(|name| name.trim().to_lowercase()).collect()),
        })
    }
}

/// Least memory with which a device is taken without being asked for: its driver takes some hundred megabytes that nobody counts.
const LEAST_MEMORY: u64 = 2 << 30;

impl Gpus {
    /// The devices that are to count the k-mers of these lanes beside so many threads, in so many bytes of memory. Says in a line what was chosen, and why,
    /// where there was a choice.
    ///
    /// # Errors
    /// There are devices, but not the one that is asked for.
    pub(crate) fn choose(&self, lanes: &[Lane], k: u32, threads: usize, memory: u64) -> anyhow::Result<Devices> {
        self.among(|| Expected::of(&Estimate::of(lanes), k).kmers, threads, memory)
    }

    /// The same for so many k-mers, in words.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn words(&self, kmers: u64, threads: usize, memory: u64) -> anyhow::Result<String> {
        let (why, devices) = match &self.gpu {
            Wish::Off => return Ok("none, as --gpu says".into()),
            Wish::Auto => worth_it(kmers, threads, memory),
            Wish::These(names) => asked_for(names)?,
        };
        Ok(if devices.is_empty() { format!("none: {why}") } else { why })
    }

    fn among(&self, kmers: impl FnOnce() -> u64, threads: usize, memory: u64) -> anyhow::Result<Devices> {
        let (why, devices) = match &self.gpu {
            Wish::Off => return Ok(Devices::default()),
            // Nothing was asked for, and there is nothing.
            Wish::Auto if !has_device_files() => {
                debug!("no GPU: k-mers are counted by threads");
                return Ok(Devices::default());
            }
            Wish::Auto => worth_it(kmers(), threads, memory),
            Wish::These(names) => asked_for(names)?,
        };
        match devices.is_empty() {
            true => info!("k-mers are counted by {} alone: {why}", counted(threads as u64, "thread")),
            false => info!("k-mers are counted by {} beside {}", why, counted(threads as u64, "thread")),
        }
        Ok(devices)
    }
}

/// Devices that gain something, and their names; else none, and why.
fn worth_it(kmers: u64, threads: usize, memory: u64) -> (String, Devices) {
    let none = |why: String| (why, Devices::default());
    if !has_device_files() {
        return none("there is no GPU".into());
    }
    if !Gain::could_pay(kmers, threads) {
        return none("they are too few for a GPU to gain anything".into());
    }
    if memory < LEAST_MEMORY {
        return none("there is too little memory for the driver of a GPU".into());
    }
    let trial = match Trial::from_env() {
        Ok(trial) => trial,
        Err(error) => return none(error.to_string()),
    };
    let found = find();
    let (mut names, mut devices, mut measured) = (Vec::new(), Vec::new(), Vec::new());
    for described in found.devices.iter().filter(|device| may_gain(device)) {
        let opened = Device::open(described, &trial).and_then(|parts| {
            let rates = parts.iter().map(rates).collect::<Result<Vec<_>, _>>()?;
            Ok((parts, rates))
        });
        match opened {
            Ok((parts, rates)) => {
                names.push(described.name.clone());
                devices.extend(parts);
                measured.extend(rates);
            }
            Err(error) => warn!("{error}; it is not used"),
        }
    }
    if devices.is_empty() {
        let missing = found.missing.join("; ");
        let why = if missing.is_empty() { "no GPU can be used by OpenCL".into() } else { missing };
        return none(why);
    }
    let gain = gain(kmers, threads, &measured);
    let took = format!("{:.0} s expected with, {:.0} without", gain.with_s, gain.threads_s);
    match gain.pays() {
        true => (format!("{} ({took})", names.join(" and ")), Devices::new(devices)),
        false => none(format!("{} would gain nothing ({took})", names.join(" and "))),
    }
}

/// Whether a device could gain anything: CPUs are busy already.
fn may_gain(device: &Described) -> bool {
    matches!(device.kind, Kind::Gpu | Kind::Accelerator) && device.atomics
}

/// The devices of these numbers or names; none, and why, where there is no device at all or none of these can be used.
fn asked_for(names: &[String]) -> anyhow::Result<(String, Devices)> {
    let trial = Trial::from_env().map_err(|error| Usage(error.to_string()))?;
    let found = find();
    if found.devices.is_empty() {
        return Ok((found.missing.join("; "), Devices::default()));
    }
    let mut wanted: Vec<&Described> = Vec::new();
    for name in names {
        let numbered = |device: &&Described| device.number.to_string() == *name;
        let named = |device: &&Described| !name.is_empty() && device.name.to_lowercase().contains(name);
        let devices = || found.devices.iter();
        let device = devices().find(numbered).or_else(|| devices().find(named)).ok_or_else(|| {
            let there = found.devices.iter().map(|d| format!("{} ({})", d.number, d.name));
            Usage(format!("--gpu {name}: no such device; there is {}", there.collect::<Vec<_>>().join(", ")))
        })?;
        if !wanted.contains(&device) {
            wanted.push(device);
        }
    }
    let (mut opened, mut why) = (Vec::new(), Vec::new());
    let mut names = Vec::new();
    for described in wanted {
        match Device::open(described, &trial) {
            Ok(parts) => {
                names.extend(parts.iter().map(|part| part.described().name.clone()));
                opened.extend(parts);
            }
            Err(error) => why.push(error.to_string()),
        }
    }
    Ok(match opened.is_empty() {
        true => (why.join("; "), Devices::default()),
        false => (names.join(" and "), Devices::new(opened)),
    })
}

/// Says what devices did, where there are any.
pub(crate) fn tell(devices: &Devices) {
    devices.told().into_iter().for_each(|line| info!("{line}"));
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn wishes_are_read() {
        let read = |text: &str| text.parse::<Wish>().expect("anything is a wish");
        assert_eq!((read("auto"), read("off")), (Wish::Auto, Wish::Off));
        assert_eq!(read("0, H100"), Wish::These(vec!["0".into(), "h100".into()]));
    }

    #[test]
    fn cpus_never_gain() {
        let found = find();
        let cpu = found.devices.iter().find(|device| device.kind == Kind::Cpu);
        let Some(cpu) = cpu else {
            // Past what is kept of passing tests.
            let _ = writeln!(std::io::stderr(), "skipped: no CPU is a device here: {:?}", found.missing);
            return;
        };
        assert!(!may_gain(cpu));
        let mut card = cpu.clone();
        card.kind = Kind::Gpu;
        assert!(may_gain(&card));
        card.atomics = false;
        assert!(!may_gain(&card));
    }
}
