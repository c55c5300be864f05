//! Runs any program in one process with placed CPUs and memory. Its input is not divided. The program has the standard
//! input, output and error of genuma.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

use genuma_machine::placement::{MemoryPolicy, ScopedMemoryPolicy, pin};
use genuma_work::cost::measure_process_cost;
use genuma_work::counters::{ChildCounters, RunCounterRecorder, wait_for_child};
use genuma_work::signals::{forward_signals_to_child, stop_forwarding_signals};

use crate::cpu_layout::CpuSlot;
use crate::instance::{StartError, kill_process_when_parent_thread_ends, wait_for_exit_without_reaping};
use crate::invocation::{Error, check_program_installed};
use crate::memory_pages::{HugePageSampler, MemoryPages};
use crate::page_placement::{PagePlacement, process_ids_of_tree};
use crate::run::{InstanceSummary, RunSummary, stop_resource_counters};
use crate::strategy::Strategy;

const THREADS_PLACEHOLDER: &str = "{threads}";
/// Number that shells add to the number of the signal that killed a program, to get its exit code.
const EXIT_CODE_OF_SIGNAL: i32 = 128;

/// A command line of any program.
#[derive(Debug, Clone)]
pub struct PlacedCommand {
    words: Vec<OsString>,
    /// Whether to count the resources that the program and genuma use.
    has_counters: bool,
}

/// Error: the strategy has several instances, which are possible for aligners only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{strategy}: genuma does not know {program} and cannot divide its input, so only one instance is possible: use --strategy \
     default, local, interleave, weighted or bind; if it aligns reads, name them with --reads"
)]
pub struct SeveralInstancesError {
    strategy: Strategy,
    program: String,
}

impl PlacedCommand {
    /// Creates the command from its words, the program first. `{threads}` stands for the number of threads.
    pub fn from_words(words: &[OsString], has_counters: bool) -> PlacedCommand {
        PlacedCommand { words: words.to_vec(), has_counters }
    }

    /// File name of the program.
    pub fn program_name(&self) -> String {
        Path::new(self.program()).file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn program(&self) -> &OsStr {
        self.words.first().map(OsString::as_os_str).unwrap_or_default()
    }

    /// Checks that the program exists.
    ///
    /// # Errors
    /// The program is missing.
    pub fn check_installed(&self) -> Result<(), Error> {
        check_program_installed(self.program())
    }

    /// Checks that the strategy has one instance.
    ///
    /// # Errors
    /// The strategy has several instances.
    pub fn check_strategy_has_one_instance(&self, strategy: Strategy) -> Result<(), SeveralInstancesError> {
        match strategy.instances {
            1 => Ok(()),
            _ => Err(SeveralInstancesError { strategy, program: self.program_name() }),
        }
    }

    /// Runs the program on the CPUs and with the memory policy of `cpu_slot` until it ends. Passes signals that genuma
    /// gets on to the program.
    ///
    /// # Errors
    /// The program cannot be started, or its CPUs or memory policy cannot be set.
    pub fn run(&self, cpu_slot: &CpuSlot) -> Result<RunSummary, StartError> {
        let (start, before) = (Instant::now(), measure_process_cost());
        let own = self.has_counters.then(RunCounterRecorder::start);
        let mut counters = self.has_counters.then(ChildCounters::for_next_child);
        let id = self.start(cpu_slot)?.id();
        if let Some(counters) = &mut counters {
            counters.start_sampling(move || process_ids_of_tree(id));
        }
        let huge_pages = (cpu_slot.pages != MemoryPages::Default)
            .then(|| HugePageSampler::start(move || process_ids_of_tree(id)))
            .flatten();
        wait_for_exit_without_reaping(id);
        stop_forwarding_signals();
        let (status, usage) = wait_for_child(id).map_err(|source| self.start_error(source))?;
        let counters = counters.map(|counters| counters.finish(usage));
        let huge_pages = huge_pages.and_then(HugePageSampler::finish);
        let (own_counters, machine_counters) = stop_resource_counters(own);
        let pages = counters.as_ref().map(|counters| counters.resident_bytes_by_node.clone());
        Ok(RunSummary {
            reads: None,
            exit_code: Some(status.code().or(status.signal().map(|n| EXIT_CODE_OF_SIGNAL + n)).unwrap_or(1)),
            wall_s: start.elapsed().as_secs_f64(),
            instances_cpu_s: usage.total_cpu_s(),
            own_cpu_s: measure_process_cost().cpu_s - before.cpu_s,
            instances: vec![InstanceSummary {
                cpus: cpu_slot.cpus.to_string(),
                nodes: cpu_slot.nodes.to_string(),
                threads: cpu_slot.threads,
                policy: cpu_slot.policy.as_ref().map(MemoryPolicy::to_string),
                requested_pages: cpu_slot.pages,
                huge_pages,
                processes: 1,
                pages: pages.filter(|all| !all.is_empty()).map(|all| PagePlacement { all, ..PagePlacement::default() }),
                counters,
                ..InstanceSummary::default()
            }],
            intervals: None,
            aligned: Vec::new(),
            own_counters,
            machine_counters,
        })
    }

    /// Starts the program. It inherits affinity and memory policy of this thread.
    fn start(&self, cpu_slot: &CpuSlot) -> Result<Child, StartError> {
        let threads = cpu_slot.threads.to_string();
        let mut command = Command::new(self.program());
        command.args(self.words.iter().skip(1).map(|word| replace_threads(word, &threads)));
        kill_process_when_parent_thread_ends(&mut command);
        cpu_slot.pages.apply_to_command(&mut command);
        let _pinned = pin::pin_to_cpus(&cpu_slot.cpus)?;
        let _scoped = cpu_slot.policy.as_ref().map(ScopedMemoryPolicy::set_thread_policy).transpose()?;
        let child = command.spawn().map_err(|source| self.start_error(source))?;
        forward_signals_to_child(child.id());
        Ok(child)
    }

    fn start_error(&self, source: std::io::Error) -> StartError {
        StartError::Program { program: self.program().to_string_lossy().into_owned(), source }
    }
}

/// Replaces `{threads}` in a word; words that are not UTF-8 stay as they are.
fn replace_threads(word: &OsStr, threads: &str) -> OsString {
    word.to_str().map_or_else(|| word.to_owned(), |text| text.replace(THREADS_PLACEHOLDER, threads).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> PlacedCommand {
        PlacedCommand::from_words(&words.iter().map(OsString::from).collect::<Vec<_>>(), true)
    }

    fn slot() -> CpuSlot {
        let cpus = pin::allowed_cpus();
        CpuSlot { cpus, nodes: genuma_machine::IdSet::from([0]), policy: None, threads: 3, pages: MemoryPages::Default }
    }

    #[test]
    fn the_exit_code_is_passed_on() {
        let code = |script: &str| command(&["sh", "-c", script]).run(&slot()).expect("a run").exit_code;
        assert_eq!(code("exit 0"), Some(0));
        assert_eq!(code("exit 7"), Some(7));
        assert_eq!(code("kill -TERM $$"), Some(128 + 15));
        assert_eq!(code("test {threads} = 3"), Some(0));
    }

    #[test]
    fn a_program_is_counted() {
        let summary = command(&["sh", "-c", "sleep 0.5"]).run(&slot()).expect("a run");
        let [instance] = &summary.instances[..] else { panic!("{summary:?}") };
        let counters = instance.counters.as_ref().expect("counters");
        assert!(counters.voluntary_switches > 0 && counters.minor_faults > 0, "{counters:?}");
        assert!(summary.own_counters.is_some() && summary.machine_counters.is_some() && summary.reads.is_none());
    }

    #[test]
    fn several_instances_of_an_unknown_program_are_refused() {
        let samtools = command(&["/usr/bin/samtools", "sort"]);
        assert_eq!(samtools.check_strategy_has_one_instance("bind".parse().expect("a strategy")), Ok(()));
        let error =
            samtools.check_strategy_has_one_instance("4xbind".parse().expect("a strategy")).unwrap_err().to_string();
        assert!(error.starts_with("4xbind: genuma does not know samtools") && error.contains("--reads"), "{error}");
    }

    #[test]
    fn a_missing_program_is_an_error() {
        assert!(command(&["no-such-program"]).check_installed().is_err());
        assert!(command(&["no-such-program"]).run(&slot()).is_err());
    }
}
