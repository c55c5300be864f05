//! Results that came back before an earlier one did.

/// Holds what belongs to consecutive numbers until its number is asked for. Its room is fixed: numbers that are held at the
/// same time are less than its capacity apart.
pub(crate) struct Window<J> {
    slots: Vec<Option<J>>,
    held: usize,
}

impl<J> Window<J> {
    /// A window for numbers less than `capacity` apart.
    pub(crate) fn new(capacity: usize) -> Self {
        Window { slots: (0..capacity.next_power_of_two()).map(|_| None).collect(), held: 0 }
    }

    fn slot(&self, number: u64) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    /// Keeps `job` under its number.
    pub(crate) fn put(&mut self, number: u64, job: J) {
        let slot = self.slot(number);
        let before = self.slots[slot].replace(job);
        assert!(before.is_none(), "two tasks in one place of the window");
        self.held += 1;
    }

    /// Whether the job with this number is here. Numbers asked for are never smaller than one that was taken.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.slots[self.slot(number)].is_some()
    }

    /// Takes the job with this number out, if it is here.
    pub(crate) fn take(&mut self, number: u64) -> Option<J> {
        let slot = self.slot(number);
        let job = self.slots[slot].take();
        self.held -= usize::from(job.is_some());
        job
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_numbers_in_order_whatever_order_they_come_in() {
        let mut window = Window::new(5);
        let mut given = Vec::new();
        let mut next = 0;
        for block in 0..40 {
            for number in [3, 1, 4, 0, 2].map(|n| block * 5 + n) {
                window.put(number, number);
                while let Some(job) = window.take(next) {
                    given.push(job);
                    next += 1;
                }
            }
        }
        assert_eq!(given, (0..200).collect::<Vec<_>>());
        assert!(window.is_empty() && !window.has(next));
    }

    #[test]
    #[should_panic(expected = "two tasks in one place")]
    fn refuses_more_than_it_was_made_for() {
        let mut window = Window::new(4);
        window.put(1, ());
        window.put(5, ());
    }
}
