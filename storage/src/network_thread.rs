//! The thread that serves network connections. Asynchronous code runs only in this thread, and in threads that wait for
//! a request.

use std::io;
use std::thread::{Builder, JoinHandle};

use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;

/// A thread that serves network connections. Dropping the value ends the thread.
#[derive(Debug)]
pub(crate) struct NetworkThread {
    handle: Handle,
    /// The thread ends when this sender is dropped.
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl NetworkThread {
    /// Starts a network thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start() -> io::Result<NetworkThread> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (shutdown, ended) = oneshot::channel::<()>();
        let serve = move || {
            // The sender is dropped, never used.
            let _ = runtime.block_on(ended);
            // Do not wait for a pending name lookup.
            runtime.shutdown_background();
        };
        let thread = Builder::new().name("network".to_owned()).spawn(serve)?;
        Ok(NetworkThread { handle, shutdown: Some(shutdown), thread: Some(thread) })
    }

    /// Waits in the calling thread until a request is answered, and returns the result.
    pub(crate) fn block_on<F: Future>(&self, request: F) -> F::Output {
        self.handle.block_on(request)
    }
}

impl Drop for NetworkThread {
    fn drop(&mut self) {
        drop(self.shutdown.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is ignored: it has ended.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn several_threads_block_at_once() {
        let network = NetworkThread::start().unwrap();
        std::thread::scope(|scope| {
            for i in 0..4 {
                let network = &network;
                scope.spawn(move || {
                    let request = async move {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        i
                    };
                    assert_eq!(network.block_on(request), i);
                });
            }
        });
    }
}
