//! A compressed dictionary of k-mers with their counts, in memory.
//!
//! [`DictionaryBuilder`] joins sorted k-mers to long strings, in which each k-mer occurs once. An index leads from
//! minimizers to positions of the strings, as in SSHash (Pibiri 2022,
//! <https://doi.org/10.1093/bioinformatics/btac245>). Counts are stored in the order of the strings, where neighbours
//! are similar. [`Dictionary`] looks k-mers up, and [`SequenceKmerLookup`] the k-mers of sequences.
//! `docs/formats/dictionary.md` has the file format.
//!
//! ```
//! use genuma_dictionary::{DictionaryBuilder, DictionarySpec, SequenceKmerLookup};
//! use genuma_kmers::encode;
//!
//! // All 15-mers of a sequence, with counts of 3.
//! let sequence = b"ACGTTGCATTCAGGATTACCAGATTAC";
//! let mut keys: Vec<u64> = encode::kmers(sequence, 15).map(|(_, kmer)| kmer.canonical()).collect();
//! keys.sort_unstable();
//! let (num_kmers, memory_bytes) = (keys.len() as u64, 32 << 20);
//! let spec = DictionarySpec { k: 15, num_kmers, num_samples: 1, note: Vec::new(), memory_bytes };
//! let mut builder = DictionaryBuilder::with_spec(spec)?;
//! for key in keys {
//!     builder.push_kmer(key, &[3])?;
//! }
//! let dictionary = builder.build()?;
//! let mut lookup = SequenceKmerLookup::for_dictionary(&dictionary);
//! for (start, kmer) in encode::kmers(sequence, 15) {
//!     let number = lookup.find_kmer_number(start, kmer).expect("a k-mer of the sequence");
//!     assert_eq!(dictionary.get_count(number, 0), 3);
//! }
//! // All k-mers are in one string, so the index is needed once.
//! assert_eq!((dictionary.num_strings(), lookup.num_index_lookups()), (1, 1));
//! # Ok::<(), genuma_dictionary::Error>(())
//! ```
mod error;
mod bits;
mod kmer_set;
mod kmer_strings;
mod counts;
mod simplitigs;
mod minimizer;
mod position_index;
mod dictionary;
mod string_iterator;
mod builder;
mod file;

pub use builder::{DictionaryBuilder, DictionarySpec};
pub use dictionary::{Dictionary, DictionaryPartSizes, SequenceKmerLookup};
pub use error::Error;
pub use file::{DictionaryHeader, is_dictionary_file};
pub use string_iterator::DictionaryString;
