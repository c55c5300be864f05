//! Calls of the CRAM decoder, which may panic on damaged or crafted data.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

thread_local! {
    /// Whether the CRAM decoder is running on this thread.
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the CRAM decoder is running on this thread. A panic is then caught, and becomes an error that names the file
/// and the record. A panic hook can ask this, to print no message:
///
/// ```
/// use std::panic;
///
/// let default_hook = panic::take_hook();
/// panic::set_hook(Box::new(move |panic| {
///     if !genuma_reads::is_in_cram_decoder() {
///         default_hook(panic);
///     }
/// }));
/// ```
pub fn is_in_cram_decoder() -> bool {
    IS_DECODING.get()
}

/// Calls the decoder. `None` if the decoder panics. A panic of [`call_outside_decoder`] is not caught.
pub(super) fn call_decoder<T>(decode: impl FnOnce() -> T) -> Option<T> {
    let outer = IS_DECODING.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    let is_decoder_panic = IS_DECODING.replace(outer);
    match decoded {
        Ok(decoded) => Some(decoded),
        Err(_) if is_decoder_panic => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Calls a function that is not part of the decoder, from inside of [`call_decoder`].
pub(super) fn call_outside_decoder<T>(function: impl FnOnce() -> T) -> T {
    let outer = IS_DECODING.replace(false);
    let value = function();
    // After a panic the value stays false, which tells `call_decoder` that the decoder did not panic.
    IS_DECODING.set(outer);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_panics_of_the_decoder_are_caught() {
        assert_eq!(call_decoder(is_in_cram_decoder), Some(true));
        assert_eq!(call_decoder(|| call_outside_decoder(is_in_cram_decoder)), Some(false));
        assert_eq!(call_decoder(|| -> u8 { panic!("the decoder") }), None);
        assert!(!is_in_cram_decoder());
        let outside = || call_decoder(|| call_outside_decoder(|| -> u8 { panic!("our own code") }));
        assert!(catch_unwind(outside).is_err());
        assert!(!is_in_cram_decoder());
        assert_eq!(call_decoder(|| (call_outside_decoder(|| ()), is_in_cram_decoder())), Some(((), true)));
    }
}
