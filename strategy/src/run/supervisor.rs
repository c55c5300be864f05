//! Supervises an instance: starts it, sends it reads, reads its records, and restarts it if it dies.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;

use genuma_machine::placement::MemoryPolicy;
use genuma_work::counters::ProcessCounters;

use crate::batching::InstanceBatch;
use crate::instance::{Instance, InstanceLauncher, PipePacing, format_failure, is_shutting_down};
use crate::invocation::{OutputFormat, ReadDependence, ReadFiles, RecordOrder};
use crate::memory_pages::HugePageUse;
use crate::merge::{
    AlignerOutputError, AlignerOutputReceiver, InstanceAndPlainCommandLines, RewrittenInstanceHeader, SaiParser,
    SamParser, rewrite_sam_header,
};
use crate::page_placement::AlignerIndexFiles;

use super::placement_sampler::{PlacementSample, PlacementSampler};
use super::read_feeder::{PipeFeedOptions, feed_input_pipe};
use super::{BatchBroker, Error, InstanceSummary, RunPlan, join_thread};

/// Maximum bytes read from an instance at once.
const READ_BYTES: usize = 1 << 20;
/// Number of processes that die over the same reads at which the run fails.
const MAX_DEATHS: u32 = 2;

/// Supervises the instance of one CPU slot.
pub(super) struct InstanceSupervisor<'a> {
    /// The run to which the instance belongs.
    pub plan: &'a RunPlan,
    /// Gives batches to the instance and takes its records.
    pub broker: &'a BatchBroker,
    /// Index of the instance among all instances, from 0.
    pub instance_index: usize,
    /// Number of bases in a block of reads; `None` without blocks.
    pub block: Option<u64>,
}

/// How a process ended, and what it wrote and used.
struct ProcessEnd {
    status: io::Result<ExitStatus>,
    /// Error in the output of the process, if there was one.
    output_error: Option<AlignerOutputError>,
    /// Whether the process wrote a record after its SAM header, or a complete `.sai` header.
    answered: bool,
    stderr_lines: Vec<String>,
    placement: PlacementSample,
    counters: Option<ProcessCounters>,
    huge_pages: Option<HugePageUse>,
}

impl InstanceSupervisor<'_> {
    /// Runs processes of the instance until there are no more reads or the run ends.
    pub(super) fn supervise_instance(&self) -> InstanceSummary {
        let cpu_slot = &self.plan.cpu_slots[self.instance_index];
        let mut done = InstanceSummary {
            cpus: cpu_slot.cpus.to_string(),
            nodes: cpu_slot.nodes.to_string(),
            threads: cpu_slot.threads,
            policy: cpu_slot.policy.as_ref().map(MemoryPolicy::to_string),
            requested_pages: cpu_slot.pages,
            ..InstanceSummary::default()
        };
        // Start the process only when there are reads, so that the index is not loaded in vain.
        while self.broker.get_or_assign_batch(self.instance_index, 0, || false).is_some() {
            done.processes += 1;
            let recipe = InstanceLauncher {
                invocation: self.invocation(),
                block: self.block.unwrap_or(0),
                has_counters: self.plan.has_counters,
            };
            let ended = match recipe.start_instance(cpu_slot) {
                Ok(instance) => self.run_process(instance),
                Err(error) => {
                    self.broker.fail_run(error.into());
                    break;
                }
            };
            let again = self.handle_end(&ended);
            done.pages = ended.placement.pages.or(done.pages);
            done.huge_pages = ended.huge_pages.or(done.huge_pages);
            done.threads_found = ended.placement.threads.or(done.threads_found);
            done.counters = match (done.counters.take(), ended.counters) {
                (Some(before), Some(later)) => Some(before.add_counters_of_later_process(later)),
                (before, later) => before.or(later),
            };
            done.batches += self.broker.count_assigned_batches(self.instance_index);
            if !again {
                break;
            }
            self.broker.requeue_unfinished_batches(self.instance_index);
        }
        if let (Some(counters), Some(pages)) = (&mut done.counters, &done.pages) {
            counters.keep_larger_resident_sample(&pages.all);
        }
        if let (Some(pages), Some(policy)) = (&done.pages, &cpu_slot.policy) {
            done.as_asked = Some(pages.is_index_on_requested_nodes(policy, &cpu_slot.nodes));
        }
        done
    }

    fn invocation(&self) -> &crate::Invocation {
        &self.plan.invocations[self.instance_index]
    }

    /// Returns the name of the instance, such as `instance 2 of 4 (bwa mem)`; for one instance that of the aligner.
    fn instance_name(&self) -> String {
        let aligner = &self.invocation().aligner;
        match self.plan.cpu_slots.len() {
            1 => aligner.clone(),
            n => format!("instance {} of {n} ({aligner})", self.instance_index + 1),
        }
    }

    /// Runs one process from start to end.
    fn run_process(&self, mut instance: Instance) -> ProcessEnd {
        self.broker.register_process(self.instance_index, instance.process_id());
        instance.start_resource_sampling();
        let depends = self.invocation().depends;
        let input_pipes = std::mem::take(&mut instance.input_pipes);
        let numbered = matches!(depends, ReadDependence::Blocks { numbered: true, .. }).then_some(self.block).flatten();
        let apart = matches!(self.invocation().reads, ReadFiles::Mixed(_));
        let (stdout, stderr) = (instance.stdout.take(), instance.stderr.take());
        let pipes = input_pipes.len();
        let index = AlignerIndexFiles::of_index(self.invocation().index.as_ref());
        let sampler = PlacementSampler::new(instance.process_id(), index);
        let (status, output_error, answered, stderr_lines) = thread::scope(|scope| {
            for (pipe, feed) in input_pipes.into_iter().enumerate() {
                let feeding =
                    PipeFeedOptions { instance: self.instance_index, pipe, pipes, numbered, own_block: apart };
                let sampler = &sampler;
                scope.spawn(move || feed_input_pipe(self.broker, feeding, sampler, feed));
            }
            let heard = stderr.map(|stderr| {
                scope.spawn(move || {
                    self.plan.stderr_logging.log_stderr_lines(&format!("instance {}", self.instance_index + 1), stderr)
                })
            });
            let mut taker = OutputReader::new(self, &instance, &sampler, numbered.is_some());
            let output_error = stdout.and_then(|stdout| taker.read_all(stdout).err());
            if output_error.is_some() {
                Instance::kill_instance(instance.process_id());
            }
            let status = instance.wait_for_exit();
            let output_error = match (&status, output_error) {
                (Ok(status), None) if status.success() && !self.broker.is_stopped() => taker.finish_parsing().err(),
                (_, output_error) => output_error,
            };
            // Feeder threads may wait for batches that the process will not read.
            self.broker.mark_process_ended(self.instance_index);
            (status, output_error, taker.answered, heard.map(join_thread).unwrap_or_default())
        });
        let (placement, counters) = (sampler.into_sample(), instance.take_counters());
        let huge_pages = instance.take_huge_page_use();
        ProcessEnd { status, output_error, answered, stderr_lines, placement, counters, huge_pages }
    }

    /// Handles the end of a process. Returns whether to start another process.
    fn handle_end(&self, ended: &ProcessEnd) -> bool {
        if self.broker.is_stopped() || is_shutting_down() {
            return false;
        }
        let unfinished = self.broker.unfinished_batches(self.instance_index);
        let stderr_lines = ended.stderr_lines.clone();
        if let Some(output_error) = ended.output_error.clone() {
            self.broker.fail_run(Error::Output { instance_name: self.instance_name(), output_error, stderr_lines });
            return false;
        }
        let status = match &ended.status {
            Ok(status) if status.success() => {
                // Input without reads is one batch without records.
                for batch in unfinished.iter().filter(|batch| batch.wait_for_num_reads() == 0) {
                    self.broker.deliver_records(self.instance_index, batch, Vec::new(), true);
                }
                return true;
            }
            Ok(status) => *status,
            Err(error) => {
                let source = io::Error::new(error.kind(), error.to_string());
                self.broker.fail_run(Error::System { what: format!("waiting for {}", self.instance_name()), source });
                return false;
            }
        };
        let exit_reason = format_failure(status);
        // A process that fails before its first record has a problem with its command or index, and would fail again.
        let by_itself = status.signal().is_none() && !ended.answered;
        let tied = self.invocation().depends == ReadDependence::AllEarlierReads;
        let deaths = unfinished.iter().map(|batch| batch.increment_process_failures()).max().unwrap_or(0);
        if by_itself || tied || deaths >= MAX_DEATHS || unfinished.is_empty() {
            let exit_reason = if deaths >= MAX_DEATHS {
                format!("{exit_reason}, the second process over the same reads")
            } else {
                exit_reason
            };
            self.broker.fail_run(Error::Died { instance_name: self.instance_name(), exit_reason, stderr_lines });
            return false;
        }
        tracing::warn!(
            "{} {exit_reason}: its unfinished reads go to a new process, so no record is lost; if this happens again, check that the \
             machine has enough memory",
            self.instance_name()
        );
        true
    }
}

/// Reads and parses the output of a process.
struct OutputReader<'a> {
    supervisor: &'a InstanceSupervisor<'a>,
    parser: OutputParser,
    lines: InstanceAndPlainCommandLines,
    sampler: &'a PlacementSampler,
    pace: PipePacing,
    answered: bool,
}

enum OutputParser {
    Sam(SamParser),
    Sai(SaiParser),
}

/// Passes the header and the records of a process from its output parser to the broker.
struct BrokerConnection<'a> {
    supervisor: &'a InstanceSupervisor<'a>,
    lines: &'a InstanceAndPlainCommandLines,
}

impl AlignerOutputReceiver for BrokerConnection<'_> {
    fn assigned_batch(&self, index: usize) -> Option<Arc<InstanceBatch>> {
        self.supervisor.broker.assigned_batch(self.supervisor.instance_index, index)
    }

    fn deliver_records(&self, batch: &InstanceBatch, records: Vec<u8>, ended: bool) {
        self.supervisor.broker.deliver_records(self.supervisor.instance_index, batch, records, ended);
    }

    fn accept_header(&self, header: Vec<u8>) -> Result<(), AlignerOutputError> {
        let header = match self.supervisor.invocation().format {
            OutputFormat::Sam => rewrite_sam_header(&header, self.lines, &self.supervisor.plan.genuma),
            OutputFormat::Sai => RewrittenInstanceHeader { common: header.clone(), text: header },
        };
        if self.supervisor.broker.keep_first_header_and_compare(header) {
            Ok(())
        } else {
            Err(AlignerOutputError::DifferentHeader)
        }
    }
}

impl<'a> OutputReader<'a> {
    fn new(
        supervisor: &'a InstanceSupervisor<'a>,
        instance: &Instance,
        sampler: &'a PlacementSampler,
        numbered: bool,
    ) -> Self {
        let invocation = supervisor.invocation();
        let one_thread = supervisor.plan.cpu_slots[supervisor.instance_index].threads == 1;
        let in_order = invocation.order == RecordOrder::InputOrder || one_thread;
        let parser = match invocation.format {
            OutputFormat::Sam => OutputParser::Sam(SamParser::new(in_order, numbered)),
            OutputFormat::Sai => OutputParser::Sai(SaiParser::new(supervisor.plan.plain_threads(invocation))),
        };
        let text = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
        let files = crate::batching::format_read_file_names_as_words(&invocation.reads);
        let pipes = instance.pipes.iter().map(|pipe| pipe.display().to_string());
        let lines = InstanceAndPlainCommandLines {
            instance: instance.command.iter().map(text).collect(),
            plain: supervisor.plan.plain.clone(),
            reads: pipes.zip(files).collect(),
        };
        let pace = PipePacing::for_pipe_size(instance.stdout_pipe_bytes);
        OutputReader { supervisor, parser, lines, sampler, pace, answered: false }
    }

    /// Reads until the process closes its output or writes invalid output.
    fn read_all(&mut self, mut from: impl Read) -> Result<(), AlignerOutputError> {
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let n = match from.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The exit status tells more.
                Err(_) => return Ok(()),
            };
            let given = BrokerConnection { supervisor: self.supervisor, lines: &self.lines };
            match &mut self.parser {
                OutputParser::Sam(sam) => sam.parse_bytes(&bytes[..n], &given)?,
                OutputParser::Sai(sai) => sai.parse_bytes(&bytes[..n], &given)?,
            }
            self.answered |= match &self.parser {
                OutputParser::Sam(sam) => sam.has_parsed_header(),
                OutputParser::Sai(sai) => sai.has_parsed_header(),
            };
            if self.answered {
                self.sampler.sample_if_due_after_records();
            }
            let pause = self.pace.choose_pause_after_read(n);
            if !pause.is_zero() {
                thread::sleep(pause);
            }
        }
    }

    fn finish_parsing(&mut self) -> Result<(), AlignerOutputError> {
        let given = BrokerConnection { supervisor: self.supervisor, lines: &self.lines };
        match &mut self.parser {
            OutputParser::Sam(sam) => sam.finish_parsing(&given),
            OutputParser::Sai(sai) => sai.finish_parsing(&given),
        }
    }
}
