//! Lists the OpenCL devices in a child process with a time limit. Drivers are code of other vendors: some abort or hang
//! while they list devices, which must not end or block this process.

use std::io::Read;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use genuma_gpu::DiscoveredDevices;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Environment variable that tells a child process to list the devices as JSON and exit. Its value is the process ID of
/// the parent.
const CHILD_VARIABLE: &str = "GENUMA_DEVICE_LIST_CHILD";

/// Environment variable with the time limit in seconds instead of [`TIME_LIMIT`], for tests.
const TIME_LIMIT_VARIABLE: &str = "GENUMA_DEVICE_LIST_SECONDS";

/// Maximum time that drivers may take to list their devices. Chosen: a server with eight GPUs and no persistence daemon
/// takes 10 to 20 s.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Interval at which this process checks whether the child process has ended, after the child closed its output.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// If this process is a child that [`list_devices_for_display`] started, lists the devices, prints them as JSON and
/// returns the exit code. Otherwise returns `None`.
pub(crate) fn list_devices_if_child() -> Option<ExitCode> {
    let parent = std::env::var_os(CHILD_VARIABLE)?;
    // The parent may be killed while a driver hangs.
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        eprintln!("{error}");
    }
    // The parent may have ended before the signal was requested.
    if getppid().is_none_or(|pid| parent != pid.to_string().as_str()) {
        return Some(ExitCode::FAILURE);
    }
    match serde_json::to_string(&genuma_gpu::find_devices()) {
        Ok(json) => {
            println!("{json}");
            Some(ExitCode::SUCCESS)
        }
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Lists the OpenCL devices in a child process. The result is for display: its devices cannot be opened. If the drivers
/// fail, the list of devices is empty and `missing` has the reason.
pub(crate) fn list_devices_for_display() -> DiscoveredDevices {
    let limit = std::env::var(TIME_LIMIT_VARIABLE).ok().and_then(|text| text.parse().ok()).map(Duration::from_secs);
    list_in_child(limit.unwrap_or(TIME_LIMIT))
        .unwrap_or_else(|why| DiscoveredDevices { devices: Vec::new(), missing: vec![why] })
}

/// Finds the OpenCL devices for use: they can be opened. The drivers are called in this process only if a child process
/// has listed at least one device before.
pub(crate) fn find_devices_if_child_lists_any() -> DiscoveredDevices {
    let described = list_devices_for_display();
    if described.devices.is_empty() { described } else { genuma_gpu::find_devices() }
}

fn list_in_child(limit: Duration) -> Result<DiscoveredDevices, String> {
    let failed = |why: &dyn std::fmt::Display| format!("the OpenCL devices cannot be listed: {why}");
    let mut child = Command::new("/proc/self/exe")
        .env(CHILD_VARIABLE, getpid().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(&error))?;
    let (sender, receiver) = mpsc::channel();
    let mut output = child.stdout.take().ok_or_else(|| failed(&"the child has no output"))?;
    thread::Builder::new()
        .spawn(move || {
            let mut text = String::new();
            let read = output.read_to_string(&mut text).map(|_| text);
            // Nobody waits for the output after the time limit.
            let _ = sender.send(read);
        })
        .map_err(|error| failed(&error))?;
    let deadline = Instant::now() + limit;
    let text = receiver.recv_timeout(limit);
    let status = wait_until(&mut child, deadline).map_err(|error| failed(&error))?;
    let (Ok(text), Some(status)) = (text, status) else {
        // A driver that hangs in the kernel cannot be killed, so the child is not waited for.
        child.kill().map_err(|error| failed(&error))?;
        return Err(format!(
            "an OpenCL driver has not listed its devices in {} s: no device is used; check the driver",
            limit.as_secs()
        ));
    };
    if !status.success() {
        return Err(format!(
            "an OpenCL driver ended the process that listed the devices ({status}): no device is used; check the driver"
        ));
    }
    let text = text.map_err(|error| failed(&error))?;
    // A driver may print lines of its own before.
    let json = text.lines().next_back().unwrap_or_default();
    serde_json::from_str(json).map_err(|error| failed(&error))
}

/// Waits until the child has ended or the deadline has passed. `None` if it has not ended.
fn wait_until(child: &mut Child, deadline: Instant) -> std::io::Result<Option<std::process::ExitStatus>> {
    loop {
        match child.try_wait()? {
            None if Instant::now() < deadline => thread::sleep(POLL_INTERVAL),
            status => return Ok(status),
        }
    }
}
