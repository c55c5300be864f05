//! MD5 sums as text.

use md5::{Digest, Md5};

/// MD5 sum of bytes in hexadecimal digits.
pub(crate) fn md5_hex(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
