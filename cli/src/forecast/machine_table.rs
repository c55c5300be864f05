//! Reads the table of machines of `genuma plan --machines`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use genuma_work::quantity;
use serde::Serialize;

use super::cost::parse_non_negative_number;

/// Columns of the table, by their names in its first line. The first three are required.
const COLUMNS: [&str; 10] =
    ["name", "threads", "memory", "scratch", "cpu_time", "disk_mb_per_s", "watts", "price", "price_per_hour", "source"];
const NUM_REQUIRED_COLUMNS: usize = 3;

/// A machine on which a call may run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Machine {
    /// Name, different from those of all other machines of the table.
    pub(crate) name: String,
    /// Threads that a call uses.
    pub(crate) threads: usize,
    /// Memory that a call may use (bytes).
    pub(crate) memory: u64,
    /// Disk space that a call may use for its work folder (bytes).
    pub(crate) scratch: u64,
    /// CPU time of a call, divided by that on the machine of the built-in rates.
    pub(crate) cpu_time: f64,
    /// Transfer rate of the disk of the work folder (MB/s); `None` if the table does not have it.
    pub(crate) disk_mb_per_s: Option<f64>,
    /// Power during a call (W); `None` if the table does not have it.
    pub(crate) watts: Option<f64>,
    /// Price of the machine; `None` if it is not bought.
    pub(crate) price: Option<f64>,
    /// Price of an hour of a rented machine, with its energy; `None` if it is not rented.
    pub(crate) price_per_hour: Option<f64>,
    /// Where these values are from; empty if the table does not say.
    pub(crate) source: String,
}

/// Reads a table of machines: fields separated by tabs, names of columns in the first line, then a machine a line. `-` or
/// an empty field is a value that is not known. Empty lines and lines that start with `#` are ignored.
///
/// # Errors
/// The file cannot be read; a column is missing, unknown or repeated; a value is invalid; two machines have one name; there
/// is no machine.
pub(crate) fn read_machine_table(path: &Path) -> anyhow::Result<Vec<Machine>> {
    let text = fs::read_to_string(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let (_, header) = lines.next().with_context(|| format!("{}: no line with the names of columns", path.display()))?;
    let columns: Vec<&str> = header.split('\t').map(str::trim).collect();
    check_columns(&columns).with_context(|| format!("{}", path.display()))?;
    let mut machines: Vec<Machine> = Vec::new();
    let mut names = BTreeSet::new();
    for (number, line) in lines {
        let mut parse = || {
            let values: Vec<&str> = line.split('\t').map(str::trim).collect();
            ensure!(
                values.len() <= columns.len(),
                "{} fields, but the first line names {} columns",
                values.len(),
                columns.len()
            );
            let machine = parse_machine(&columns, &values)?;
            ensure!(names.insert(machine.name.clone()), "a second machine with the name {}", machine.name);
            Ok(machine)
        };
        machines.push(parse().with_context(|| format!("{}, line {number}", path.display()))?);
    }
    ensure!(!machines.is_empty(), "{}: no machine", path.display());
    Ok(machines)
}

fn check_columns(columns: &[&str]) -> anyhow::Result<()> {
    for (i, name) in columns.iter().enumerate() {
        ensure!(COLUMNS.contains(name), "unknown column '{name}': the columns are {}", COLUMNS.join(", "));
        ensure!(!columns[..i].contains(name), "two columns '{name}'");
    }
    for name in &COLUMNS[..NUM_REQUIRED_COLUMNS] {
        ensure!(columns.contains(name), "no column '{name}' (fields are separated by tabs)");
    }
    Ok(())
}

fn parse_machine(columns: &[&str], values: &[&str]) -> anyhow::Result<Machine> {
    let value = |name: &str| {
        let column = columns.iter().position(|column| *column == name)?;
        values.get(column).copied().filter(|value| !value.is_empty() && *value != "-")
    };
    let required = |name: &str| value(name).with_context(|| format!("no value for '{name}'"));
    let number = |name: &str| {
        let parsed = value(name).map(parse_non_negative_number).transpose();
        parsed.map_err(|error| anyhow::anyhow!("column '{name}': {error}"))
    };
    let size = |name: &str, text: &str| {
        quantity::parse_bytes(text).map_err(|error| anyhow::anyhow!("column '{name}': {error}"))
    };
    let machine = Machine {
        name: required("name")?.to_owned(),
        threads: required("threads")?
            .parse()
            .ok()
            .filter(|n| (1..=4096).contains(n))
            .context("column 'threads': give a whole number from 1 to 4096")?,
        memory: size("memory", required("memory")?)?,
        scratch: value("scratch").map_or(Ok(u64::MAX), |text| size("scratch", text))?,
        cpu_time: number("cpu_time")?.unwrap_or(1.0),
        disk_mb_per_s: number("disk_mb_per_s")?,
        watts: number("watts")?,
        price: number("price")?,
        price_per_hour: number("price_per_hour")?,
        source: value("source").unwrap_or_default().to_owned(),
    };
    if machine.cpu_time == 0.0 || machine.disk_mb_per_s == Some(0.0) {
        bail!("'cpu_time' and 'disk_mb_per_s' must be more than 0");
    }
    ensure!(
        machine.price.is_none() || machine.price_per_hour.is_none(),
        "a machine is bought ('price') or rented ('price_per_hour'), not both"
    );
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Vec<Machine>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machines.tsv");
        fs::write(&path, text).unwrap();
        read_machine_table(&path)
    }

    #[test]
    fn columns_are_found_by_name() {
        let machines = read(
            "# comment\nmemory\tname\tthreads\twatts\tprice\tcpu_time\n\n32G\tdesktop PC\t12\t120\t1650\t\n\
             512G\tserver\t48\t-\t7000\t1.5\n1G\tsmall\t1\n",
        )
        .unwrap();
        let names: Vec<&str> = machines.iter().map(|machine| &machine.name[..]).collect();
        assert_eq!(names, ["desktop PC", "server", "small"]);
        let [desktop, server, small] = &machines[..] else { unreachable!() };
        assert_eq!((desktop.threads, desktop.memory, desktop.scratch), (12, 32 << 30, u64::MAX));
        assert_eq!((desktop.watts, desktop.price, desktop.cpu_time), (Some(120.0), Some(1650.0), 1.0));
        assert_eq!((server.watts, server.cpu_time), (None, 1.5));
        assert_eq!((small.price, small.price_per_hour), (None, None));
    }

    #[test]
    fn invalid_tables_are_errors_with_their_line() {
        for (text, message) in [
            ("", "no line with the names"),
            ("name\tthreads\tmemory\n", "no machine"),
            ("name\tthreads\n", "no column 'memory'"),
            ("name\tthreads\tmemory\tcolour\n", "unknown column 'colour'"),
            ("name\tname\tthreads\tmemory\n", "two columns 'name'"),
            ("name\tthreads\tmemory\na\t0\t1G\n", "line 2: column 'threads'"),
            ("name\tthreads\tmemory\na\t1\t1X\n", "line 2: column 'memory'"),
            ("name\tthreads\tmemory\n\na\t1\n", "line 3: no value for 'memory'"),
            ("name\tthreads\tmemory\na\t1\t1G\t7\n", "line 2: 4 fields"),
            ("name\tthreads\tmemory\na\t1\t1G\na\t1\t1G\n", "line 3: a second machine"),
            ("name\tthreads\tmemory\twatts\na\t1\t1G\tmany\n", "column 'watts'"),
            ("name\tthreads\tmemory\tcpu_time\na\t1\t1G\t0\n", "more than 0"),
            ("name\tthreads\tmemory\tprice\tprice_per_hour\na\t1\t1G\t1\t1\n", "bought"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(message), "{text:?}: {error}");
        }
        assert!(read_machine_table(Path::new("/nonexistent/machines")).is_err());
    }
}
