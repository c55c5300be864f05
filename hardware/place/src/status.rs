//! Results of calls: return codes, and a message for each thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use genuma_machine::placement::Error;

/// Return code `GENUMA_NOT_AS_REQUESTED`: the call succeeded, but the kernel did not apply all of the request.
const NOT_AS_REQUESTED: c_int = 1;

/// An error with its `errno` value.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Positive value of `errno.h`.
    errno: c_int,
    message: String,
}

/// A successful result, and which parts of the request were not applied.
#[derive(Debug)]
pub(crate) struct Fulfilled<T> {
    /// Result of the call.
    pub value: T,
    /// Differences from the request, as text; empty if there are none.
    pub differences: Vec<String>,
}

impl Failure {
    /// Error `EINVAL`: an argument is invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Failure {
        Failure { errno: libc::EINVAL, message: message.into() }
    }

    /// Error `ENODEV`: a node does not exist, or has no copy.
    pub(crate) fn no_node(message: impl Into<String>) -> Failure {
        Failure { errno: libc::ENODEV, message: message.into() }
    }

    /// Error `ERANGE`: an array is too short.
    pub(crate) fn too_short(message: impl Into<String>) -> Failure {
        Failure { errno: libc::ERANGE, message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let errno = match &error {
            Error::NoNodes { .. } | Error::InvalidWeight { .. } | Error::InvalidHugePageSize { .. } => libc::EINVAL,
            Error::UnknownNode { .. }
            | Error::NodeWithoutMemory { .. }
            | Error::NodeOutsideCpuset { .. }
            | Error::CpuNotAllowed { .. }
            | Error::NodeWithoutCpu { .. } => libc::ENODEV,
            Error::UnsupportedCustomWeights { .. } => libc::EOPNOTSUPP,
            Error::NotEnoughMemory { .. } => libc::ENOMEM,
            Error::SystemCallFailed { source, .. } => match source.kind() {
                io::ErrorKind::OutOfMemory => libc::ENOMEM,
                _ => source.raw_os_error().filter(|&errno| errno > 0).unwrap_or(libc::EIO),
            },
        };
        Failure { errno, message: error.to_string() }
    }
}

impl<T> Fulfilled<T> {
    /// Converts the value and keeps the differences.
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Fulfilled<U> {
        Fulfilled { value: convert(self.value), differences: self.differences }
    }
}

impl<T> From<T> for Fulfilled<T> {
    fn from(value: T) -> Self {
        Fulfilled { value, differences: Vec::new() }
    }
}

thread_local! {
    /// Message of the last call of this thread that did not return 0.
    static LAST_MESSAGE: RefCell<CString> = RefCell::default();
}

/// Runs `call` and returns its result as a return code: its value (0 or more), [`NOT_AS_REQUESTED`], or a negative
/// `errno`. Keeps the message, and turns a panic into `-ENOTRECOVERABLE`.
pub(crate) fn return_code(call: impl FnOnce() -> Result<Fulfilled<c_int>, Failure>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let message = format!("a defect in genuma_place, please report it: {text}");
        Err(Failure { errno: libc::ENOTRECOVERABLE, message })
    });
    match outcome {
        Ok(Fulfilled { value, differences }) if differences.is_empty() => value,
        Ok(Fulfilled { differences, .. }) => {
            keep_message(&differences.join("; "));
            NOT_AS_REQUESTED
        }
        Err(failure) => keep_failure(&failure),
    }
}

/// Keeps the message of a failure for the calling thread. Returns the return code: the negative `errno`.
pub(crate) fn keep_failure(failure: &Failure) -> c_int {
    keep_message(&failure.message);
    -failure.errno
}

fn keep_message(message: &str) {
    let bytes: Vec<u8> = message.bytes().filter(|&byte| byte != 0).collect();
    let text = CString::new(bytes).unwrap_or_default();
    // While a thread ends, its variables are gone; then there is no message.
    let _ = LAST_MESSAGE.try_with(|last| *last.borrow_mut() = text);
}

/// Message of the last call of this thread that did not return 0, or an empty text. Valid until the next such call.
pub(crate) fn last_message() -> *const c_char {
    LAST_MESSAGE.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use genuma_machine::placement::MemoryPolicy;

    use super::*;

    /// Text that `genuma_last_message` would return.
    fn message() -> String {
        LAST_MESSAGE.with(|last| CStr::to_string_lossy(&last.borrow()).into_owned())
    }

    #[test]
    fn a_panic_becomes_a_return_code() {
        assert_eq!(return_code(|| panic!("three is {}", 3)), -libc::ENOTRECOVERABLE);
        assert_eq!(message(), "a defect in genuma_place, please report it: three is 3");
        assert_eq!(return_code(|| panic!("plain")), -libc::ENOTRECOVERABLE);
        assert!(message().ends_with(": plain"));
    }

    #[test]
    fn success_keeps_the_last_message() {
        assert_eq!(return_code(|| Err(Failure::invalid("a\0b"))), -libc::EINVAL);
        assert_eq!((return_code(|| Ok(7.into())), message()), (7, "ab".to_owned()));
        let differences = vec!["x".to_owned(), "y".to_owned()];
        assert_eq!(return_code(|| Ok(Fulfilled { value: 0, differences })), NOT_AS_REQUESTED);
        assert_eq!(message(), "x; y");
    }

    #[test]
    fn errors_of_placement_have_errno_values() {
        let failed = |source: io::Error| Error::SystemCallFailed { asked: "bind 1".to_owned(), call: "mbind", source };
        for (error, errno) in [
            (failed(io::Error::from_raw_os_error(libc::EPERM)), libc::EPERM),
            (failed(io::ErrorKind::OutOfMemory.into()), libc::ENOMEM),
            (failed(io::ErrorKind::Other.into()), libc::EIO),
            (Error::UnsupportedCustomWeights { policy: MemoryPolicy::Local }, libc::EOPNOTSUPP),
        ] {
            assert_eq!(Failure::from(error).errno, errno);
        }
    }
}
