//! Reads a table of machines: threads, memory, speed, power and price of each.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use genuma_work::quantity::{self, parse_non_negative_number};
use serde::Serialize;

use crate::error::Error;

/// Columns of the table, by their names in its first line. The first three are required.
const COLUMNS: [&str; 10] =
    ["name", "threads", "memory", "scratch", "cpu_time", "disk_mb_per_s", "watts", "price", "price_per_hour", "source"];
const NUM_REQUIRED_COLUMNS: usize = 3;

/// A machine on which a call may run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Name, different from those of all other machines of the table.
    pub name: String,
    /// Threads that a call uses.
    pub threads: usize,
    /// Memory that a call may use (bytes).
    pub memory: u64,
    /// Disk space that a call may use for its work folder (bytes).
    pub scratch: u64,
    /// CPU time of a call, divided by that on the machine of the built-in rates.
    pub cpu_time: f64,
    /// Transfer rate of the disk of the work folder (MB/s); `None` if the table does not have it.
    pub disk_mb_per_s: Option<f64>,
    /// Power during a call (W); `None` if the table does not have it.
    pub watts: Option<f64>,
    /// Price of the machine; `None` if it is not bought.
    pub price: Option<f64>,
    /// Price of an hour of a rented machine, with its energy; `None` if it is not rented.
    pub price_per_hour: Option<f64>,
    /// Where these values are from; empty if the table does not say.
    pub source: String,
}

/// Reads a table of machines: fields separated by tabs, names of columns in the first line, then a machine a line. `-` or
/// an empty field is a value that is not known. Empty lines and lines that start with `#` are ignored.
///
/// # Errors
/// The file cannot be read; a column is missing, unknown or repeated; a value is invalid; two machines have one name; there
/// is no machine.
pub fn read_machine_table(path: &Path) -> Result<Vec<Machine>, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_path_buf(), source })?;
    let invalid =
        |line: Option<u64>, fault: String| Error::InvalidMachineTable { path: path.to_path_buf(), line, fault };
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let (_, header) = lines.next().ok_or_else(|| invalid(None, "no line with the names of columns".into()))?;
    let columns: Vec<&str> = header.split('\t').map(str::trim).collect();
    check_columns(&columns).map_err(|fault| invalid(None, fault))?;
    let mut machines: Vec<Machine> = Vec::new();
    let mut names = BTreeSet::new();
    for (number, line) in lines {
        let machine = parse_line(&columns, line).map_err(|fault| invalid(Some(number), fault))?;
        if !names.insert(machine.name.clone()) {
            return Err(invalid(Some(number), format!("a second machine with the name {}", machine.name)));
        }
        machines.push(machine);
    }
    if machines.is_empty() {
        return Err(invalid(None, "no machine".into()));
    }
    Ok(machines)
}

fn check_columns(columns: &[&str]) -> Result<(), String> {
    for (i, name) in columns.iter().enumerate() {
        if !COLUMNS.contains(name) {
            return Err(format!("unknown column '{name}': the columns are {}", COLUMNS.join(", ")));
        }
        if columns[..i].contains(name) {
            return Err(format!("two columns '{name}'"));
        }
    }
    match COLUMNS[..NUM_REQUIRED_COLUMNS].iter().find(|name| !columns.contains(name)) {
        Some(name) => Err(format!("no column '{name}' (fields are separated by tabs)")),
        None => Ok(()),
    }
}

fn parse_line(columns: &[&str], line: &str) -> Result<Machine, String> {
    let values: Vec<&str> = line.split('\t').map(str::trim).collect();
    if values.len() > columns.len() {
        return Err(format!("{} fields, but the first line names {} columns", values.len(), columns.len()));
    }
    let value = |name: &str| {
        let column = columns.iter().position(|column| *column == name)?;
        values.get(column).copied().filter(|value| !value.is_empty() && *value != "-")
    };
    let required = |name: &str| value(name).ok_or_else(|| format!("no value for '{name}'"));
    let number = |name: &str| {
        let parsed = value(name).map(parse_non_negative_number).transpose();
        parsed.map_err(|error| format!("column '{name}': {error}"))
    };
    let size =
        |name: &str, text: &str| quantity::parse_bytes(text).map_err(|error| format!("column '{name}': {error}"));
    let machine = Machine {
        name: required("name")?.to_owned(),
        threads: required("threads")?
            .parse()
            .ok()
            .filter(|n| (1..=4096).contains(n))
            .ok_or("column 'threads': give a whole number from 1 to 4096")?,
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
        return Err("'cpu_time' and 'disk_mb_per_s' must be more than 0".into());
    }
    if machine.price.is_some() && machine.price_per_hour.is_some() {
        return Err("a machine is bought ('price') or rented ('price_per_hour'), not both".into());
    }
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Machine>, Error> {
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
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text:?}: {error}");
        }
        assert!(read_machine_table(Path::new("/nonexistent/machines")).is_err());
    }
}
