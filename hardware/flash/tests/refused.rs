//! Where the system forbids io_uring, or all asynchronous reading, a table answers all the same.
//!
//! A program of its own, because what a process forbids itself stays forbidden: the test starts itself again for each case. Forbidding is
//! a system call, hence the unsafe blocks.
#![allow(unsafe_code)]

use std::process::Command;

use genuma_flash::{Error, LookupResults, PageReadMethod, Table, TableOpenOptions, TableSpec, TableWriter};
use tempfile::TempDir;

/// Names the case for the process that is started again.
const CASE: &str = "GENUMA_TEST_FORBIDDEN";

/// Lets these system calls fail with "operation not permitted" in this process, as containers do (seccomp).
fn forbid(calls: &[libc::c_long]) {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut program = vec![step(LOAD, 0, 0)];
    for (&call, left) in calls.iter().zip((0..calls.len()).rev()) {
        program.push(step(EQUAL, left as u8 + 1, call as u32));
    }
    program.push(step(RETURN, 0, libc::SECCOMP_RET_ALLOW));
    program.push(step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the first call sets a flag; the second reads the program, which is as long as it says.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(set, "seccomp: {}", std::io::Error::last_os_error());
}

#[test]
fn other_ways_are_taken_where_one_is_forbidden() {
    let both = [libc::SYS_io_uring_setup, libc::SYS_io_setup];
    let cases = [("io_uring", &both[..1], PageReadMethod::LinuxAio), ("all", &both[..], PageReadMethod::Pread)];
    let Ok(case) = std::env::var(CASE) else {
        for (case, ..) in cases {
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "other_ways_are_taken_where_one_is_forbidden", "--nocapture"])
                .env(CASE, case)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&child.stdout);
            assert!(child.status.success(), "{case}: {said}{}", String::from_utf8_lossy(&child.stderr));
            assert!(said.contains("1 passed"), "{case}: {said}");
        }
        return;
    };
    let (_, calls, expected) = cases.into_iter().find(|(name, ..)| *name == case).unwrap();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.table");
    let mut writer = TableWriter::create(&path, TableSpec::new(8, 10_000)).unwrap();
    (0..10_000_u64).for_each(|key| writer.push_entry(key * 2, &key.to_le_bytes(), 0).unwrap());
    writer.finish_and_publish().unwrap();
    forbid(calls);

    let table = Table::open(&path, &TableOpenOptions::default()).unwrap();
    let mut reader = table.new_reader(32).unwrap();
    assert_eq!(reader.page_read_method(), expected);
    let asked: Vec<u64> = (0..20_000).rev().collect();
    let mut answers = LookupResults::new();
    reader.get_many(&asked, &mut answers).unwrap();
    for (key, answer) in asked.iter().zip(answers.iter()) {
        assert_eq!(answer, (key % 2 == 0).then_some(&(key / 2).to_le_bytes()[..]));
    }

    // Requesting an access that is not permitted is an error.
    let table =
        Table::open(&path, &TableOpenOptions { access: PageReadMethod::IoUring, ..TableOpenOptions::default() })
            .unwrap();
    let said = table.new_reader(1).unwrap_err();
    assert!(matches!(said, Error::ReadMethodNotPermitted { way: "io_uring", .. }), "{said}");
}
