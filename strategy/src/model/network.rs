//! A closed network of threads that queue, solved by approximate mean value analysis.

use std::collections::BTreeMap;

/// What serves one thread at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Station {
    /// The memory of a node.
    Bank(usize),
    /// The way to a node's memory from another node's CPUs.
    Path(usize, usize),
    /// The lock of an instance.
    Lock(usize),
}

/// Threads of one instance on one node.
#[derive(Debug, Clone)]
pub struct Class {
    /// How many; a mean may be no whole number.
    pub threads: f64,
    /// Seconds that a read takes a thread where it never waits for another.
    pub(crate) think: f64,
    /// Seconds of service that a read needs at each station.
    pub(crate) visits: Vec<(Station, f64)>,
}

/// Reads a second of all classes together.
///
/// Schweitzer's approximation: who arrives at a station finds the mean queue there, his own class's without his own share.
pub fn throughput(classes: &[Class]) -> f64 {
    let mut numbers = BTreeMap::new();
    for (station, _) in classes.iter().flat_map(|class| &class.visits) {
        let next = numbers.len();
        numbers.entry(*station).or_insert(next);
    }
    let visits: Vec<Vec<(usize, f64)>> = classes
        .iter()
        .map(|class| class.visits.iter().map(|(station, service)| (numbers[station], *service)).collect())
        .collect();
    let even = |(class, visits): (&Class, &Vec<_>)| vec![class.threads / visits.len() as f64; visits.len()];
    let mut queues: Vec<Vec<f64>> = classes.iter().zip(&visits).map(even).collect();
    let mut total = vec![0.0; numbers.len()];
    let mut reads = 0.0;
    for _ in 0..MOST_ROUNDS {
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
            let mut around = class.think;
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
        if (reads - before).abs() <= CLOSE * reads {
            break;
        }
    }
    reads
}

const MOST_ROUNDS: usize = 500;
/// Relative change of throughput at which a round is the last.
const CLOSE: f64 = 1e-7;
