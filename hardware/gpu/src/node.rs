//! On which NUMA node a device hangs, by what the kernel says of its place on the PCI bus.

use std::path::Path;

/// `domain:bus:device.function` as sysfs writes it.
pub fn address(domain: u32, bus: u32, device: u32, function: u32) -> String {
    format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
}

/// The node of the device at a PCI address, under the sysfs at `sys`; `None` where the kernel does not know, or has but one.
pub fn node(sys: &Path, address: &str) -> Option<u32> {
    let text = std::fs::read_to_string(sys.join("bus/pci/devices").join(address).join("numa_node")).ok()?;
    // -1 is "unknown".
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_for_the_node() {
        let sys = std::env::temp_dir().join(format!("genuma-gpu-node-{}", std::process::id()));
        let device = sys.join("bus/pci/devices/0000:3b:00.0");
        std::fs::create_dir_all(&device).expect("a folder");
        std::fs::write(device.join("numa_node"), "1\n").expect("written");
        assert_eq!(node(&sys, &address(0, 0x3b, 0, 0)), Some(1));
        std::fs::write(device.join("numa_node"), "-1\n").expect("written");
        assert_eq!(node(&sys, &address(0, 0x3b, 0, 0)), None);
        assert_eq!(node(&sys, &address(0, 1, 0, 0)), None);
        std::fs::remove_dir_all(&sys).expect("removed");
    }
}
