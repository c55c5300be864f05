//! Who keeps an instance: starts it, feeds it, takes its records, and starts it again if it dies.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use genuma_machine::placement::Policy;

use crate::deal::Batch;
use crate::instance::{Instance, Pace, Recipe, all_killed};
use crate::invocation::{Depends, Format, Order, Reads};
use crate::merge::{Fault, Given, Header, Lines, Sai, Sam, sam_header};
use crate::pages::{self, Pages, Sought};
use crate::threads::{self, Threads};

use super::feed::{Feeding, write_reads};
use super::{Desk, Error, OfInstance, Plan, join};

/// Bytes taken from an instance at once.
const TAKEN: usize = 1 << 20;
/// Processes that may die over the same reads.
const DEATHS: u32 = 2;
/// When the kernel is asked for pages first, after the first records; then after twice that, and so on.
const ASKED_AGAIN: Duration = Duration::from_secs(2);

/// Keeps the instance at a seat.
pub(super) struct Keeper<'a> {
    pub plan: &'a Plan,
    pub desk: &'a Desk,
    pub seat: usize,
    /// Bases (bp) of a block.
    pub block: Option<u64>,
}

/// How a process ended.
struct Ended {
    status: io::Result<ExitStatus>,
    /// What is wrong with its output.
    fault: Option<Fault>,
    /// Records came.
    answered: bool,
    words: Vec<String>,
    pages: Option<Pages>,
    threads: Option<Threads>,
}

impl Keeper<'_> {
    /// Until there are no more reads, or the run ends.
    pub fn keep(&self) -> OfInstance {
        let seat = &self.plan.seats[self.seat];
        let mut done = OfInstance {
            cpus: seat.cpus.to_string(),
            threads: seat.threads,
            policy: seat.policy.as_ref().map(Policy::to_string),
            ..OfInstance::default()
        };
        // No process before there are reads for it: it would load its index in vain.
        while self.desk.take(self.seat, 0, || false).is_some() {
            done.processes += 1;
            let recipe = Recipe { invocation: self.invocation(), block: self.block.unwrap_or(0) };
            let ended = match recipe.start(seat) {
                Ok(instance) => self.live(instance),
                Err(error) => {
                    self.desk.fail(error.into());
                    break;
                }
            };
            let again = self.heed(&ended);
            done.pages = ended.pages.or(done.pages);
            done.threads_found = ended.threads.or(done.threads_found);
            done.batches += self.desk.batches(self.seat);
            if !again {
                break;
            }
            self.desk.revive(self.seat);
        }
        if let (Some(pages), Some(policy)) = (&done.pages, &seat.policy) {
            done.as_asked = Some(pages.index_is_on(policy, &seat.nodes));
        }
        done
    }

    fn invocation(&self) -> &crate::Invocation {
        &self.plan.invocations[self.seat]
    }

    /// `instance 2 of 4 (bwa mem)`.
    fn who(&self) -> String {
        let aligner = &self.invocation().aligner;
        match self.plan.seats.len() {
            1 => aligner.clone(),
            n => format!("instance {} of {n} ({aligner})", self.seat + 1),
        }
    }

    /// The life of a process.
    fn live(&self, mut instance: Instance) -> Ended {
        self.desk.enlist(self.seat, instance.id());
        let depends = self.invocation().depends;
        let feeds = std::mem::take(&mut instance.feeds);
        let numbered =
            matches!(depends, Depends::Blocks { numbered: true, .. }).then_some(self.block).flatten();
        let apart = matches!(self.invocation().reads, Reads::Mixed(_));
        let (stdout, stderr) = (instance.stdout.take(), instance.stderr.take());
        let pipes = feeds.len();
        thread::scope(|scope| {
            for (pipe, feed) in feeds.into_iter().enumerate() {
                let feeding = Feeding { seat: self.seat, pipe, pipes, numbered, apart };
                scope.spawn(move || write_reads(self.desk, feeding, feed));
            }
            let heard = stderr.map(|stderr| scope.spawn(move || self.plan.words.hear(self.seat + 1, stderr)));
            let mut taker = Taker::new(self, &instance, numbered.is_some());
            let fault = stdout.and_then(|stdout| taker.take_all(stdout).err());
            if fault.is_some() {
                Instance::kill(instance.id());
            }
            let status = instance.wait();
            let fault = match (&status, fault) {
                (Ok(status), None) if status.success() && !self.desk.stopped() => taker.end().err(),
                (_, fault) => fault,
            };
            // Writers may wait for batches that it will not take.
            self.desk.leave(self.seat);
            let words = heard.map(join).unwrap_or_default();
            Ended {
                status,
                fault,
                answered: taker.answered,
                words,
                pages: taker.pages,
                threads: taker.threads,
            }
        })
    }

    /// Draws the consequences; whether another process is to be started.
    fn heed(&self, ended: &Ended) -> bool {
        if self.desk.stopped() || all_killed() {
            return false;
        }
        let owed = self.desk.owed(self.seat);
        let words = ended.words.clone();
        if let Some(fault) = ended.fault.clone() {
            self.desk.fail(Error::Output { who: self.who(), fault, words });
            return false;
        }
        let status = match &ended.status {
            Ok(status) if status.success() => return true,
            Ok(status) => *status,
            Err(error) => {
                let source = io::Error::new(error.kind(), error.to_string());
                self.desk.fail(Error::System { what: format!("waiting for {}", self.who()), source });
                return false;
            }
        };
        let how = match status.signal() {
            Some(signal) => format!("was killed by signal {signal}"),
            None => format!("failed with exit code {}", status.code().unwrap_or(-1)),
        };
        // One that says no before its first record says it of its command or its index, and would say it again.
        let by_itself = status.signal().is_none() && !ended.answered;
        let tied = self.invocation().depends == Depends::Everything;
        let deaths = owed.iter().map(|batch| batch.failed()).max().unwrap_or(0);
        if by_itself || tied || deaths >= DEATHS || owed.is_empty() {
            let how = if deaths >= DEATHS { format!("{how}, the second over these reads") } else { how };
            self.desk.fail(Error::Died { who: self.who(), how, words });
            return false;
        }
        tracing::warn!("{} {how}: its unanswered reads go to a new one", self.who());
        true
    }
}

/// Takes the records of a process.
struct Taker<'a> {
    keeper: &'a Keeper<'a>,
    parser: Parser,
    lines: Lines,
    group: u32,
    pace: Pace,
    answered: bool,
    pages: Option<Pages>,
    threads: Option<Threads>,
    asked: Option<(Instant, Duration)>,
}

enum Parser {
    Sam(Sam),
    Sai(Sai),
}

/// What a process was given, from its seat's side of the desk.
struct AtDesk<'a> {
    keeper: &'a Keeper<'a>,
    lines: &'a Lines,
}

impl Given for AtDesk<'_> {
    fn given(&self, index: usize) -> Option<Arc<Batch>> {
        self.keeper.desk.given(self.keeper.seat, index)
    }

    fn deliver(&self, batch: &Batch, records: Vec<u8>, ended: bool) {
        self.keeper.desk.deliver(self.keeper.seat, batch, records, ended);
    }

    fn header(&self, header: Vec<u8>) -> Result<(), Fault> {
        let header = match self.keeper.invocation().format {
            Format::Sam => sam_header(&header, self.lines, &self.keeper.plan.genuma),
            Format::Sai => Header { common: header.clone(), text: header },
        };
        if self.keeper.desk.header(header) { Ok(()) } else { Err(Fault::Header) }
    }
}

impl<'a> Taker<'a> {
    fn new(keeper: &'a Keeper<'a>, instance: &Instance, numbered: bool) -> Self {
        let invocation = keeper.invocation();
        let one_thread = keeper.plan.seats[keeper.seat].threads == 1;
        let in_order = invocation.order == Order::AsRead || one_thread;
        let parser = match invocation.format {
            Format::Sam => Parser::Sam(Sam::new(in_order, numbered)),
            Format::Sai => Parser::Sai(Sai::new(keeper.plan.plain_threads(invocation))),
        };
        let text = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
        let files = crate::deal::named(&invocation.reads);
        let pipes = instance.pipes.iter().map(|pipe| pipe.display().to_string());
        let lines = Lines {
            instance: instance.command.iter().map(text).collect(),
            plain: keeper.plan.plain.clone(),
            reads: pipes.zip(files).collect(),
        };
        let (group, pace) = (instance.id(), Pace::new(instance.stdout_holds));
        Taker { keeper, parser, lines, group, pace, answered: false, pages: None, threads: None, asked: None }
    }

    /// Until the process closes its output, or writes what is wrong.
    fn take_all(&mut self, mut from: impl Read) -> Result<(), Fault> {
        let mut bytes = vec![0; TAKEN];
        loop {
            let n = match from.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // How the process ended tells more.
                Err(_) => return Ok(()),
            };
            let given = AtDesk { keeper: self.keeper, lines: &self.lines };
            match &mut self.parser {
                Parser::Sam(sam) => sam.take(&bytes[..n], &given)?,
                Parser::Sai(sai) => sai.take(&bytes[..n], &given)?,
            }
            self.answered |= match &self.parser {
                Parser::Sam(sam) => sam.answered(),
                Parser::Sai(sai) => sai.answered(),
            };
            if self.answered {
                self.ask_where();
            }
            let pause = self.pace.after(n);
            if !pause.is_zero() {
                thread::sleep(pause);
            }
        }
    }

    fn ask_where(&mut self) {
        let now = Instant::now();
        let next = match self.asked {
            None => ASKED_AGAIN,
            Some((then, after)) if now.duration_since(then) >= after => after * 2,
            Some(_) => return,
        };
        self.asked = Some((now, next));
        let index = Sought::new(self.keeper.invocation().index.as_ref());
        let found = pages::of_group(self.group, &index);
        self.pages = match (self.pages.take(), found) {
            (Some(before), Some(later)) => Some(before.or_later(later)),
            (before, later) => later.or(before),
        };
        self.threads = threads::of_group(self.group).or(self.threads.take());
    }

    fn end(&mut self) -> Result<(), Fault> {
        let given = AtDesk { keeper: self.keeper, lines: &self.lines };
        match &mut self.parser {
            Parser::Sam(sam) => sam.end(&given),
            Parser::Sai(sai) => sai.end(&given),
        }
    }
}
