//! What a source says when it is asked for a task.

/// The answer of a source.
///
/// A source that has nothing to wait for may answer with a `bool`: true for a task, false for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It has filled the task.
    Task,
    /// What comes next depends on results that are not handed on yet. It is asked again when the next one has been; what it
    /// did to the task is kept or lost. Saying so when everything read is handed on is an error: nothing would ever change.
    Later,
    /// There is nothing more.
    End,
}

impl From<bool> for Next {
    fn from(more: bool) -> Next {
        if more { Next::Task } else { Next::End }
    }
}
