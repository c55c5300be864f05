//! Parameters of UMI libraries.

use serde::Serialize;

use genuma_reads::ReadStructures;

/// Smallest and largest permitted mean family size.
pub(crate) const ALLOWED_MEAN_FAMILY_SIZE_RANGE: (f64, f64) = (0.1, 100.0);

/// Parameters of a UMI library.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UmiParams {
    /// Read structures of read 1 and read 2.
    pub structures: ReadStructures,
    /// Whether both strands of a molecule are amplified (duplex sequencing).
    pub duplex: bool,
    /// Mean number of read pairs of an amplified strand. Strands without any pair are included in the mean.
    pub mean_family_size: f64,
    /// Whether consensus reads are written, one pair per molecule, instead of all reads of the families.
    pub consensus: bool,
}
