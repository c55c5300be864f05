//! What tests change about devices: how much memory they have, how many they are, and when they fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Error;

/// Devices as tests want them. The default changes nothing.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    pub(crate) memory: Option<u64>,
    pub(crate) split: Option<u32>,
    fail: Option<u64>,
    pub(crate) alone: bool,
    calls: Arc<AtomicU64>,
}

impl Trial {
    /// The environment variable that [`Trial::from_env`] reads.
    pub const VARIABLE: &str = "GENUMA_GPU_TRIAL";

    /// A device may use so many bytes of memory.
    pub fn memory(self, bytes: u64) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// Each device is made into so many: sub-devices if it can be cut, else the same one so many times.
    pub fn split(self, devices: u32) -> Self {
        Self { split: Some(devices), ..self }
    }

    /// The call of this number fails, counted from 1 over all devices; every later one of the same device fails as well.
    pub fn fail_at(self, call: u64) -> Self {
        Self { fail: Some(call), ..self }
    }

    /// Threads leave to devices what these can do, so that it is they who are tried.
    pub fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// From the environment, such as `memory=4M,split=2,fail=17,alone=1`; nothing is changed where the variable is not set.
    ///
    /// # Errors
    /// A text that is not understood.
    pub fn from_env() -> Result<Self, Error> {
        std::env::var(Self::VARIABLE).map_or_else(|_| Ok(Self::default()), |text| Self::parse(&text))
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let mut trial = Self::default();
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let wrong = || Error::Trial(format!("{}: '{item}' is not understood", Self::VARIABLE));
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
                "memory" => trial.memory = Some(bytes),
                "split" if (1..=16).contains(&number) => trial.split = Some(number),
                "fail" => trial.fail = Some(bytes),
                "alone" if number <= 1 => trial.alone = number == 1,
                _ => return Err(wrong()),
            }
        }
        Ok(trial)
    }

    /// Whether the call that is made now is to fail.
    pub(crate) fn fails(&self) -> bool {
        self.fail.is_some_and(|at| self.calls.fetch_add(1, Relaxed) + 1 == at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_read() {
        let trial = Trial::parse("memory=4M,split=2,fail=17").expect("understood");
        assert_eq!((trial.memory, trial.split, trial.fail), (Some(4 << 20), Some(2), Some(17)));
        assert!(Trial::parse("").expect("nothing").fail.is_none());
        for text in ["memory", "memory=x", "memory=-1", "split=0", "other=1"] {
            assert!(Trial::parse(text).expect_err(text).to_string().contains("is not understood"));
        }
    }

    #[test]
    fn the_call_that_is_to_fail_fails_once() {
        let trial = Trial::default().fail_at(3);
        let clone = trial.clone();
        assert_eq!([trial.fails(), clone.fails(), trial.fails(), clone.fails()], [false, false, true, false]);
        assert!(!Trial::default().fails());
    }
}
