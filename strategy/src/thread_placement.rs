//! Reads from the kernel on which CPUs the threads of a running instance are.

use std::fs;

use genuma_machine::IdSet;
use genuma_work::proc_parsing::stat_fields_after_name;
use serde::Serialize;

use crate::page_placement::process_ids_of_group;

/// CPUs of the threads of an instance in one sample.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ThreadPlacement {
    /// Number of threads whose CPU was observed.
    pub number: usize,
    /// CPUs that at least one of the threads may use (affinity).
    pub may_run_on: IdSet,
    /// CPUs on which the threads ran last before the sample.
    pub ran_on: IdSet,
}

/// Reads the CPUs of the threads of all processes of a process group; `None` if the processes have ended.
pub(crate) fn thread_placement_of_group(group: u32) -> Option<ThreadPlacement> {
    let mut threads = ThreadPlacement::default();
    for id in process_ids_of_group(group) {
        for task in fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten() {
            let of = |file: &str| fs::read_to_string(task.path().join(file));
            if let (Ok(status), Ok(stat)) = (of("status"), of("stat")) {
                threads.add_thread(&status, &stat);
            }
        }
    }
    (threads.number > 0).then_some(threads)
}

impl ThreadPlacement {
    /// Adds a thread by its `status` and `stat` (proc_pid_status(5); proc_pid_stat(5), field 39).
    fn add_thread(&mut self, status: &str, stat: &str) {
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let last = stat_fields_after_name(stat).nth(36);
        self.number += 1;
        if let Some(allowed) = allowed.and_then(|list| list.trim().parse::<IdSet>().ok()) {
            allowed.iter().for_each(|cpu| self.may_run_on.insert(cpu));
        }
        if let Some(last) = last.and_then(|cpu| cpu.parse().ok()) {
            self.ran_on.insert(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_run_on_some_cpus_and_ran_on_one() {
        let mut threads = ThreadPlacement::default();
        let stat = |cpu: u32| format!("7 (a ) name) S{} {cpu} 0 0", " 1".repeat(35));
        threads.add_thread("Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-1,6\n", &stat(6));
        threads.add_thread("Cpus_allowed_list:\t1-2\n", &stat(2));
        let found = (threads.number, threads.may_run_on.to_string(), threads.ran_on.to_string());
        assert_eq!(found, (2, "0-2,6".to_owned(), "2,6".to_owned()));
    }

    #[test]
    fn this_thread_is_found() {
        let mut threads = ThreadPlacement::default();
        let of = |file: &str| fs::read_to_string(format!("/proc/thread-self/{file}")).expect("a thread");
        threads.add_thread(&of("status"), &of("stat"));
        assert!(threads.ran_on.is_subset(&threads.may_run_on) && threads.ran_on.len() == 1, "{threads:?}");
    }
}
