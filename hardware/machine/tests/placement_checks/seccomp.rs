//! Takes calls away from a thread, as a container's seccomp profile does.
#![allow(unsafe_code)]

/// The calls that place memory and threads.
pub const PLACING: &[libc::c_long] = &[
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_get_mempolicy,
    libc::SYS_move_pages,
    libc::SYS_sched_setaffinity,
];

/// The calls that set or read memory policies.
#[allow(dead_code, reason = "not every test binary uses it")]
pub const POLICIES: &[libc::c_long] = &[libc::SYS_mbind, libc::SYS_set_mempolicy, libc::SYS_get_mempolicy];

/// From here on this thread and those it starts get EPERM for `calls`.
pub fn forbid(calls: &[libc::c_long]) {
    fail(calls, libc::EPERM);
}

/// From here on `calls` of this thread and those it starts fail with this error number.
pub fn fail(calls: &[libc::c_long], errno: i32) {
    let filter = |code: u32, jt: usize, k: u32| libc::sock_filter { code: code as u16, jt: jt as u8, jf: 0, k };
    // Load the call's number, compare it with each, allow; the last line forbids.
    let mut program = vec![filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (index, call) in calls.iter().enumerate() {
        let compare = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        program.push(filter(compare, calls.len() - index, *call as u32));
    }
    let answer = libc::BPF_RET | libc::BPF_K;
    program.push(filter(answer, 0, libc::SECCOMP_RET_ALLOW));
    program.push(filter(answer, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    let filters = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the calls, which read it; the filter cannot be taken off again, which is meant.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filters) == 0
    };
    assert!(done, "{}", std::io::Error::last_os_error());
}
