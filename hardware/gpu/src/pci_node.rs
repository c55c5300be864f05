//! Finds the NUMA node of a device from its PCI address.

use std::path::Path;

/// Formats a PCI address as sysfs writes it: `domain:bus:device.function`.
pub(crate) fn format_pci_address(domain: u32, bus: u32, device: u32, function: u32) -> String {
    format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
}

/// Reads the NUMA node of the device with the PCI address `address`, below the sysfs folder `sys`. `None` if the kernel
/// does not report the node.
pub(crate) fn read_numa_node_of_pci_device(sys: &Path, address: &str) -> Option<u32> {
    // I/O error ignored: a file of the kernel that may be absent.
    let text = std::fs::read_to_string(sys.join("bus/pci/devices").join(address).join("numa_node")).ok()?;
    // -1 means unknown.
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
        assert_eq!(read_numa_node_of_pci_device(&sys, &format_pci_address(0, 0x3b, 0, 0)), Some(1));
        std::fs::write(device.join("numa_node"), "-1\n").expect("written");
        assert_eq!(read_numa_node_of_pci_device(&sys, &format_pci_address(0, 0x3b, 0, 0)), None);
        assert_eq!(read_numa_node_of_pci_device(&sys, &format_pci_address(0, 1, 0, 0)), None);
        std::fs::remove_dir_all(&sys).expect("removed");
    }
}
