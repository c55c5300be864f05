//! Buffer for results that arrive before the result of an earlier task.

/// Buffer for items with consecutive numbers that arrive out of order and are removed in order. The capacity is fixed:
/// the numbers of items that are held at the same time must differ by less than the capacity.
pub(crate) struct ReorderBuffer<J> {
    slots: Vec<Option<J>>,
    num_held: usize,
}

impl<J> ReorderBuffer<J> {
    /// Creates a buffer for numbers that differ by less than `capacity`.
    pub(crate) fn new(capacity: usize) -> Self {
        ReorderBuffer { slots: (0..capacity.next_power_of_two()).map(|_| None).collect(), num_held: 0 }
    }

    fn slot(&self, number: u64) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    /// Inserts `job` under its number.
    pub(crate) fn insert(&mut self, number: u64, job: J) {
        let slot = self.slot(number);
        let before = self.slots[slot].replace(job);
        assert!(before.is_none(), "two tasks in one slot of the reorder buffer");
        self.num_held += 1;
    }

    /// Whether the item with this number is in the buffer. `number` must not be smaller than that of a removed item.
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.slots[self.slot(number)].is_some()
    }

    /// Removes and returns the item with this number, if it is in the buffer.
    pub(crate) fn remove(&mut self, number: u64) -> Option<J> {
        let slot = self.slot(number);
        let job = self.slots[slot].take();
        self.num_held -= usize::from(job.is_some());
        job
    }

    /// Whether the buffer has no items.
    pub(crate) fn is_empty(&self) -> bool {
        self.num_held == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_numbers_in_order_whatever_order_they_come_in() {
        let mut window = ReorderBuffer::new(5);
        let mut given = Vec::new();
        let mut next = 0;
        for block in 0..40 {
            for number in [3, 1, 4, 0, 2].map(|n| block * 5 + n) {
                window.insert(number, number);
                while let Some(job) = window.remove(next) {
                    given.push(job);
                    next += 1;
                }
            }
        }
        assert_eq!(given, (0..200).collect::<Vec<_>>());
        assert!(window.is_empty() && !window.contains(next));
    }

    #[test]
    #[should_panic(expected = "two tasks in one slot")]
    fn refuses_more_than_it_was_made_for() {
        let mut window = ReorderBuffer::new(4);
        window.insert(1, ());
        window.insert(5, ());
    }
}
