//! What may be chosen: how many instances of a program, and where each one's memory lies.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where the memory of an instance lies, as seen from the nodes that it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// As the kernel does unasked; threads are pinned to the instance's CPUs only if there are several instances.
    Default,
    /// On the node of the thread that touches it first; threads stay on the instance's CPUs.
    Local,
    /// Page by page over the nodes: of the machine if there is one instance, else of the instance.
    Interleave,
    /// The same by the kernel's weights.
    Weighted,
    /// On the instance's nodes and nowhere else.
    Bind,
}

impl Memory {
    /// All of them.
    pub const ALL: [Memory; 5] =
        [Memory::Default, Memory::Local, Memory::Interleave, Memory::Weighted, Memory::Bind];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Memory::Default => "default",
            Memory::Local => "local",
            Memory::Interleave => "interleave",
            Memory::Weighted => "weighted",
            Memory::Bind => "bind",
        }
    }
}

/// Instances × memory. Written `interleave` for one instance and `4xbind` for four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Strategy {
    /// Instances of the program, from 1.
    pub instances: u32,
    /// Where the memory of each lies.
    pub memory: Memory,
}

/// A word that is no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}: no strategy; write default, local, interleave, weighted or bind, or several instances as 4xbind"
)]
pub struct NotAStrategy(String);

impl Strategy {
    /// The plain run.
    pub const PLAIN: Strategy = Strategy { instances: 1, memory: Memory::Default };
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instances {
            1 => f.write_str(self.memory.name()),
            n => write!(f, "{n}x{}", self.memory.name()),
        }
    }
}

impl FromStr for Strategy {
    type Err = NotAStrategy;

    fn from_str(word: &str) -> Result<Self, NotAStrategy> {
        let wrong = || NotAStrategy(word.to_owned());
        let (instances, memory) = match word.split_once('x') {
            Some((n, memory)) => (n.parse().map_err(|_| wrong())?, memory),
            None => (1, word),
        };
        let memory = Memory::ALL.into_iter().find(|m| m.name() == memory).ok_or_else(wrong)?;
        if instances == 0 {
            return Err(wrong());
        }
        Ok(Strategy { instances, memory })
    }
}

impl TryFrom<String> for Strategy {
    type Error = NotAStrategy;

    fn try_from(word: String) -> Result<Self, NotAStrategy> {
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
        for memory in Memory::ALL {
            for instances in [1, 2, 16] {
                let strategy = Strategy { instances, memory };
                assert_eq!(strategy.to_string().parse(), Ok(strategy));
            }
        }
        assert_eq!("default".parse(), Ok(Strategy::PLAIN));
        assert_eq!("8xbind".parse(), Ok(Strategy { instances: 8, memory: Memory::Bind }));
    }

    #[test]
    fn what_is_none() {
        for word in ["", "x", "0xbind", "-1xbind", "2x", "2xfast", "bind2", "2 x bind", "x bind"] {
            assert!(word.parse::<Strategy>().is_err(), "{word}");
        }
    }
}
