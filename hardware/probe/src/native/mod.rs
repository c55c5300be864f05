//! Measuring this machine: buffers under a placement, pinned threads, the clock.

mod buffers;
mod threads;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use genuma_machine::Topology;

use crate::backend::{Backend, Error, UnderLoad};
use crate::chase::Ring;
use crate::kernels::{Arrays, Instructions, inject};
use crate::plan::{Chase, Loaded, Stream};
use crate::profile::{BufferCheck, Spot};
use buffers::{Buffers, shared_out};
use threads::{Barrier, Done, on_cpus};

/// Seed of the first random order: the same rings on each run.
const SEED: u64 = 0x6765_6E75_6D61;
/// Share of a chase's loads that are done under load before the clock starts.
const HEAD_START: u64 = 8;

/// This machine.
#[derive(Debug)]
pub struct Native {
    topology: Topology,
    instructions: Instructions,
    buffers: Buffers,
    astray: Vec<String>,
    began: Instant,
}

impl Native {
    /// This machine, whose topology is this.
    pub fn new(topology: &Topology) -> Native {
        Native {
            topology: topology.clone(),
            instructions: Instructions::best(),
            buffers: Buffers::default(),
            astray: Vec::new(),
            began: Instant::now(),
        }
    }

    /// Notes threads that were not where they were put.
    fn look_at<T>(&mut self, cpus: &[u32], done: Vec<Done<T>>) -> Vec<T> {
        for (cpu, thread) in cpus.iter().zip(&done) {
            let remark = format!("a thread pinned to CPU {cpu} was found on CPU {}", thread.found_on);
            if *cpu != thread.found_on && !self.astray.contains(&remark) {
                self.astray.push(remark);
            }
        }
        done.into_iter().map(|thread| thread.result).collect()
    }

    fn node_of(&self, cpu: u32) -> u32 {
        self.topology.cpu(cpu).map_or(0, |cpu| cpu.node)
    }
}

impl Backend for Native {
    fn chase(&mut self, job: &Chase) -> Result<Vec<f64>, Error> {
        let lines = self.buffers.ring(job)?;
        let done = on_cpus(&[job.cpu], vec![lines], |lines, _| {
            let mut ring = Ring::new(lines, SEED)?;
            ring.walk(job.warm_up);
            Some((0..job.repetitions).map(|_| timed_walk(&mut ring, job.loads)).collect())
        })?;
        let times: Option<Vec<f64>> = self.look_at(&[job.cpu], done).pop().flatten();
        times.ok_or(Error::NoRing { bytes: job.bytes, buffer: job.buffer })
    }

    fn stream(&mut self, job: &Stream) -> Result<Vec<f64>, Error> {
        let nodes: Vec<u32> = job.cpus.iter().map(|cpu| self.node_of(*cpu)).collect();
        let sets = self.buffers.arrays(&job.memory, job.pages, job.bytes, &nodes)?;
        let parts: Vec<Arrays> = shared_out(sets, &nodes);
        let counted: u64 = parts.iter().map(|part| job.kernel.counted(part.a.len())).sum();
        let (kernel, instructions, repetitions) = (job.kernel, self.instructions, job.repetitions);
        let inputs: Vec<_> = job.cpus.iter().copied().zip(parts).collect();
        let done = on_cpus(&job.cpus, inputs, |(cpu, mut part), barrier| {
            let seed = SEED ^ u64::from(cpu) << 32;
            // The first pass is not timed: it fills translations and brings the clock up.
            let passes = (0..=repetitions).map(|repetition| {
                barrier.wait();
                let start = Instant::now();
                std::hint::black_box(kernel.pass(instructions, &mut part, seed + u64::from(repetition)));
                (start, Instant::now())
            });
            passes.skip(1).collect::<Vec<_>>()
        })?;
        let threads = self.look_at(&job.cpus, done);
        // From the first start to the last end.
        let seconds = |repetition: usize| {
            let start = threads.iter().filter_map(|passes| passes.get(repetition)).map(|p| p.0).min();
            let end = threads.iter().filter_map(|passes| passes.get(repetition)).map(|p| p.1).max();
            start.zip(end).map_or(f64::NAN, |(start, end)| (end - start).as_secs_f64())
        };
        Ok((0..repetitions as usize).map(|r| counted as f64 / 1e9 / seconds(r)).collect())
    }

    fn loaded(&mut self, job: &Loaded) -> Result<Vec<Vec<UnderLoad>>, Error> {
        let nodes: Vec<u32> = job.injectors.iter().map(|cpu| self.node_of(*cpu)).collect();
        let spot = Spot::Node(job.chase.memory_node);
        let (lines, sets) =
            self.buffers.ring_and_arrays(&job.chase, &spot, job.chase.pages, job.bytes, &nodes)?;
        let repetitions = job.chase.repetitions as usize;
        // One for each repetition of each point: nobody resets what others may still look at.
        let stops: Vec<AtomicBool> =
            (0..job.pauses.len() * repetitions).map(|_| AtomicBool::new(false)).collect();
        let rounds = |stops: usize| (stops / repetitions, stops % repetitions);
        enum Role<'a> {
            Chase(&'a mut [crate::chase::Line]),
            Inject(&'a [f64]),
        }
        let chase = |lines, barrier: &Barrier| -> Option<Vec<f64>> {
            let mut ring = Ring::new(lines, SEED)?;
            ring.walk(job.chase.warm_up);
            let walk = |stop: &AtomicBool| {
                barrier.wait();
                ring.walk(job.chase.loads / HEAD_START);
                let time = timed_walk(&mut ring, job.chase.loads);
                stop.store(true, Ordering::Relaxed);
                time
            };
            Some(stops.iter().map(walk).collect())
        };
        let inject = |part: &[f64], barrier: &Barrier| -> Vec<f64> {
            let read = |(round, stop): (usize, &AtomicBool)| {
                barrier.wait();
                let Some(pause) = job.pauses[rounds(round).0] else { return 0.0 };
                let start = Instant::now();
                let bytes = inject(part, pause, stop);
                bytes as f64 / 1e9 / start.elapsed().as_secs_f64()
            };
            stops.iter().enumerate().map(read).collect()
        };
        let cpus: Vec<u32> = std::iter::once(job.chase.cpu).chain(job.injectors.iter().copied()).collect();
        let parts = shared_out(sets, &nodes).into_iter().map(|part| Role::Inject(part.a));
        let roles: Vec<Role> = std::iter::once(Role::Chase(lines)).chain(parts).collect();
        let done = on_cpus(&cpus, roles, |role, barrier| match role {
            Role::Chase(lines) => chase(lines, barrier),
            Role::Inject(part) => Some(inject(part, barrier)),
        })?;
        let results: Option<Vec<Vec<f64>>> = self.look_at(&cpus, done).into_iter().collect();
        let no_ring = Error::NoRing { bytes: job.chase.bytes, buffer: job.chase.buffer };
        let results = results.ok_or(no_ring)?;
        let (times, rates) = results.split_first().ok_or(Error::Thread)?;
        let mut points = vec![Vec::with_capacity(repetitions); job.pauses.len()];
        for (round, &load_ns) in times.iter().enumerate() {
            let injected_gbs = rates.iter().map(|rate| rate[round]).sum();
            points[rounds(round).0].push(UnderLoad { injected_gbs, load_ns });
        }
        Ok(points)
    }

    fn buffers(&self) -> Vec<BufferCheck> {
        self.buffers.checks.clone()
    }

    fn remarks(&self) -> Vec<String> {
        self.buffers.remarks.iter().chain(&self.astray).cloned().collect()
    }

    fn instructions(&self) -> &'static str {
        self.instructions.name()
    }

    fn clock_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}

/// ns a load.
fn timed_walk(ring: &mut Ring, loads: u64) -> f64 {
    let start = Instant::now();
    let followed = ring.walk(loads);
    start.elapsed().as_secs_f64() * 1e9 / followed as f64
}
