//! How long jobs should take: guesses that err on the long side on a server of the last ten years.

use super::sizes::Sizes;
use super::{Chase, Job, Loaded, Stream};
use crate::kernels::LINE;
use crate::profile::{Kernel, PageKind, Spot};

/// Seconds of a byte of memory that is placed, written and asked about.
const PLACING_S: f64 = 0.6e-9;
/// Seconds of a line that is linked into a ring, in a cache and beyond.
const LINKING_S: (f64, f64) = (15e-9, 90e-9);
/// GB/s of a thread, and where threads of one node stop to gain, for kernels that go through arrays.
const STREAMING_GBS: (f64, f64) = (8.0, 24.0);
/// The same for kernels that jump.
const JUMPING_GBS: (f64, f64) = (3.0, 16.0);
/// Seconds to start and end the threads of a job, each.
const THREAD_S: f64 = 200e-6;

/// Seconds of each job, done in this order.
pub fn seconds(jobs: &[Job], sizes: &Sizes) -> Vec<f64> {
    let mut kept = Kept::default();
    let time = |job: &Job| match job {
        Job::Chase(chase) => kept.ring(chase) + chasing(chase, sizes),
        Job::Stream(stream) => kept.arrays(&stream.memory, stream.pages, stream.bytes) + streaming(stream),
        Job::Loaded(loaded) => {
            let spot = Spot::Node(loaded.chase.memory_node);
            let placing = kept.ring(&loaded.chase) + kept.arrays(&spot, loaded.chase.pages, loaded.bytes);
            placing + loading(loaded, sizes)
        }
    };
    jobs.iter().map(time).collect()
}

/// The buffers that the last jobs left for the next.
#[derive(Default)]
struct Kept {
    ring: Option<(u32, PageKind, u64)>,
    arrays: Option<(Spot, PageKind, u64)>,
}

impl Kept {
    /// Seconds to place a ring's buffer.
    fn ring(&mut self, chase: &Chase) -> f64 {
        let wanted = Some((chase.memory_node, chase.pages, chase.buffer));
        let same = std::mem::replace(&mut self.ring, wanted) == wanted;
        if same { 0.0 } else { chase.buffer as f64 * PLACING_S }
    }

    /// Seconds to place arrays.
    fn arrays(&mut self, spot: &Spot, pages: PageKind, bytes: u64) -> f64 {
        let wanted = Some((spot.clone(), pages, bytes));
        let same = self.arrays == wanted;
        self.arrays = wanted;
        if same { 0.0 } else { bytes as f64 * PLACING_S }
    }
}

fn linking(chase: &Chase, sizes: &Sizes) -> f64 {
    let lines = (chase.bytes / LINE as u64) as f64;
    let beyond = sizes.warm_up(chase.bytes) < chase.bytes / LINE as u64;
    lines * if beyond { LINKING_S.1 } else { LINKING_S.0 }
}

fn chasing(chase: &Chase, sizes: &Sizes) -> f64 {
    let load_s = sizes.load_ns(chase.bytes, chase.pages) / 1e9;
    let loads = chase.warm_up + chase.loads * u64::from(chase.repetitions);
    THREAD_S + linking(chase, sizes) + loads as f64 * load_s
}

fn streaming(stream: &Stream) -> f64 {
    let length = stream.bytes / 3 / size_of::<f64>() as u64;
    let bytes = stream.kernel.counted(length as usize) as f64;
    let (one, most) = match stream.kernel {
        Kernel::Random | Kernel::Strided => JUMPING_GBS,
        _ => STREAMING_GBS,
    };
    let threads = stream.cpus.len() as f64;
    let passes = f64::from(stream.repetitions + 1);
    threads * THREAD_S + passes * bytes / 1e9 / (one * threads).min(most)
}

fn loading(loaded: &Loaded, sizes: &Sizes) -> f64 {
    let chase = &loaded.chase;
    let load_s = sizes.load_ns(chase.bytes, chase.pages) / 1e9;
    // Under full load a load takes several times as long.
    let walking = (chase.loads * u64::from(chase.repetitions)) as f64 * load_s * 3.0;
    let warm = chase.warm_up as f64 * load_s;
    linking(chase, sizes)
        + warm
        + loaded.pauses.len() as f64 * (walking + THREAD_S * loaded.injectors.len() as f64)
}
