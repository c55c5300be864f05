//! Functions that C programs call. `include/genuma_place.h` documents them; `tests/header.rs` compares both.
//!
//! `unsafe` is needed because arguments are pointers of the caller and because the functions are exported by name.
//! Pointers are checked for NULL here; that they are valid otherwise is the caller's part of the contract in the
//! header.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use genuma_machine::placement::{self, pin};

use crate::replicas::Replicas;
use crate::status::{Failure, Fulfilled, keep_failure, last_message, return_code};
use crate::{allocations, replicas, scopes};

/// Version of the library, as `GENUMA_PLACE_VERSION` in the header.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("the version has no NUL"),
};

/// Text of a C string.
///
/// # Safety
/// `text` is NULL, or points to a NUL-terminated string that lives as long as `'a`.
unsafe fn read_text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL")));
    }
    // SAFETY: not NULL; the caller guarantees the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::invalid(format!("{name} is not UTF-8 text")))
}

/// Place of a result, which is set to NULL.
///
/// # Safety
/// `result` is NULL, or points to a pointer of the caller that nothing else uses during the call.
unsafe fn clear_result<'a, T>(result: *mut *mut T, name: &str) -> Result<&'a mut *mut T, Failure> {
    if result.is_null() {
        return Err(Failure::invalid(format!("{name} is NULL")));
    }
    // SAFETY: not NULL; the caller guarantees the rest. A write, because the pointer may be uninitialised.
    unsafe { result.write(std::ptr::null_mut()) };
    // SAFETY: as above; it is initialised now.
    Ok(unsafe { &mut *result })
}

#[unsafe(no_mangle)]
extern "C" fn genuma_version() -> *const c_char {
    VERSION.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn genuma_last_message() -> *const c_char {
    last_message()
}

#[unsafe(no_mangle)]
extern "C" fn genuma_node_limit() -> c_int {
    return_code(|| Ok(placement::online_nodes().iter().last().map_or(1, |node| node as c_int + 1).into()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn genuma_usable_nodes(nodes: *mut c_int, capacity: usize) -> c_int {
    return_code(|| {
        if nodes.is_null() && capacity > 0 {
            return Err(Failure::invalid("nodes is NULL, and capacity is not 0"));
        }
        let usable = placement::usable_nodes();
        for (index, node) in usable.iter().take(capacity).enumerate() {
            // SAFETY: the caller has room for `capacity` numbers, and `index` is less.
            unsafe { nodes.add(index).write(node as c_int) };
        }
        Ok((usable.len() as c_int).into())
    })
}

#[unsafe(no_mangle)]
extern "C" fn genuma_current_node() -> c_int {
    return_code(|| Ok((pin::current_location().node as c_int).into()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn genuma_alloc(
    bytes: usize,
    policy: *const c_char,
    flags: c_uint,
    memory: *mut *mut c_void,
) -> c_int {
    return_code(|| {
        // SAFETY: the header requires a pointer to a pointer, or NULL.
        let memory = unsafe { clear_result(memory, "memory") }?;
        // SAFETY: the header requires a string, or NULL.
        let policy = unsafe { read_text(policy, "policy") }?;
        Ok(allocations::allocate(bytes, policy, flags)?.map(|start| {
            *memory = start.cast();
            0
        }))
    })
}

#[unsafe(no_mangle)]
extern "C" fn genuma_free(memory: *mut c_void) -> c_int {
    return_code(|| match memory.is_null() {
        true => Ok(0.into()),
        false => allocations::free(memory.addr()).map(|()| 0.into()),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn genuma_pages_by_node(
    start: *const c_void,
    bytes: usize,
    pages: *mut u64,
    num_nodes: usize,
    absent: *mut u64,
) -> c_int {
    return_code(|| {
        if start.is_null() || pages.is_null() || bytes == 0 {
            return Err(Failure::invalid("start or pages is NULL, or bytes is 0"));
        }
        let found = allocations::query_pages(start.addr(), bytes)?;
        if let Some((node, _)) = found.pages_by_node.range(u32::try_from(num_nodes).unwrap_or(u32::MAX)..).next() {
            let message =
                format!("pages are on node {node}, but the array has {num_nodes} entries (genuma_node_limit)");
            return Err(Failure::too_short(message));
        }
        for index in 0..num_nodes {
            let count = u32::try_from(index).ok().and_then(|node| found.pages_by_node.get(&node));
            // SAFETY: the caller's array has `num_nodes` entries, and `index` is less.
            unsafe { pages.add(index).write(count.copied().unwrap_or(0)) };
        }
        if !absent.is_null() {
            // SAFETY: not NULL, and the header requires a number of the caller.
            unsafe { absent.write(found.absent_pages) };
        }
        Ok(0.into())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn genuma_replicate(
    data: *const c_void,
    bytes: usize,
    nodes: *const c_char,
    flags: c_uint,
    replicas: *mut *mut Replicas,
) -> c_int {
    return_code(|| {
        // SAFETY: the header requires a pointer to a pointer, or NULL.
        let result = unsafe { clear_result(replicas, "replicas") }?;
        // SAFETY: the header requires a string, or NULL.
        let nodes = unsafe { read_text(nodes, "nodes") }?;
        if data.is_null() || data.addr().checked_add(bytes).is_none() || isize::try_from(bytes).is_err() {
            return Err(Failure::invalid("data is NULL, or ends beyond the address space"));
        }
        // SAFETY: the header requires `bytes` readable bytes that do not change during the call; their length was checked.
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
        Ok(replicas::replicate(data, nodes, flags)?.map(|address| {
            *result = address.cast_mut();
            0
        }))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn genuma_nearest_copy(replicas: *const Replicas) -> *const c_void {
    // Called in hot loops: no catch_unwind, because nothing in it panics.
    // SAFETY: the header requires replicas that are not freed, or NULL.
    match unsafe { replicas.as_ref() } {
        Some(replicas) => replicas.nearest_copy().cast(),
        None => null_with_message(&Failure::invalid("replicas is NULL")),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn genuma_copy_on_node(replicas: *const Replicas, node: c_int) -> *const c_void {
    let mut copy = std::ptr::null();
    return_code(|| {
        // SAFETY: the header requires replicas that are not freed, or NULL.
        let replicas = unsafe { replicas.as_ref() }.ok_or_else(|| Failure::invalid("replicas is NULL"))?;
        copy = replicas.copy_on_node(node)?;
        Ok(0.into())
    });
    copy.cast()
}

#[unsafe(no_mangle)]
extern "C" fn genuma_free_replicas(replicas: *mut Replicas) -> c_int {
    return_code(|| match replicas.is_null() {
        true => Ok(0.into()),
        false => replicas::free(replicas.addr()).map(|()| 0.into()),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn genuma_begin_scope(policy: *const c_char, cpus: *const c_char) -> c_int {
    return_code(|| {
        let text = |text: *const c_char, name| match text.is_null() {
            true => Ok(None),
            // SAFETY: not NULL; the header requires a string.
            false => unsafe { read_text(text, name) }.map(Some),
        };
        Ok(scopes::begin(text(policy, "policy")?, text(cpus, "cpus")?)?.map(|()| 0))
    })
}

#[unsafe(no_mangle)]
extern "C" fn genuma_end_scope() -> c_int {
    return_code(|| scopes::end().map(|()| Fulfilled::from(0)))
}

/// NULL, with the message of a failure kept for the calling thread.
#[cold]
fn null_with_message(failure: &Failure) -> *const c_void {
    keep_failure(failure);
    std::ptr::null()
}
