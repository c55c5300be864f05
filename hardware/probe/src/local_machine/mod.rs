//! Measures the local machine with placed buffers, pinned threads and the system clock.

mod buffers;
mod threads;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use genuma_machine::Topology;

use crate::backend::{Error, LoadedLatencySample, MeasurementBackend};
use crate::bandwidth_kernels::{InstructionSet, ThreadStreamArrays, read_with_pauses_until_stopped};
use crate::plan::{BandwidthJob, LatencyJob, LoadedLatencyJob};
use crate::pointer_chain::PointerChain;
use crate::profile::{BufferPlacementCheck, MemoryLocation};
use buffers::{MeasurementBuffers, split_arrays_among_threads};
use threads::{SpinBarrier, ThreadResult, run_on_pinned_threads};

/// Seed of the first random order. Fixed, so that each run uses the same chains.
const FIRST_SEED: u64 = 0x6765_6E75_6D61;
/// Divisor of the number of loads that gives the number of untimed loads before a latency measurement under load.
const WARM_UP_DIVISOR: u64 = 8;

/// Measurement backend of the local machine.
#[derive(Debug)]
pub struct LocalMachine {
    topology: Topology,
    instructions: InstructionSet,
    buffers: MeasurementBuffers,
    misplaced_threads: Vec<String>,
    start_time: Instant,
}

impl LocalMachine {
    /// Creates the backend for the local machine with this topology.
    pub fn new(topology: &Topology) -> LocalMachine {
        LocalMachine {
            topology: topology.clone(),
            instructions: InstructionSet::widest_supported(),
            buffers: MeasurementBuffers::default(),
            misplaced_threads: Vec::new(),
            start_time: Instant::now(),
        }
    }

    /// Adds a warning for each thread that ran on another CPU than the one it was pinned to. Returns the results of the
    /// threads.
    fn warn_about_misplaced_threads<T>(&mut self, cpus: &[u32], done: Vec<ThreadResult<T>>) -> Vec<T> {
        for (cpu, thread) in cpus.iter().zip(&done) {
            let remark = format!("a thread pinned to CPU {cpu} was found on CPU {}", thread.cpu);
            if *cpu != thread.cpu && !self.misplaced_threads.contains(&remark) {
                self.misplaced_threads.push(remark);
            }
        }
        done.into_iter().map(|thread| thread.result).collect()
    }

    fn cpu_node(&self, cpu: u32) -> u32 {
        self.topology.find_cpu(cpu).map_or(0, |cpu| cpu.node)
    }
}

impl MeasurementBackend for LocalMachine {
    fn measure_latency(&mut self, job: &LatencyJob) -> Result<Vec<f64>, Error> {
        let lines = self.buffers.get_or_allocate_chain_lines(job)?;
        let done = run_on_pinned_threads(&[job.cpu], vec![lines], |lines, _| {
            let mut ring = PointerChain::link_in_random_order(lines, FIRST_SEED)?;
            ring.follow_pointers(job.warm_up_loads);
            Some((0..job.repetitions).map(|_| time_pointer_chase(&mut ring, job.loads_per_repetition)).collect())
        })?;
        let times: Option<Vec<f64>> = self.warn_about_misplaced_threads(&[job.cpu], done).pop().flatten();
        times.ok_or(Error::EmptyPointerChain { bytes: job.chain_bytes, buffer: job.buffer_bytes })
    }

    fn measure_bandwidth(&mut self, job: &BandwidthJob) -> Result<Vec<f64>, Error> {
        let nodes: Vec<u32> = job.cpus.iter().map(|cpu| self.cpu_node(*cpu)).collect();
        let sets = self.buffers.get_or_allocate_stream_arrays(&job.memory, job.pages, job.arrays_bytes, &nodes)?;
        let parts: Vec<ThreadStreamArrays> = split_arrays_among_threads(sets, &nodes);
        let counted: u64 = parts.iter().map(|part| job.kernel.counted_bytes_per_pass(part.a.len())).sum();
        let (kernel, instructions, repetitions) = (job.kernel, self.instructions, job.repetitions);
        let inputs: Vec<_> = job.cpus.iter().copied().zip(parts).collect();
        let done = run_on_pinned_threads(&job.cpus, inputs, |(cpu, mut part), barrier| {
            let seed = FIRST_SEED ^ u64::from(cpu) << 32;
            // The first pass is not timed: it fills the TLB and raises the clock frequency.
            let passes = (0..=repetitions).map(|repetition| {
                barrier.wait_for_all_threads();
                let start = Instant::now();
                std::hint::black_box(kernel.run_pass(instructions, &mut part, seed + u64::from(repetition)));
                (start, Instant::now())
            });
            passes.skip(1).collect::<Vec<_>>()
        })?;
        let threads = self.warn_about_misplaced_threads(&job.cpus, done);
        // From the first start to the last end.
        let seconds = |repetition: usize| {
            let start = threads.iter().filter_map(|passes| passes.get(repetition)).map(|p| p.0).min();
            let end = threads.iter().filter_map(|passes| passes.get(repetition)).map(|p| p.1).max();
            start.zip(end).map_or(f64::NAN, |(start, end)| (end - start).as_secs_f64())
        };
        Ok((0..repetitions as usize).map(|r| counted as f64 / 1e9 / seconds(r)).collect())
    }

    fn measure_loaded_latency(&mut self, job: &LoadedLatencyJob) -> Result<Vec<Vec<LoadedLatencySample>>, Error> {
        let nodes: Vec<u32> = job.injector_cpus.iter().map(|cpu| self.cpu_node(*cpu)).collect();
        let spot = MemoryLocation::Node(job.latency_job.memory_node);
        let (lines, sets) = self.buffers.get_or_allocate_lines_and_arrays(
            &job.latency_job,
            &spot,
            job.latency_job.pages,
            job.arrays_bytes,
            &nodes,
        )?;
        let repetitions = job.latency_job.repetitions as usize;
        // One stop flag per repetition of each point: a flag is never reset while a thread may still read it.
        let stops: Vec<AtomicBool> = (0..job.pauses.len() * repetitions).map(|_| AtomicBool::new(false)).collect();
        let rounds = |stops: usize| (stops / repetitions, stops % repetitions);
        enum Role<'a> {
            Chase(&'a mut [crate::pointer_chain::CacheLine]),
            Inject(&'a [f64]),
        }
        let chase = |lines, barrier: &SpinBarrier| -> Option<Vec<f64>> {
            let mut ring = PointerChain::link_in_random_order(lines, FIRST_SEED)?;
            ring.follow_pointers(job.latency_job.warm_up_loads);
            let walk = |stop: &AtomicBool| {
                barrier.wait_for_all_threads();
                ring.follow_pointers(job.latency_job.loads_per_repetition / WARM_UP_DIVISOR);
                let time = time_pointer_chase(&mut ring, job.latency_job.loads_per_repetition);
                stop.store(true, Ordering::Relaxed);
                time
            };
            Some(stops.iter().map(walk).collect())
        };
        let inject = |part: &[f64], barrier: &SpinBarrier| -> Vec<f64> {
            let read = |(round, stop): (usize, &AtomicBool)| {
                barrier.wait_for_all_threads();
                let Some(pause) = job.pauses[rounds(round).0] else { return 0.0 };
                let start = Instant::now();
                let bytes = read_with_pauses_until_stopped(part, pause, stop);
                bytes as f64 / 1e9 / start.elapsed().as_secs_f64()
            };
            stops.iter().enumerate().map(read).collect()
        };
        let cpus: Vec<u32> = std::iter::once(job.latency_job.cpu).chain(job.injector_cpus.iter().copied()).collect();
        let parts = split_arrays_among_threads(sets, &nodes).into_iter().map(|part| Role::Inject(part.a));
        let roles: Vec<Role> = std::iter::once(Role::Chase(lines)).chain(parts).collect();
        let done = run_on_pinned_threads(&cpus, roles, |role, barrier| match role {
            Role::Chase(lines) => chase(lines, barrier),
            Role::Inject(part) => Some(inject(part, barrier)),
        })?;
        let results: Option<Vec<Vec<f64>>> = self.warn_about_misplaced_threads(&cpus, done).into_iter().collect();
        let no_ring =
            Error::EmptyPointerChain { bytes: job.latency_job.chain_bytes, buffer: job.latency_job.buffer_bytes };
        let results = results.ok_or(no_ring)?;
        let (times, rates) = results.split_first().ok_or(Error::ThreadPanicked)?;
        let mut points = vec![Vec::with_capacity(repetitions); job.pauses.len()];
        for (round, &load_ns) in times.iter().enumerate() {
            let injected_gbs = rates.iter().map(|rate| rate[round]).sum();
            points[rounds(round).0].push(LoadedLatencySample { injected_gbs, latency_ns: load_ns });
        }
        Ok(points)
    }

    fn buffer_checks(&self) -> Vec<BufferPlacementCheck> {
        self.buffers.buffer_checks.clone()
    }

    fn warnings(&self) -> Vec<String> {
        self.buffers.warnings.iter().chain(&self.misplaced_threads).cloned().collect()
    }

    fn instruction_set(&self) -> &'static str {
        self.instructions.instruction_set_name()
    }

    fn elapsed_s(&self) -> f64 {
        self.start_time.elapsed().as_secs_f64()
    }
}

/// Measures the latency of a pointer chain in nanoseconds per load, over at least `loads` loads.
fn time_pointer_chase(ring: &mut PointerChain, loads: u64) -> f64 {
    let start = Instant::now();
    let followed = ring.follow_pointers(loads);
    start.elapsed().as_secs_f64() * 1e9 / followed as f64
}
