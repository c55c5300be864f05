//! What any OpenCL driver has to do, on those that are here; scripts/setup.sh installs PoCL, which drives the CPUs.

use std::io::Write;

use genuma_gpu::{Device, DeviceKind, DeviceTestSettings, Error, find_devices, measure_device_rates};

/// A driver's device, whatever its kind; says so where there is none.
fn any() -> Option<genuma_gpu::DeviceDescription> {
    let found = find_devices();
    let first = found.devices.into_iter().next();
    if first.is_none() {
        // Written to stderr directly, because the test harness hides the output of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped: no device, see scripts/setup.sh: {:?}", found.missing);
    }
    first
}

#[test]
fn devices_are_described() {
    let Some(device) = any() else { return };
    assert!(
        !device.name.is_empty()
            && device.global_memory_bytes > 1 << 20
            && device.compute_units > 0
            && device.local_memory_bytes > 0
    );
    assert!(
        device.kind != DeviceKind::Other && device.max_allocation_bytes <= device.global_memory_bytes,
        "{device:?}"
    );
}

#[test]
fn what_is_copied_comes_back_and_limits_hold() {
    let Some(any) = any() else { return };
    let trial = DeviceTestSettings::default().with_memory_limit(1 << 20).with_sub_devices(2);
    let devices = Device::open_whole_or_in_parts(&any, &trial).expect("opened");
    assert_eq!(devices.len(), 2);
    assert_ne!(devices[0].description().name, devices[1].description().name);
    for device in &devices {
        assert_eq!(device.usable_memory_bytes(), 1 << 20);
        let lane = device.create_queue().expect("a lane");
        let (mut memory, mut staging) =
            (lane.allocate_buffer(4096).expect("memory"), lane.allocate_pinned_buffer(4096).expect("memory"));
        staging.iter_mut().zip(0u32..).for_each(|(byte, i)| *byte = (i * 7 % 251) as u8);
        let sent = staging.to_vec();
        lane.copy_to_device(&mut memory, &staging).expect("written");
        lane.enqueue_fill_with_word(&mut memory, u32::from_ne_bytes([1, 2, 3, 4]), 2).expect("filled");
        staging.fill(0);
        lane.copy_from_device(&memory, &mut staging).expect("read");
        assert_eq!(staging[..8], [1, 2, 3, 4, 1, 2, 3, 4]);
        assert_eq!(staging[8..], sent[8..]);
    }
}

#[test]
fn a_device_is_measured() {
    let Some(any) = any() else { return };
    let device = Device::open_whole_or_in_parts(&any, &DeviceTestSettings::default().with_memory_limit(16 << 20))
        .expect("opened");
    let rates = measure_device_rates(&device[0]).expect("measured");
    assert!(
        rates.copy_to_device_gbs > 0.0 && rates.copy_from_device_gbs > 0.0 && rates.atomic_updates_mops > 0.0,
        "{rates:?}"
    );
    assert_eq!(rates.bytes, 4 << 20);
}

#[test]
fn after_a_failure_nothing_is_asked_of_a_device() {
    let Some(any) = any() else { return };
    for fail in 1..=6 {
        let device =
            Device::open_whole_or_in_parts(&any, &DeviceTestSettings::default().with_failing_call_number(fail))
                .expect("opened")
                .remove(0);
        let work = || {
            let lane = device.create_queue()?;
            let (mut memory, staging) = (lane.allocate_buffer(64)?, lane.allocate_pinned_buffer(64)?);
            lane.copy_to_device(&mut memory, &staging)?;
            lane.wait_until_done()
        };
        let failed = work().expect_err("a failure");
        assert!(matches!(failed, Error::DriverCallFailed { .. }), "{failed}");
        assert!(failed.to_string().contains("a failure injected by the test settings"), "{failed}");
        assert!(device.is_lost());
        assert!(matches!(work().expect_err("lost"), Error::DeviceLost { .. }));
    }
}

#[test]
fn a_kernel_that_does_not_compile_is_told() {
    let Some(any) = any() else { return };
    let device = Device::open_whole_or_in_parts(&any, &DeviceTestSettings::default()).expect("opened").remove(0);
    let lane = device.create_queue().expect("a lane");
    let error = lane.create_kernel("__kernel void broken(", "", "broken").expect_err("no program");
    assert!(error.to_string().contains("cannot compile the kernels"), "{error}");
}
