//! What is known of an aligner before it runs: numbers of the model that are shipped, and how a calibration run corrects them.

use crate::model::{Application, Machine, aligning_seconds};
use crate::strategy::Strategy;

/// Bytes that a thread needs besides the index: buffers of reads and records.
const PRIVATE: u64 = 64 << 20;

/// An aligner's numbers, as the 320 published runs of lenis2017 show them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// How program names of this kind begin; the last one is empty and fits all.
    pub program: &'static str,
    /// Seconds that a read takes a core at speed 1.
    pub cpu: f64,
    /// Lines of the index that a read waits for.
    pub touches: f64,
    /// Bytes that a touch moves.
    pub(crate) bytes_per_touch: f64,
    /// Transfers of a line between cores for a read and a thread.
    pub(crate) handovers: f64,
    /// Standard deviation of the logarithm of measured to predicted seconds.
    pub spread: f64,
}

/// Geometric means of what [`crate::replay::learn`] finds on both servers and both sets of reads; for others than these
/// four aligners the geometric mean of them. The first that fits counts.
pub(crate) const PRESETS: [Preset; 6] = [
    BWA,
    Preset { program: "minibwa", ..BWA },
    Preset {
        program: "bowtie2",
        cpu: 396.4e-6,
        touches: 335.5,
        bytes_per_touch: 534.0,
        handovers: 1.878,
        spread: 0.184,
    },
    Preset {
        program: "gem",
        cpu: 41.61e-6,
        touches: 166.2,
        bytes_per_touch: 756.2,
        handovers: 0.2286,
        spread: 0.562,
    },
    Preset {
        program: "snap",
        cpu: 64.19e-6,
        touches: 257.8,
        bytes_per_touch: 1009.0,
        handovers: 0.54,
        spread: 0.505,
    },
    Preset {
        program: "",
        cpu: 146.4e-6,
        touches: 275.4,
        bytes_per_touch: 694.9,
        handovers: 0.6332,
        spread: 0.3179,
    },
];

const BWA: Preset = Preset {
    program: "bwa",
    cpu: 433.5e-6,
    touches: 400.1,
    bytes_per_touch: 572.5,
    handovers: 0.6936,
    spread: 0.196,
};

/// The numbers of `aligner`, a name as [`crate::Invocation::aligner`] has it.
pub fn preset(aligner: &str) -> &'static Preset {
    let fits = |preset: &&Preset| aligner.starts_with(preset.program);
    PRESETS.iter().find(fits).unwrap_or(&PRESETS[PRESETS.len() - 1])
}

impl Preset {
    /// A run of `reads` reads with an index of `index_bytes`.
    pub fn application(&self, index_bytes: u64, reads: f64) -> Application {
        Application {
            index_bytes,
            private_bytes: PRIVATE,
            reads,
            cpu: self.cpu,
            touches: self.touches,
            bytes_per_touch: self.bytes_per_touch,
            handovers: self.handovers,
            spread: self.spread,
        }
    }
}

impl Application {
    /// The same when a read of the plain run with `threads` threads was measured to take `seconds`, loading aside: a read
    /// is so many times the work of the preset's, be it computing, looking up or handing over.
    pub fn calibrated(&self, machine: &Machine, threads: u32, seconds: f64) -> Self {
        let predicted = aligning_seconds(machine, self, Strategy::PLAIN, threads) / self.reads;
        let factor = seconds / predicted;
        Self {
            cpu: self.cpu * factor,
            touches: self.touches * factor,
            handovers: self.handovers * factor,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::predict;
    use crate::replay::{learn, servers, table};

    #[test]
    fn presets_are_what_the_published_runs_show() {
        let runs = table::parse("t.csv", include_str!("../data/lenis2017.csv")).unwrap();
        let lessons = ["amd", "intel"].map(|server| learn(&runs, server).unwrap());
        let mean = |of: &[f64]| (of.iter().map(|x| x.ln()).sum::<f64>() / of.len() as f64).exp();
        let numbers: [fn(&Application) -> f64; 5] =
            [|a| a.cpu, |a| a.touches, |a| a.bytes_per_touch, |a| a.handovers, |a| a.spread];
        let shipped = |preset: &Preset| {
            let Preset { cpu, touches, bytes_per_touch, handovers, spread, .. } = *preset;
            [cpu, touches, bytes_per_touch, handovers, spread]
        };
        let mut all = [const { Vec::new() }; 5];
        for (name, aligner) in [
            ("bwa mem", "bwa-mem"),
            ("bowtie2", "bowtie2"),
            ("gem-mapper", "gem"),
            ("snap-aligner paired", "snap"),
        ] {
            for (n, number) in numbers.iter().enumerate() {
                let of = lessons.iter().flatten().filter(|(job, _)| job.aligner == aligner);
                let found = mean(&of.map(|(_, app)| number(app)).collect::<Vec<f64>>());
                let told = shipped(preset(name))[n];
                assert!((found / told - 1.0).abs() < 0.02, "{aligner} {n}: {found} {told}");
                all[n].push(found);
            }
        }
        for (found, told) in all.iter().map(|of| mean(of)).zip(shipped(preset("strobealign"))) {
            assert!((found / told - 1.0).abs() < 0.02, "others: {found} {told}");
        }
        assert_eq!(preset("minibwa map").cpu, preset("bwa-mem2 mem").cpu);
    }

    #[test]
    fn calibrated_it_takes_what_was_measured() {
        let machine = servers::machine("intel").unwrap();
        let app = preset("bowtie2").application(3_900_000_000, 1e6);
        let before = aligning_seconds(&machine, &app, Strategy::PLAIN, 64);
        let app = app.calibrated(&machine, 64, 30e-6);
        assert!((aligning_seconds(&machine, &app, Strategy::PLAIN, 64) - 30.0).abs() < 1e-3);
        assert!((before - 30.0).abs() > 1.0, "{before}");
        // Loading is beside it, and other strategies keep their proportion.
        let whole = predict(&machine, &app, &Strategy::PLAIN, 64).unwrap().seconds;
        assert!((whole - 30.0 - 3.9 / 2.0).abs() < 1e-3, "{whole}");
    }
}
