//! Memory strategies: the number of instances of a program, and the memory policy of each.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Memory policy of each instance of a strategy, relative to the NUMA nodes on which the instance runs. Threads are
/// restricted to the instance's CPUs under each policy; one instance has all CPUs that genuma may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstanceMemoryPolicy {
    /// The kernel's default policy.
    Default,
    /// Pages on the node of the thread that touches them first.
    Local,
    /// Pages interleaved over the nodes: those of the machine for one instance, else those of the instance.
    Interleave,
    /// Pages interleaved over the same nodes as with [`Self::Interleave`], in proportion to the kernel's weights of the
    /// nodes.
    Weighted,
    /// Pages bound to nodes: those of the machine for one instance, else those of the instance.
    Bind,
}

impl InstanceMemoryPolicy {
    /// All memory policies, in the order in which they are listed to users.
    pub(crate) const ALL_MEMORY_POLICIES: [InstanceMemoryPolicy; 5] = [
        InstanceMemoryPolicy::Default,
        InstanceMemoryPolicy::Local,
        InstanceMemoryPolicy::Interleave,
        InstanceMemoryPolicy::Weighted,
        InstanceMemoryPolicy::Bind,
    ];

    /// Returns the name of the policy, as written in a strategy.
    pub fn policy_name(self) -> &'static str {
        match self {
            InstanceMemoryPolicy::Default => "default",
            InstanceMemoryPolicy::Local => "local",
            InstanceMemoryPolicy::Interleave => "interleave",
            InstanceMemoryPolicy::Weighted => "weighted",
            InstanceMemoryPolicy::Bind => "bind",
        }
    }
}

/// Number of instances and memory policy. Written `interleave` for one instance and `4xbind` for four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Strategy {
    /// Number of instances of the program, at least 1.
    pub instances: u32,
    /// Memory policy of each instance.
    pub memory: InstanceMemoryPolicy,
}

/// Error: the text is not a valid strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}: not a strategy; write default, local, interleave, weighted or bind, or several instances as 4xbind")]
pub struct ParseStrategyError(String);

impl Strategy {
    /// The plain run: one instance with the default memory policy.
    pub const PLAIN_RUN: Strategy = Strategy { instances: 1, memory: InstanceMemoryPolicy::Default };
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instances {
            1 => f.write_str(self.memory.policy_name()),
            n => write!(f, "{n}x{}", self.memory.policy_name()),
        }
    }
}

impl FromStr for Strategy {
    type Err = ParseStrategyError;

    fn from_str(word: &str) -> Result<Self, ParseStrategyError> {
        let wrong = || ParseStrategyError(word.to_owned());
        let (instances, memory) = match word.split_once('x') {
            Some((n, memory)) => (n.parse().map_err(|_| wrong())?, memory),
            None => (1, word),
        };
        let memory = InstanceMemoryPolicy::ALL_MEMORY_POLICIES
            .into_iter()
            .find(|m| m.policy_name() == memory)
            .ok_or_else(wrong)?;
        if instances == 0 {
            return Err(wrong());
        }
        Ok(Strategy { instances, memory })
    }
}

impl TryFrom<String> for Strategy {
    type Error = ParseStrategyError;

    fn try_from(word: String) -> Result<Self, ParseStrategyError> {
        word.parse()
    }
}

impl From<Strategy> for String {
    fn from(strategy: Strategy) -> String {
        strategy.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        for memory in InstanceMemoryPolicy::ALL_MEMORY_POLICIES {
            for instances in [1, 2, 16] {
                let strategy = Strategy { instances, memory };
                assert_eq!(strategy.to_string().parse(), Ok(strategy));
            }
        }
        assert_eq!("default".parse(), Ok(Strategy::PLAIN_RUN));
        assert_eq!("8xbind".parse(), Ok(Strategy { instances: 8, memory: InstanceMemoryPolicy::Bind }));
    }

    #[test]
    fn what_is_none() {
        for word in ["", "x", "0xbind", "-1xbind", "2x", "2xfast", "bind2", "2 x bind", "x bind"] {
            assert!(word.parse::<Strategy>().is_err(), "{word}");
        }
    }
}
