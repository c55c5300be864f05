//! The FPGA design (`hardware/fpga`): formal proofs of its properties, and its cells after synthesis.
//!
//! scripts/fpga.sh does both with yosys; docs/internals/fpga.md describes them. The simulated design is tested in fpga.rs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{installed, names, repository, scratch, skipped, text};

/// The modules that the tests prove. The proof of `scatter_lane` takes more CPU time than those of all others;
/// `scripts/fpga.sh prove` has it, too.
const PROVED_MODULES: [&str; 5] = ["stream_fifo", "base_feed", "record_packer", "scatter_device", "bin_buffers"];
/// The modules that the tests do not prove: one with a long proof, and one that is simulated only.
const OTHER_MODULES: [&str; 2] = ["scatter_lane", "super_kmer_cutter"];

fn design_folder() -> PathBuf {
    repository("hardware/fpga/rtl")
}

/// Runs scripts/fpga.sh for the design in the folder `rtl`, with intermediate files in the folder `out`.
fn run_fpga_script(args: &[&str], rtl: &Path, out: &Path) -> Output {
    let mut script = Command::new(repository("scripts/fpga.sh"));
    script.args(args).env("FPGA_RTL", rtl).env("FPGA_OUT", out).output().expect("a shell")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether yosys and z3 are installed; otherwise reports that the test is skipped.
fn has_provers() -> bool {
    ["yosys", "z3"].iter().all(|program| installed(program).is_some())
}

#[test]
fn properties_of_the_design_are_proved() {
    if !has_provers() {
        return;
    }
    let proved = run_fpga_script(&[&["prove"][..], &PROVED_MODULES[..]].concat(), &design_folder(), &scratch("proofs"));
    assert!(proved.status.success(), "{}", stderr(&proved));
    let table = String::from_utf8(proved.stdout).expect("UTF-8");
    let modules_with = |result: &str| -> BTreeSet<String> {
        let rows = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        rows.filter(|row| row[1] == result).map(|row| row[0].to_owned()).collect()
    };
    let modules: BTreeSet<String> = PROVED_MODULES.map(str::to_owned).into();
    let all: BTreeSet<String> =
        PROVED_MODULES.iter().chain(&OTHER_MODULES).map(|module| format!("{module}.sv")).collect();
    assert_eq!(all, names(&design_folder()).into_iter().collect::<BTreeSet<String>>());
    assert_eq!(modules_with("proved"), modules, "{table}");
    // A defect in a copy of each module gives a counterexample.
    assert_eq!(modules_with("refuted"), modules, "{table}");
}

#[test]
fn a_design_with_a_defect_is_not_proved() {
    if !has_provers() {
        return;
    }
    for (module, correct, defect, message) in [
        ("stream_fifo", "out_valid = level != 0", "out_valid = 1'b1", "Assert failed in stream_fifo"),
        ("base_feed", "left <= left - 6'd1", "left <= left - 6'd2", "Assert failed in base_feed"),
        ("bin_buffers", "frame_ready = state == IDLE", "frame_ready = state <= LOAD", "proof finished"),
    ] {
        let folder = scratch(&format!("defect-{module}"));
        let rtl = folder.join("rtl");
        fs::create_dir_all(&rtl).expect("a folder");
        for file in names(&design_folder()) {
            let mut source = fs::read_to_string(design_folder().join(&file)).expect("a module");
            if file == format!("{module}.sv") {
                assert_eq!(source.matches(correct).count(), 1, "{correct}");
                source = source.replace(correct, defect);
            }
            fs::write(rtl.join(file), source).expect("written");
        }
        let refused = run_fpga_script(&["prove", module], &rtl, &folder);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains(message) && said.contains(&format!("fpga: {module} is not proved")), "{said}");
        assert!(refused.stdout.is_empty(), "{}", String::from_utf8_lossy(&refused.stdout));
    }
}

#[test]
fn the_design_has_the_cells_of_the_committed_table() {
    if installed("yosys").is_none() {
        return;
    }
    let folder = scratch("cells");
    let compared = run_fpga_script(&["synth", "check"], &design_folder(), &folder);
    if compared.status.code() == Some(3) {
        skipped(stderr(&compared).trim());
        return;
    }
    assert!(compared.status.success(), "{}{}", String::from_utf8_lossy(&compared.stdout), stderr(&compared));
    let rows = String::from_utf8(compared.stdout).expect("UTF-8");
    for cell in ["LUT4", "TRELLIS_FF", "DP16KD", "MULT18X18D"] {
        assert!(rows.contains(&format!("\t{cell}\t")), "no {cell}: {rows}");
    }

    // The comparison fails if a number differs, a type of cell is new, or the table is of another version of yosys.
    let table = fs::read_to_string(repository("bench/results/fpga/synth.tsv")).expect("a table");
    let compare = |name: &str, change: &dyn Fn(&mut Vec<String>)| {
        let rows = table.lines().map(|line| {
            let mut row: Vec<String> = line.split('\t').map(str::to_owned).collect();
            if row[0] == "ecp5" {
                change(&mut row);
            }
            row.join("\t") + "\n"
        });
        let path = folder.join(name);
        fs::write(&path, rows.collect::<String>()).expect("written");
        let args = ["compare", text(&path), "ecp5", "1", text(&folder.join("synth/ecp5.json"))].map(str::to_owned);
        let script = repository("hardware/fpga/synth/cell_table.py");
        let output = Command::new("python3").arg(script).args(args).output().expect("Python");
        (output.status.code(), stderr(&output))
    };
    let multiply = |cell: &'static str, factor: f64| {
        move |row: &mut Vec<String>| {
            if row[3] == cell {
                row[4] = (row[4].parse::<f64>().expect("a number") * factor).round().to_string();
            }
        }
    };
    assert_eq!(compare("close.tsv", &multiply("LUT4", 1.04)).0, Some(0));
    for (name, factor) in [("more.tsv", 1.07), ("fewer.tsv", 0.93)] {
        let (code, said) = compare(name, &multiply("LUT4", factor));
        assert!(code == Some(1) && said.contains("1 of the numbers differ by more than 5%"), "{said}");
    }
    let (code, said) = compare("new.tsv", &|row| row[3] = row[3].replace("DP16KD", "OTHER"));
    assert!(code == Some(1) && said.contains("2 of the numbers differ"), "{said}");
    let (code, said) = compare("version.tsv", &|row| row[2] = "0.1".to_owned());
    assert!(code == Some(3) && said.contains("by yosys 0.1, not by "), "{said}");
}
