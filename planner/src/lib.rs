//! Predicts what a call of somatic variants (`genuma call`) costs before it runs: time, memory, disk space, energy and
//! money, on this machine or on others.
//!
//! A prediction is the number of bases times measured rates ([`rates::CostRates`]). The number of partitions, the room for
//! packed reads and the batches of the reference scan are computed by the functions that the call itself uses. Nothing
//! is measured, and the same arguments give the same prediction on each machine; only [`input`], [`calibration`] and
//! [`machine_table`] read files. The formulas are in docs/model/time_and_memory.md.
//!
//! A human genome, tumour at 60x and normal at 30x, with 16 threads and 64 GiB of memory:
//!
//! ```
//! use genuma_planner::input::ForecastInput;
//! use genuma_planner::rates::MEASURED_RATES;
//! use genuma_somatic::pipeline::Resources;
//!
//! let resources = Resources { threads: 16, memory: 64 << 30, scratch: 400 << 30, devices: Default::default() };
//! let (genome_bp, normal_depth, tumour_depth, read_length, k) = (3_100_000_000, 30.0, 60.0, 150, 31);
//! let depths = [normal_depth, tumour_depth];
//! let input = ForecastInput::from_genome_and_depths(genome_bp, depths, read_length, k, resources);
//! let forecast = input.forecast_call(&MEASURED_RATES);
//! assert!(forecast.fits, "{:?}", forecast.advice);
//! assert!(forecast.peak_memory_bytes() <= 64 << 30);
//! assert!((0.25..1.0).contains(&(forecast.total_wall_s() / 3600.0)), "{} s", forecast.total_wall_s());
//! ```
//!
//! The modules are listed in the order of the data flow. [`accelerators`] compares counting with
//! GPU and FPGA, [`cost`] adds energy and money to the prediction for one
//! machine, [`machine_comparison`] predicts for all machines of a table, and [`step_forecast`] predicts the tasks of a
//! call that is distributed over a cluster.

mod error;
pub mod rates;
pub mod min_memory;
pub mod input;
pub mod units;
pub mod call_forecast;
pub mod step_forecast;
pub mod calibration;
pub mod machine_speed;
pub mod rate_source;
pub mod accelerators;
pub mod cost;
pub mod machine_table;
pub mod machine_comparison;

pub use error::Error;
