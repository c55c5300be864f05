//! What any OpenCL driver has to do, on those that are here; scripts/setup.sh installs PoCL, which drives the CPUs.

use std::io::Write;

use genuma_gpu::{Device, Error, Kind, Trial, find, rates};

/// A driver's device, whatever its kind; says so where there is none.
fn any() -> Option<genuma_gpu::Described> {
    let found = find();
    let first = found.devices.into_iter().next();
    if first.is_none() {
        // Past what is kept of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped: no device, see scripts/setup.sh: {:?}", found.missing);
    }
    first
}

#[test]
fn devices_are_described() {
    let Some(device) = any() else { return };
    assert!(!device.name.is_empty() && device.memory > 1 << 20 && device.units > 0 && device.local > 0);
    assert!(device.kind != Kind::Other && device.largest <= device.memory, "{device:?}");
}

#[test]
fn what_is_copied_comes_back_and_limits_hold() {
    let Some(any) = any() else { return };
    let trial = Trial::default().memory(1 << 20).split(2);
    let devices = Device::open(&any, &trial).expect("opened");
    assert_eq!(devices.len(), 2);
    assert_ne!(devices[0].described().name, devices[1].described().name);
    for device in &devices {
        assert_eq!(device.memory(), 1 << 20);
        let lane = device.lane().expect("a lane");
        let (mut memory, mut staging) =
            (lane.memory(4096).expect("memory"), lane.staging(4096).expect("memory"));
        staging.iter_mut().zip(0u32..).for_each(|(byte, i)| *byte = (i * 7 % 251) as u8);
        let sent = staging.to_vec();
        lane.write(&mut memory, &staging).expect("written");
        lane.fill(&mut memory, u32::from_ne_bytes([1, 2, 3, 4]), 2).expect("filled");
        staging.fill(0);
        lane.read(&memory, &mut staging).expect("read");
        assert_eq!(staging[..8], [1, 2, 3, 4, 1, 2, 3, 4]);
        assert_eq!(staging[8..], sent[8..]);
    }
}

#[test]
fn a_device_is_measured() {
    let Some(any) = any() else { return };
    let device = Device::open(&any, &Trial::default().memory(16 << 20)).expect("opened");
    let rates = rates(&device[0]).expect("measured");
    assert!(rates.to_gbs > 0.0 && rates.from_gbs > 0.0 && rates.random_mops > 0.0, "{rates:?}");
    assert_eq!(rates.bytes, 4 << 20);
}

#[test]
fn after_a_failure_nothing_is_asked_of_a_device() {
    let Some(any) = any() else { return };
    for fail in 1..=6 {
        let device = Device::open(&any, &Trial::default().fail_at(fail)).expect("opened").remove(0);
        let work = || {
            let lane = device.lane()?;
            let (mut memory, staging) = (lane.memory(64)?, lane.staging(64)?);
            lane.write(&mut memory, &staging)?;
            lane.wait()
        };
        let failed = work().expect_err("a failure");
        assert!(matches!(failed, Error::Call { .. }), "{failed}");
        assert!(failed.to_string().contains("a failure made for a trial"), "{failed}");
        assert!(device.is_lost());
        assert!(matches!(work().expect_err("lost"), Error::Lost { .. }));
    }
}

#[test]
fn a_kernel_that_does_not_compile_is_told() {
    let Some(any) = any() else { return };
    let device = Device::open(&any, &Trial::default()).expect("opened").remove(0);
    let lane = device.lane().expect("a lane");
    let error = lane.kernel("__kernel void broken(", "", "broken").expect_err("no program");
    assert!(error.to_string().contains("cannot compile the kernels"), "{error}");
}
