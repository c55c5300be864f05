//! Performance model parameters of known aligners, and how a calibration run corrects them.

use crate::model::{ApplicationModel, MachineModel, predict_alignment_seconds};
use crate::strategy::Strategy;

/// Memory per thread in addition to the index, bytes: buffers of reads and records (estimate).
const BYTES_PER_THREAD: u64 = 64 << 20;

/// Performance model parameters of an aligner, fitted to the 320 published runs of lenis2017.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlignerModelParams {
    /// Prefix of the program's name. The last preset has an empty prefix, which matches all programs.
    pub program: &'static str,
    /// CPU time per read in seconds on a machine of speed 1 ([`MachineModel::speed`]), without waiting for memory.
    pub cpu: f64,
    /// Memory accesses per read: number of cache lines of the index that a read loads and waits for.
    pub touches: f64,
    /// Bytes that are moved per memory access of [`AlignerModelParams::touches`].
    pub(crate) bytes_per_touch: f64,
    /// Transfers of a cache line between cores per read and thread, when the lock of the input and output changes its
    /// owner.
    pub(crate) handovers: f64,
    /// Standard deviation of ln(measured / predicted time).
    pub spread: f64,
}

/// Presets of all aligners: geometric means of the fits of [`crate::replay::fit_aligners_of_server`] on both servers
/// and both data sets. The first preset whose prefix matches the program name is used. minibwa was not fitted: it has
/// the parameters of bwa. The preset for other programs is the geometric mean of the four fitted aligners.
pub(crate) const ALIGNER_MODEL_PARAMS: [AlignerModelParams; 6] = [
    BWA_MODEL_PARAMS,
    AlignerModelParams { program: "minibwa", ..BWA_MODEL_PARAMS },
    AlignerModelParams {
        program: "bowtie2",
        cpu: 396.4e-6,
        touches: 335.5,
        bytes_per_touch: 534.0,
        handovers: 1.878,
        spread: 0.184,
    },
    AlignerModelParams {
        program: "gem",
        cpu: 41.61e-6,
        touches: 166.2,
        bytes_per_touch: 756.2,
        handovers: 0.2286,
        spread: 0.562,
    },
    AlignerModelParams {
        program: "snap",
        cpu: 64.19e-6,
        touches: 257.8,
        bytes_per_touch: 1009.0,
        handovers: 0.54,
        spread: 0.505,
    },
    AlignerModelParams {
        program: "",
        cpu: 146.4e-6,
        touches: 275.4,
        bytes_per_touch: 694.9,
        handovers: 0.6332,
        spread: 0.3179,
    },
];

const BWA_MODEL_PARAMS: AlignerModelParams = AlignerModelParams {
    program: "bwa",
    cpu: 433.5e-6,
    touches: 400.1,
    bytes_per_touch: 572.5,
    handovers: 0.6936,
    spread: 0.196,
};

/// Returns the parameters for `aligner`, a name as in [`crate::Invocation::aligner`]; for an unknown program the
/// geometric means over the known aligners.
pub fn find_aligner_model_params(aligner: &str) -> &'static AlignerModelParams {
    let fits = |preset: &&AlignerModelParams| aligner.starts_with(preset.program);
    ALIGNER_MODEL_PARAMS.iter().find(fits).unwrap_or(&ALIGNER_MODEL_PARAMS[ALIGNER_MODEL_PARAMS.len() - 1])
}

impl AlignerModelParams {
    /// Returns the model of a run of `reads` reads with an index of `index_bytes`.
    pub fn to_application_model(&self, index_bytes: u64, reads: f64) -> ApplicationModel {
        ApplicationModel {
            index_bytes,
            private_bytes: BYTES_PER_THREAD,
            reads,
            cpu: self.cpu,
            touches: self.touches,
            bytes_per_touch: self.bytes_per_touch,
            handovers: self.handovers,
            spread: self.spread,
        }
    }
}

impl ApplicationModel {
    /// Returns the model scaled to a measured plain run with `threads` threads: the model's time per read without
    /// loading the index becomes `seconds`. CPU time, memory accesses and lock transfers are scaled by the same factor.
    pub fn calibrate_to_measured_run(&self, machine: &MachineModel, threads: u32, seconds: f64) -> Self {
        let predicted = predict_alignment_seconds(machine, self, Strategy::PLAIN_RUN, threads) / self.reads;
        let factor = seconds / predicted;
        Self { cpu: self.cpu * factor, touches: self.touches * factor, handovers: self.handovers * factor, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::predict_run_time;
    use crate::replay::{fit_aligners_of_server, published_runs, published_servers};

    #[test]
    fn presets_are_what_the_published_runs_show() {
        let runs = published_runs::parse_published_runs("t.csv", include_str!("../data/lenis2017.csv")).unwrap();
        let fitted = ["amd", "intel"].map(|server| fit_aligners_of_server(&runs, server).unwrap());
        let mean = |of: &[f64]| (of.iter().map(|x| x.ln()).sum::<f64>() / of.len() as f64).exp();
        let numbers: [fn(&ApplicationModel) -> f64; 5] =
            [|a| a.cpu, |a| a.touches, |a| a.bytes_per_touch, |a| a.handovers, |a| a.spread];
        let shipped = |preset: &AlignerModelParams| {
            let AlignerModelParams { cpu, touches, bytes_per_touch, handovers, spread, .. } = *preset;
            [cpu, touches, bytes_per_touch, handovers, spread]
        };
        let mut all = [const { Vec::new() }; 5];
        for (name, aligner) in
            [("bwa mem", "bwa-mem"), ("bowtie2", "bowtie2"), ("gem-mapper", "gem"), ("snap-aligner paired", "snap")]
        {
            for (n, number) in numbers.iter().enumerate() {
                let of = fitted.iter().flatten().filter(|(job, _)| job.aligner == aligner);
                let found = mean(&of.map(|(_, app)| number(app)).collect::<Vec<f64>>());
                let told = shipped(find_aligner_model_params(name))[n];
                assert!((found / told - 1.0).abs() < 0.02, "{aligner} {n}: {found} {told}");
                all[n].push(found);
            }
        }
        for (found, told) in all.iter().map(|of| mean(of)).zip(shipped(find_aligner_model_params("strobealign"))) {
            assert!((found / told - 1.0).abs() < 0.02, "others: {found} {told}");
        }
        assert_eq!(find_aligner_model_params("minibwa map").cpu, find_aligner_model_params("bwa-mem2 mem").cpu);
    }

    #[test]
    fn calibrated_it_takes_what_was_measured() {
        let machine = published_servers::published_server_model("intel").unwrap();
        let app = find_aligner_model_params("bowtie2").to_application_model(3_900_000_000, 1e6);
        let before = predict_alignment_seconds(&machine, &app, Strategy::PLAIN_RUN, 64);
        let app = app.calibrate_to_measured_run(&machine, 64, 30e-6);
        assert!((predict_alignment_seconds(&machine, &app, Strategy::PLAIN_RUN, 64) - 30.0).abs() < 1e-3);
        assert!((before - 30.0).abs() > 1.0, "{before}");
        // Loading time is added, and other strategies keep their ratio.
        let whole = predict_run_time(&machine, &app, &Strategy::PLAIN_RUN, 64).unwrap().seconds;
        assert!((whole - 30.0 - 3.9 / 2.0).abs() < 1e-3, "{whole}");
    }
}
