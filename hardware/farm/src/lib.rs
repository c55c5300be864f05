//! A lock-free master-worker farm of pinned threads (the runtime of misale2014, section V).
