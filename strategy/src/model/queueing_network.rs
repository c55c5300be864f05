//! Solves a closed queueing network of threads by approximate mean value analysis.

use std::collections::BTreeMap;

/// A station of the queueing network: a memory controller, a path between nodes or a lock, which serves one thread at a
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServiceStation {
    /// The memory controller of the node with this index.
    MemoryController(usize),
    /// Path from the CPUs of one node to the memory of another.
    Path(usize, usize),
    /// Input/output lock of an instance.
    Lock(usize),
}

/// Threads of one instance on one node, which the queueing model treats alike.
#[derive(Debug, Clone)]
pub(super) struct ThreadClass {
    /// Number of threads; a mean that may be fractional.
    pub threads: f64,
    /// Think time: time per read that a thread spends without using a station, s.
    pub(crate) think_time_s: f64,
    /// Stations that a thread uses, with the service time per read at each, s.
    pub(crate) visits: Vec<(ServiceStation, f64)>,
}

/// Returns the reads per second of all classes together.
///
/// Uses Schweitzer's approximation: a thread that arrives at a station finds the mean queue of the station, less its
/// own share of the queue of its class.
pub(super) fn approximate_reads_per_s(classes: &[ThreadClass]) -> f64 {
    let mut numbers = BTreeMap::new();
    for (station, _) in classes.iter().flat_map(|class| &class.visits) {
        let next = numbers.len();
        numbers.entry(*station).or_insert(next);
    }
    let visits: Vec<Vec<(usize, f64)>> = classes
        .iter()
        .map(|class| class.visits.iter().map(|(station, service)| (numbers[station], *service)).collect())
        .collect();
    let even = |(class, visits): (&ThreadClass, &Vec<_>)| vec![class.threads / visits.len() as f64; visits.len()];
    let mut queues: Vec<Vec<f64>> = classes.iter().zip(&visits).map(even).collect();
    let mut total = vec![0.0; numbers.len()];
    let mut reads = 0.0;
    for _ in 0..MAX_ROUNDS {
        total.fill(0.0);
        for (queues, visits) in queues.iter().zip(&visits) {
            for (queue, (station, _)) in queues.iter().zip(visits) {
                total[*station] += queue;
            }
        }
        let before = reads;
        reads = 0.0;
        for ((class, queues), visits) in classes.iter().zip(&mut queues).zip(&visits) {
            // A class of less than one thread does not meet itself either.
            let own = 1.0 / class.threads.max(1.0);
            let mut around = class.think_time_s;
            for (queue, (station, service)) in queues.iter_mut().zip(visits) {
                let waiting = service * (1.0 + total[*station] - *queue * own);
                around += waiting;
                *queue = waiting;
            }
            let rate = class.threads / around;
            for queue in queues {
                *queue *= rate;
            }
            reads += rate;
        }
        if (reads - before).abs() <= CONVERGENCE_TOLERANCE * reads {
            break;
        }
    }
    reads
}

const MAX_ROUNDS: usize = 500;
/// Relative change of the throughput at which the iteration stops.
const CONVERGENCE_TOLERANCE: f64 = 1e-7;
