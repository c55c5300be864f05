//! Reads the memory modules from the SMBIOS table and computes the theoretical memory bandwidth (lenis2018, eq. 3.1).
//!
//! The table is SMBIOS (DMTF DSP0134, version 3): structures with a header, a formatted part and a list of strings.
//! Only type 17, "memory device" (section 7.18), is read. The table is not trusted: lengths are checked before use.

use std::collections::BTreeMap;
use std::path::Path;

use crate::profile::{MemoryModule, TheoreticalBandwidth};

/// Path of the SMBIOS table on Linux, readable by root.
pub const SMBIOS_TABLE_PATH: &str = "/sys/firmware/dmi/tables/DMI";

const MEMORY_DEVICE_TYPE: u8 = 17;
const END_OF_TABLE_TYPE: u8 = 127;
/// SMBIOS codes of memory technologies that are DRAM or may be DRAM: 1 other, 2 unknown, 3 DRAM.
const DRAM_TECHNOLOGIES: std::ops::RangeInclusive<u8> = 1..=3;

/// Reads the SMBIOS table at `path` and computes the theoretical bandwidth. If the bandwidth is unknown, the result has
/// the reason in `unknown_because`.
pub fn read_theoretical_bandwidth(path: &Path) -> TheoreticalBandwidth {
    match std::fs::read(path) {
        Ok(table) => compute_theoretical_bandwidth(&table),
        Err(error) => unknown_bandwidth(
            Vec::new(),
            format!("{} cannot be read ({error}): no SMBIOS, or not root", path.display()),
        ),
    }
}

/// Computes the theoretical bandwidth from the bytes of an SMBIOS table.
pub(crate) fn compute_theoretical_bandwidth(table: &[u8]) -> TheoreticalBandwidth {
    let modules = parse_modules(table);
    if modules.is_empty() {
        return unknown_bandwidth(modules, "the SMBIOS table describes no memory module".to_owned());
    }
    // Modules of one channel share its data lines; the slowest module sets the speed of the channel.
    let mut channels: BTreeMap<String, f64> = BTreeMap::new();
    for module in &modules {
        let (Some(mts), Some(width)) = (module.megatransfers_per_s, module.width_bits) else {
            let why = format!("the SMBIOS table does not have speed and width of module '{}'", module.locator);
            return unknown_bandwidth(modules, why);
        };
        let Some(channel) = channel_name(module) else {
            let why = format!("the board names no channel for module '{}'", module.locator);
            return unknown_bandwidth(modules, why);
        };
        let gbs = f64::from(mts) * 1e6 * f64::from(width) / 8.0 / 1e9;
        channels.entry(channel).and_modify(|slowest| *slowest = slowest.min(gbs)).or_insert(gbs);
    }
    TheoreticalBandwidth {
        peak_gbs: Some(channels.values().sum()),
        channels: u32::try_from(channels.len()).ok(),
        modules,
        unknown_because: None,
    }
}

fn unknown_bandwidth(modules: Vec<MemoryModule>, because: String) -> TheoreticalBandwidth {
    TheoreticalBandwidth { modules, unknown_because: Some(because), ..TheoreticalBandwidth::default() }
}

/// Parses the installed memory modules that are DRAM or may be DRAM. Stops at the first malformed structure.
fn parse_modules(table: &[u8]) -> Vec<MemoryModule> {
    let mut found = Vec::new();
    let mut rest = table;
    while let Some(structure) = parse_structure(rest).filter(|structure| structure.kind != END_OF_TABLE_TYPE) {
        if structure.kind == MEMORY_DEVICE_TYPE {
            found.extend(parse_module(structure.formatted, structure.strings));
        }
        rest = structure.next;
    }
    found
}

/// One structure of the SMBIOS table.
struct SmbiosStructure<'a> {
    kind: u8,
    /// Formatted part of the structure: its header and the fields after the header.
    formatted: &'a [u8],
    strings: &'a [u8],
    /// Bytes of the table after this structure.
    next: &'a [u8],
}

/// Parses the first structure of a table. `None` if it is incomplete.
fn parse_structure(table: &[u8]) -> Option<SmbiosStructure<'_>> {
    let (&kind, &length) = (table.first()?, table.get(1)?);
    let formatted = table.get(..usize::from(length)).filter(|part| part.len() >= 4)?;
    let behind = &table[formatted.len()..];
    let end = behind.windows(2).position(|pair| pair == [0, 0])?;
    Some(SmbiosStructure { kind, formatted, strings: &behind[..end], next: &behind[end + 2..] })
}

fn parse_module(formatted: &[u8], strings: &[u8]) -> Option<MemoryModule> {
    let byte = |at: usize| formatted.get(at).copied();
    let word = |at: usize| Some(u16::from_le_bytes(formatted.get(at..at + 2)?.try_into().ok()?));
    let double = |at: usize| Some(u32::from_le_bytes(formatted.get(at..at + 4)?.try_into().ok()?));
    let string = |at: usize| {
        let text = byte(at)
            .filter(|index| *index > 0)
            .and_then(|index| strings.split(|b| *b == 0).nth(usize::from(index) - 1).map(String::from_utf8_lossy));
        text.map_or_else(String::new, |text| text.trim().to_owned())
    };
    let bytes = match word(0x0C)? {
        0 | 0xFFFF => return None,
        0x7FFF => u64::from(double(0x1C)? & 0x7FFF_FFFF) << 20,
        size if size & 0x8000 != 0 => u64::from(size & 0x7FFF) << 10,
        size => u64::from(size) << 20,
    };
    if byte(0x28).is_some_and(|technology| technology != 0 && !DRAM_TECHNOLOGIES.contains(&technology)) {
        return None;
    }
    // The configured speed if present, else the maximum speed of the module. 0xFFFF means that the wider field has
    // the value.
    let speed = |short: usize, long: usize| match word(short)? {
        0 => None,
        0xFFFF => double(long).map(|mts| mts & 0x7FFF_FFFF).filter(|mts| *mts > 0),
        mts => Some(u32::from(mts)),
    };
    Some(MemoryModule {
        locator: string(0x10),
        bank: string(0x11),
        bytes,
        megatransfers_per_s: speed(0x20, 0x58).or_else(|| speed(0x15, 0x54)),
        width_bits: word(0x0A).filter(|bits| *bits != 0 && *bits != 0xFFFF && bits % 8 == 0).map(u32::from),
    })
}

/// Name of the module's memory channel, unique in the machine: the text up to the word after `channel`, or up to the
/// letter in a slot name such as `DIMM_A1`.
fn channel_name(module: &MemoryModule) -> Option<String> {
    let whole = |text: &str| {
        let upper = text.to_ascii_uppercase();
        let after = upper.find("CHANNEL")? + "CHANNEL".len();
        let lead = upper[after..].find(|c: char| c.is_ascii_alphanumeric())?;
        let name = &upper[after + lead..];
        let length = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        Some(upper[..after + lead + length].to_owned())
    };
    let lettered = |text: &str| {
        let upper = text.to_ascii_uppercase();
        let after = upper.find("DIMM")? + "DIMM".len();
        let lead = upper[after..].find(|c: char| c.is_ascii_alphanumeric())?;
        let name = &upper.as_bytes()[after + lead..];
        let form = name.first()?.is_ascii_uppercase() && name.get(1)?.is_ascii_digit();
        form.then(|| upper[..=after + lead].to_owned())
    };
    // Bank names may repeat on each socket, so the text before the slot name in the locator is part of the channel
    // name.
    let socket = || {
        let upper = module.locator.to_ascii_uppercase();
        upper.split("DIMM").next().unwrap_or_default().to_owned()
    };
    let by_bank = whole(&module.bank).map(|bank| format!("{} {bank}", socket()));
    by_bank.or_else(|| whole(&module.locator)).or_else(|| lettered(&module.locator))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory device structure (type 17) in the layout of SMBIOS 3.3.
    struct Device<'a> {
        locator: &'a str,
        bank: &'a str,
        size: u16,
        extended: u32,
        width: u16,
        speed: u16,
        configured: u16,
        extended_configured: u32,
        technology: u8,
    }

    const DDR4: Device<'static> = Device {
        locator: "DIMM_A1",
        bank: "BANK 0",
        size: 16 << 10,
        extended: 0,
        width: 64,
        speed: 3200,
        configured: 2933,
        extended_configured: 0,
        technology: 3,
    };

    impl Device<'_> {
        fn bytes(&self) -> Vec<u8> {
            let mut part = vec![0u8; 0x5C];
            (part[0], part[1]) = (MEMORY_DEVICE_TYPE, 0x5C);
            part[0x0A..0x0C].copy_from_slice(&self.width.to_le_bytes());
            part[0x0C..0x0E].copy_from_slice(&self.size.to_le_bytes());
            (part[0x10], part[0x11], part[0x28]) = (1, 2, self.technology);
            part[0x15..0x17].copy_from_slice(&self.speed.to_le_bytes());
            part[0x1C..0x20].copy_from_slice(&self.extended.to_le_bytes());
            part[0x20..0x22].copy_from_slice(&self.configured.to_le_bytes());
            part[0x58..0x5C].copy_from_slice(&self.extended_configured.to_le_bytes());
            part.extend_from_slice(self.locator.as_bytes());
            part.push(0);
            part.extend_from_slice(self.bank.as_bytes());
            part.extend_from_slice(&[0, 0]);
            part
        }
    }

    /// An SMBIOS table: a BIOS structure without strings, the given devices, and the end marker.
    fn table(devices: &[Device]) -> Vec<u8> {
        let mut table = vec![0, 4, 0, 0, 0, 0];
        devices.iter().for_each(|device| table.extend(device.bytes()));
        table.extend_from_slice(&[END_OF_TABLE_TYPE, 4, 0, 0, 0, 0]);
        table
    }

    #[test]
    fn channels_times_speed_times_width() {
        // The Intel server of lenis2018, section 3.2: 4 channels at 1333 MT/s, here with two modules in one channel.
        let names = ["P1-DIMMA1", "P1-DIMMB1", "P1-DIMMC1", "P1-DIMMD1", "P1-DIMMD2"];
        let devices = names.map(|locator| Device { locator, configured: 1333, ..DDR4 });
        let told = compute_theoretical_bandwidth(&table(&devices));
        assert_eq!((told.channels, told.modules.len(), told.unknown_because), (Some(4), 5, None));
        assert!((told.peak_gbs.expect("a peak") - 42.656).abs() < 1e-9, "{:?}", told.peak_gbs);
        assert_eq!(told.modules[0].bytes, 16 << 30);
    }

    #[test]
    fn the_slowest_module_of_a_channel_counts() {
        let pair = [Device { configured: 2400, ..DDR4 }, Device { locator: "DIMM_A2", ..DDR4 }];
        assert_eq!(compute_theoretical_bandwidth(&table(&pair)).peak_gbs, Some(2400.0 * 8.0 / 1e3));
    }

    #[test]
    fn channels_are_told_apart_as_boards_name_them() {
        let named = |locator, bank| {
            let devices = [Device { locator, bank, ..DDR4 }, DDR4];
            channel_name(&compute_theoretical_bandwidth(&table(&devices)).modules[0])
        };
        assert_eq!(named("DIMM 0", "P0 CHANNEL A").as_deref(), Some(" P0 CHANNEL A"));
        assert_eq!(named("DIMM 1", "P0 CHANNEL A").as_deref(), Some(" P0 CHANNEL A"));
        assert_eq!(named("x", "P0_Node1_Channel2_Dimm0").as_deref(), Some("X P0_NODE1_CHANNEL2"));
        assert_eq!(named("Controller0-ChannelB-DIMM0", "BANK 1").as_deref(), Some("CONTROLLER0-CHANNELB"));
        assert_eq!(named("CPU2_DIMM_C1", "NODE 2").as_deref(), Some("CPU2_DIMM_C"));
        assert_eq!(named("PROC 1 DIMM 7", "Not Specified"), None);
        assert_eq!(named("A7", ""), None);
    }

    #[test]
    fn sizes_and_speeds_have_several_forms() {
        let big = Device { size: 0x7FFF, extended: 64 << 10, ..DDR4 };
        let small = Device { size: 0x8000 | 512, ..DDR4 };
        let fast = Device { configured: 0xFFFF, extended_configured: 70_000, ..DDR4 };
        let unset = Device { configured: 0, ..DDR4 };
        let told = compute_theoretical_bandwidth(&table(&[big, small, fast, unset])).modules;
        assert_eq!((told[0].bytes, told[1].bytes), (64 << 30, 512 << 10));
        assert_eq!((told[2].megatransfers_per_s, told[3].megatransfers_per_s), (Some(70_000), Some(3200)));
    }

    #[test]
    fn empty_slots_and_persistent_memory_do_not_count() {
        let empty = Device { size: 0, ..DDR4 };
        let unknown_size = Device { size: 0xFFFF, ..DDR4 };
        let persistent = Device { technology: 7, ..DDR4 };
        let told = compute_theoretical_bandwidth(&table(&[empty, unknown_size, persistent, DDR4]));
        assert_eq!((told.modules.len(), told.channels), (1, Some(1)));
    }

    #[test]
    fn what_the_table_does_not_tell_makes_the_peak_unknown() {
        let slow = Device { configured: 0, speed: 0, ..DDR4 };
        let told = compute_theoretical_bandwidth(&table(&[slow]));
        assert_eq!((told.peak_gbs, told.channels, told.modules.len()), (None, None, 1));
        assert!(told.unknown_because.expect("a reason").contains("'DIMM_A1'"));
        let nameless = Device { locator: "slot 4", ..DDR4 };
        let why = compute_theoretical_bandwidth(&table(&[nameless])).unknown_because.expect("a reason");
        assert!(why.contains("no channel") && why.contains("'slot 4'"), "{why}");
        assert!(
            compute_theoretical_bandwidth(&table(&[])).unknown_because.expect("a reason").contains("no memory module")
        );
    }

    #[test]
    fn a_cut_table_gives_the_modules_before_the_cut() {
        let whole = table(&[DDR4, Device { locator: "DIMM_B1", ..DDR4 }]);
        let counts: Vec<usize> = (0..=whole.len()).map(|cut| parse_modules(&whole[..cut]).len()).collect();
        assert!(counts.is_sorted() && counts[0] == 0 && counts[whole.len()] == 2, "{counts:?}");
    }

    #[test]
    fn any_single_corrupted_byte_is_survived() {
        let whole = table(&[DDR4, Device { locator: "DIMM_B1", ..DDR4 }]);
        for at in 0..whole.len() {
            for value in [0, 1, 3, 17, 0x7F, 0xFF] {
                let mut broken = whole.clone();
                broken[at] = value;
                let told = compute_theoretical_bandwidth(&broken);
                assert!(told.peak_gbs.is_some() != told.unknown_because.is_some(), "byte {at} = {value}");
                assert!(told.modules.len() <= 2, "byte {at} = {value}");
            }
        }
    }

    #[test]
    fn a_table_that_cannot_be_read_is_said() {
        let told = read_theoretical_bandwidth(Path::new("/nonexistent/DMI"));
        assert!(told.unknown_because.expect("a reason").starts_with("/nonexistent/DMI cannot be read"));
    }
}
