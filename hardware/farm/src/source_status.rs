//! The return value of a task source.

/// What the source of a farm returns when it is called to fill a task.
///
/// A source that never waits for results may return a `bool` instead: true for a filled task, false at the end of the
/// input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceStatus {
    /// The source has filled the task.
    Filled,
    /// The source cannot fill the task yet, because the task depends on results that have not been passed to the sink.
    /// The farm calls the source again after the next result. Changes that the source made to the task may be kept or
    /// lost. It is an error to return this value when all results have been passed to the sink, because the source
    /// would wait for ever.
    WaitForResult,
    /// The source has no more tasks.
    End,
}

impl From<bool> for SourceStatus {
    fn from(more: bool) -> SourceStatus {
        if more { SourceStatus::Filled } else { SourceStatus::End }
    }
}
