//! MD5 sums as text.

use md5::{Digest, Md5};

/// MD5 sum of bytes in lower-case hexadecimal digits, as `@SQ M5` has it.
pub fn md5_hex(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
