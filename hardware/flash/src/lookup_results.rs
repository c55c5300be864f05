//! Results of looking up many keys, in the order of the keys.

/// The values found for many keys. The buffer keeps its memory, so it should be reused for many lookups.
#[derive(Debug, Clone, Default)]
pub struct LookupResults {
    is_found: Vec<bool>,
    values: Vec<u8>,
    value_bytes: usize,
}

impl LookupResults {
    /// Creates an empty buffer for results.
    pub fn new() -> LookupResults {
        LookupResults::default()
    }

    /// Number of keys that were looked up.
    pub fn len(&self) -> usize {
        self.is_found.len()
    }

    /// Whether no keys were looked up.
    pub fn is_empty(&self) -> bool {
        self.is_found.is_empty()
    }

    /// The value of the key with index `key` in the lookup, from 0. `None` if the table does not have the key.
    ///
    /// # Panics
    /// When fewer keys were looked up.
    pub fn get(&self, key: usize) -> Option<&[u8]> {
        self.is_found[key].then(|| &self.values[key * self.value_bytes..(key + 1) * self.value_bytes])
    }

    /// Iterates over the values in the order of the keys; `None` for keys that the table does not have.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        (0..self.len()).map(|key| self.get(key))
    }

    /// Clears the results, allocates space for `keys` keys with values of `value` bytes, and returns access to all of
    /// it.
    pub(crate) fn reset_for_keys(&mut self, keys: usize, value: usize) -> LookupResultsMut<'_> {
        self.is_found.clear();
        self.is_found.resize(keys, false);
        // Old bytes may remain in `values`, but no key is marked as found.
        self.values.resize(keys * value, 0);
        self.value_bytes = value;
        LookupResultsMut { is_found: &mut self.is_found, values: &mut self.values, value_bytes: value }
    }
}

/// Mutable access to the results of some consecutive keys.
#[derive(Debug)]
pub(crate) struct LookupResultsMut<'a> {
    is_found: &'a mut [bool],
    values: &'a mut [u8],
    value_bytes: usize,
}

impl<'a> LookupResultsMut<'a> {
    /// Splits the results into those of the first `keys` keys and the rest.
    pub(crate) fn split_at(self, keys: usize) -> (LookupResultsMut<'a>, LookupResultsMut<'a>) {
        let (found, others) = self.is_found.split_at_mut(keys);
        let (values, rest) = self.values.split_at_mut(keys * self.value_bytes);
        (
            LookupResultsMut { is_found: found, values, value_bytes: self.value_bytes },
            LookupResultsMut { is_found: others, values: rest, value_bytes: self.value_bytes },
        )
    }

    /// Stores the value of a key if its page has it: `copy_value` writes the value and returns whether the page has the
    /// key.
    pub(crate) fn fill_value_if_present<E>(
        &mut self,
        key: usize,
        copy_value: impl FnOnce(&mut [u8]) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.is_found[key] = copy_value(&mut self.values[key * self.value_bytes..(key + 1) * self.value_bytes])?;
        Ok(())
    }

    /// Stores the value of a key that was found.
    pub(crate) fn set_value(&mut self, key: usize, value: &[u8]) {
        self.is_found[key] = true;
        self.values[key * self.value_bytes..(key + 1) * self.value_bytes].copy_from_slice(value);
    }
}
