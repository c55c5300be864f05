//! Test settings that change how devices behave: memory limit, number of sub-devices, failing calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Error;

/// Test settings for devices. The default changes nothing.
#[derive(Debug, Clone, Default)]
pub struct DeviceTestSettings {
    /// Maximum device memory to use, in bytes; `None` for no limit.
    pub(crate) memory_limit_bytes: Option<u64>,
    /// Number of devices that each device is opened as; `None` for one.
    pub(crate) sub_devices: Option<u32>,
    /// Number of the OpenCL call that fails, counted from 1 over all devices.
    failing_call: Option<u64>,
    /// Whether host threads leave all work that the device can do to the device.
    pub(crate) takes_all_work_from_host_threads: bool,
    calls: Arc<AtomicU64>,
}

impl DeviceTestSettings {
    /// Name of the environment variable that [`DeviceTestSettings::from_env`] reads.
    pub(crate) const ENV_VARIABLE_NAME: &str = "GENUMA_GPU_TRIAL";

    /// Limits the memory that a device may use to `bytes` bytes.
    pub fn with_memory_limit(self, bytes: u64) -> Self {
        Self { memory_limit_bytes: Some(bytes), ..self }
    }

    /// Opens each device as `devices` devices: as sub-devices if it can be partitioned, else the same device several
    /// times.
    pub fn with_sub_devices(self, devices: u32) -> Self {
        Self { sub_devices: Some(devices), ..self }
    }

    /// Makes call number `call` fail, counted from 1 over all devices. All later calls of the same device fail, too.
    pub fn with_failing_call_number(self, call: u64) -> Self {
        Self { failing_call: Some(call), ..self }
    }

    /// Makes host threads leave all work that a device can do to the device, so that tests exercise the device.
    pub fn with_device_taking_all_work(self) -> Self {
        Self { takes_all_work_from_host_threads: true, ..self }
    }

    /// Reads the settings from the environment variable, for example `memory=4M,split=2,fail=17,alone=1`. Without the
    /// variable returns the default.
    ///
    /// # Errors
    /// The value is malformed.
    pub fn from_env() -> Result<Self, Error> {
        std::env::var(Self::ENV_VARIABLE_NAME).map_or_else(|_| Ok(Self::default()), |text| Self::parse(&text))
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let mut trial = Self::default();
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let wrong =
                || Error::InvalidTestSettings(format!("{}: '{item}' is not understood", Self::ENV_VARIABLE_NAME));
            let (name, value) = item.split_once('=').ok_or_else(wrong)?;
            let (digits, shift) = match value.as_bytes().last() {
                Some(b'K') => (&value[..value.len() - 1], 10),
                Some(b'M') => (&value[..value.len() - 1], 20),
                Some(b'G') => (&value[..value.len() - 1], 30),
                _ => (value, 0),
            };
            let number = digits.parse::<u32>().map_err(|_| wrong())?;
            let bytes = u64::from(number) << shift;
            match name {
                "memory" => trial.memory_limit_bytes = Some(bytes),
                "split" if (1..=16).contains(&number) => trial.sub_devices = Some(number),
                "fail" => trial.failing_call = Some(bytes),
                "alone" if number <= 1 => trial.takes_all_work_from_host_threads = number == 1,
                _ => return Err(wrong()),
            }
        }
        Ok(trial)
    }

    /// Counts one more OpenCL call. Returns whether the settings require this call to fail.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "a build without devices has no calls"))]
    pub(crate) fn count_call_and_decide_failure(&self) -> bool {
        self.failing_call.is_some_and(|at| self.calls.fetch_add(1, Relaxed) + 1 == at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_read() {
        let trial = DeviceTestSettings::parse("memory=4M,split=2,fail=17").expect("understood");
        assert_eq!(
            (trial.memory_limit_bytes, trial.sub_devices, trial.failing_call),
            (Some(4 << 20), Some(2), Some(17))
        );
        assert!(DeviceTestSettings::parse("").expect("nothing").failing_call.is_none());
        for text in ["memory", "memory=x", "memory=-1", "split=0", "other=1"] {
            assert!(DeviceTestSettings::parse(text).expect_err(text).to_string().contains("is not understood"));
        }
    }

    #[test]
    fn the_call_that_is_to_fail_fails_once() {
        let trial = DeviceTestSettings::default().with_failing_call_number(3);
        let clone = trial.clone();
        assert_eq!(
            [
                trial.count_call_and_decide_failure(),
                clone.count_call_and_decide_failure(),
                trial.count_call_and_decide_failure(),
                clone.count_call_and_decide_failure()
            ],
            [false, false, true, false]
        );
        assert!(!DeviceTestSettings::default().count_call_and_decide_failure());
    }
}
