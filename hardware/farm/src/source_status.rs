//! The return value of a task source.

/// What a source returns when it is called for a task.
///
/// A source that never waits for results may return a `bool`: true for a filled task, false at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceStatus {
    /// The source has filled the task.
    Filled,
    /// The source cannot fill the task yet, because the task depends on results that have not reached the sink. The
    /// farm calls the source again after the next result; changes that the source made to the task may be kept or
    /// lost. To return this when all results have reached the sink is an error, because the source would wait for
    /// ever.
    WaitForResult,
    /// The source has no more tasks.
    End,
}

impl From<bool> for SourceStatus {
    fn from(more: bool) -> SourceStatus {
        if more { SourceStatus::Filled } else { SourceStatus::End }
    }
}
