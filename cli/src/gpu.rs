//! The option `--gpu`: OpenCL devices that count k-mers in addition to the CPU threads.

use std::convert::Infallible;
use std::str::FromStr;

use genuma_gpu::{
    Device, DeviceDescription, DeviceKind, DeviceTestSettings, has_gpu_device_files, measure_device_rates,
};
use genuma_kmers::{
    CountingTimesWithAndWithoutDevices, Devices, ExpectedKmers, estimate_times_with_and_without_devices,
};
use genuma_reads::{Lane, ReadEstimate};
use genuma_work::quantity::format_count_with_noun;
use tracing::{debug, info, warn};

use crate::device_list::find_devices_if_child_lists_any;
use crate::errors::UsageError;

/// The option `--gpu`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct GpuOptions {
    /// Also count k-mers on GPUs: `auto` if it saves time, `off`, or devices by the numbers or names that `genuma
    /// machine show` shows. The result is the same
    #[arg(long, value_name = "auto|off|DEVICE,...", default_value = "auto", help_heading = "Resources")]
    gpu: GpuChoice,
}

/// The value of `--gpu`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GpuChoice {
    Auto,
    Off,
    /// Devices, each given by its number or by a part of its name (in lower case).
    Named(Vec<String>),
}

impl FromStr for GpuChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "auto" => GpuChoice::Auto,
            "off" => GpuChoice::Off,
            names => GpuChoice::Named(names.split(',').map(|name| name.trim().to_lowercase()).collect()),
        })
    }
}

/// Minimum memory for counting (bytes) at which `auto` uses a device. The device's driver takes some hundred MB that
/// the memory budget does not include. Chosen.
const MIN_AUTO_MEMORY_BYTES: u64 = 2 << 30;

impl GpuOptions {
    /// Chooses the devices that count the k-mers of these lanes, in addition to `threads` threads with `memory` bytes
    /// for counting. Logs the choice and its reason, unless there is nothing to choose.
    ///
    /// # Errors
    /// The machine has devices, but a requested one is not among them; a file cannot be read.
    pub(crate) fn choose_counting_devices(
        &self,
        lanes: &[Lane],
        k: u32,
        threads: usize,
        memory: u64,
    ) -> anyhow::Result<Devices> {
        let count_kmers =
            || Ok(ExpectedKmers::from_read_estimate(&ReadEstimate::estimate_reads_of_lanes(lanes)?, k).kmers);
        self.select_devices(count_kmers, threads, memory)
    }

    /// Describes which devices would count this number of k-mers, for `genuma plan`.
    ///
    /// # Errors
    /// The machine has devices, but a requested one is not among them.
    pub(crate) fn describe_device_choice(&self, kmers: u64, threads: usize, memory: u64) -> anyhow::Result<String> {
        let (why, devices) = match &self.gpu {
            GpuChoice::Off => return Ok("none (--gpu off)".into()),
            GpuChoice::Auto => find_worthwhile_devices(kmers, threads, memory),
            GpuChoice::Named(names) => find_named_devices(names)?,
        };
        Ok(if devices.is_empty() { format!("none: {why}") } else { why })
    }

    fn select_devices(
        &self,
        count_kmers: impl FnOnce() -> anyhow::Result<u64>,
        threads: usize,
        memory: u64,
    ) -> anyhow::Result<Devices> {
        let (why, devices) = match &self.gpu {
            GpuChoice::Off => return Ok(Devices::default()),
            // No device was requested and the machine has none.
            GpuChoice::Auto if !has_gpu_device_files() => {
                debug!("no GPU: k-mers are counted by threads");
                return Ok(Devices::default());
            }
            GpuChoice::Auto => find_worthwhile_devices(count_kmers()?, threads, memory),
            GpuChoice::Named(names) => find_named_devices(names)?,
        };
        match devices.is_empty() {
            true => info!("k-mers are counted by {} alone: {why}", format_count_with_noun(threads as u64, "thread")),
            false => info!("k-mers are counted by {} and {}", why, format_count_with_noun(threads as u64, "thread")),
        }
        Ok(devices)
    }
}

/// Returns the devices that are expected to save time, and their names with the expected times. If there are none, the
/// text is the reason. Opens and measures all devices that can count k-mers, if enough k-mers and memory are expected.
fn find_worthwhile_devices(kmers: u64, threads: usize, memory: u64) -> (String, Devices) {
    let none = |why: String| (why, Devices::default());
    if !has_gpu_device_files() {
        return none("there is no GPU".into());
    }
    if !CountingTimesWithAndWithoutDevices::are_infinitely_fast_devices_worthwhile(kmers, threads) {
        return none("there are too few k-mers for a GPU to save time".into());
    }
    if memory < MIN_AUTO_MEMORY_BYTES {
        return none("there is too little memory for a GPU driver".into());
    }
    let trial = match DeviceTestSettings::from_env() {
        Ok(trial) => trial,
        Err(error) => return none(error.to_string()),
    };
    let found = find_devices_if_child_lists_any();
    let (mut names, mut devices, mut measured) = (Vec::new(), Vec::new(), Vec::new());
    for described in found.devices.iter().filter(|device| can_count_kmers(device)) {
        let opened = Device::open_whole_or_in_parts(described, &trial).and_then(|parts| {
            let rates = parts.iter().map(measure_device_rates).collect::<Result<Vec<_>, _>>()?;
            Ok((parts, rates))
        });
        match opened {
            Ok((parts, rates)) => {
                names.push(described.name.clone());
                devices.extend(parts);
                measured.extend(rates);
            }
            Err(error) => warn!(
                "{error}: this GPU is not used, and the result is the same, only slower; --gpu off skips the attempt"
            ),
        }
    }
    if devices.is_empty() {
        let missing = found.missing.join("; ");
        let why = if missing.is_empty() { "OpenCL finds no usable GPU".into() } else { missing };
        return none(why);
    }
    let gain = estimate_times_with_and_without_devices(kmers, threads, &measured);
    let took = format!("{:.0} s expected with GPU, {:.0} s without", gain.with_devices_s, gain.threads_s);
    match gain.are_devices_worthwhile() {
        true => (format!("{} ({took})", names.join(" and ")), Devices::new(devices)),
        false => none(format!("{} would save no time ({took})", names.join(" and "))),
    }
}

/// Returns whether a device can count k-mers and may be faster than the CPUs alone: it is not a CPU, and has 64-bit
/// atomic operations.
fn can_count_kmers(device: &DeviceDescription) -> bool {
    matches!(device.kind, DeviceKind::Gpu | DeviceKind::Accelerator) && device.has_int64_atomics
}

/// Returns the requested devices and their names, without those that cannot be opened. If the machine has no devices,
/// or none of the requested ones can be opened, the list is empty and the text is the reason.
fn find_named_devices(names: &[String]) -> anyhow::Result<(String, Devices)> {
    let trial = DeviceTestSettings::from_env().map_err(|error| UsageError(error.to_string()))?;
    let found = find_devices_if_child_lists_any();
    if found.devices.is_empty() {
        return Ok((found.missing.join("; "), Devices::default()));
    }
    let mut chosen: Vec<&DeviceDescription> = Vec::new();
    for name in names {
        let numbered = |device: &&DeviceDescription| device.number.to_string() == *name;
        let named = |device: &&DeviceDescription| !name.is_empty() && device.name.to_lowercase().contains(name);
        let devices = || found.devices.iter();
        let device = devices().find(numbered).or_else(|| devices().find(named)).ok_or_else(|| {
            let available = found.devices.iter().map(|d| format!("{} ({})", d.number, d.name));
            UsageError(format!(
                "--gpu {name}: no such device; the devices are {}",
                available.collect::<Vec<_>>().join(", ")
            ))
        })?;
        if !chosen.contains(&device) {
            chosen.push(device);
        }
    }
    let (mut opened, mut why) = (Vec::new(), Vec::new());
    let mut names = Vec::new();
    for described in chosen {
        match Device::open_whole_or_in_parts(described, &trial) {
            Ok(parts) => {
                names.extend(parts.iter().map(|part| part.description().name.clone()));
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

/// Logs for each device how many k-mers it counted.
pub(crate) fn log_kmers_counted_by_devices(devices: &Devices) {
    devices.summary().into_iter().for_each(|line| info!("{line}"));
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use genuma_gpu::find_devices;

    use super::*;

    #[test]
    fn wishes_are_read() {
        let read = |text: &str| text.parse::<GpuChoice>().expect("anything is a wish");
        assert_eq!((read("auto"), read("off")), (GpuChoice::Auto, GpuChoice::Off));
        assert_eq!(read("0, H100"), GpuChoice::Named(vec!["0".into(), "h100".into()]));
    }

    #[test]
    fn cpus_never_gain() {
        let found = find_devices();
        let cpu = found.devices.iter().find(|device| device.kind == DeviceKind::Cpu);
        let Some(cpu) = cpu else {
            // Written to stderr directly, because the test runner hides the output of passing tests.
            let _ = writeln!(std::io::stderr(), "skipped: no CPU is a device here: {:?}", found.missing);
            return;
        };
        assert!(!can_count_kmers(cpu));
        let mut card = cpu.clone();
        card.kind = DeviceKind::Gpu;
        assert!(can_count_kmers(&card));
        card.has_int64_atomics = false;
        assert!(!can_count_kmers(&card));
    }
}
