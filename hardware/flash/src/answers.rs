//! Values of many keys, in the order of the keys.

/// What was found for each of many keys. Use one again and again: it keeps its memory.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    found: Vec<bool>,
    values: Vec<u8>,
    value: usize,
}

impl Answers {
    /// For nothing yet.
    pub fn new() -> Answers {
        Answers::default()
    }

    /// How many keys were asked for.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether no key was asked for.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The value of the `key`th key asked for, counted from 0, if that key is in the table.
    ///
    /// # Panics
    /// When fewer keys were asked for.
    pub fn get(&self, key: usize) -> Option<&[u8]> {
        self.found[key].then(|| &self.values[key * self.value..(key + 1) * self.value])
    }

    /// The values or their absence, in the order of the keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        (0..self.len()).map(|key| self.get(key))
    }

    /// Forgets all, and makes room for so many keys with values of so many bytes.
    pub(crate) fn reset(&mut self, keys: usize, value: usize) -> Part<'_> {
        self.found.clear();
        self.found.resize(keys, false);
        // What other keys left behind does not show: nothing is found yet.
        self.values.resize(keys * value, 0);
        self.value = value;
        Part { found: &mut self.found, values: &mut self.values, value }
    }
}

/// Room for the answers of some neighbouring keys.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    found: &'a mut [bool],
    values: &'a mut [u8],
    value: usize,
}

impl<'a> Part<'a> {
    /// The room of the first so many keys, and of the others.
    pub fn split(self, keys: usize) -> (Part<'a>, Part<'a>) {
        let (found, others) = self.found.split_at_mut(keys);
        let (values, rest) = self.values.split_at_mut(keys * self.value);
        (Part { found, values, value: self.value }, Part { found: others, values: rest, value: self.value })
    }

    /// Notes the value of a key.
    pub fn put(&mut self, key: usize, value: &[u8]) {
        self.found[key] = true;
        self.values[key * self.value..(key + 1) * self.value].copy_from_slice(value);
    }
}
