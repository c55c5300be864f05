//! The one thread in which connections are served: asynchronous code runs there and in threads that wait for it, and nowhere else.

use std::io;
use std::thread::{Builder, JoinHandle};

use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;

/// Serves connections until it is dropped.
#[derive(Debug)]
pub(crate) struct Network {
    handle: Handle,
    /// Gone when it is to end.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    /// # Errors
    /// The system gives no thread.
    pub fn start() -> io::Result<Network> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let serve = move || {
            // Its other end is dropped, never used.
            let _ = runtime.block_on(ended);
            // A host's name that is being looked up is not waited for.
            runtime.shutdown_background();
        };
        let thread = Builder::new().name("network".to_owned()).spawn(serve)?;
        Ok(Network { handle, end: Some(end), thread: Some(thread) })
    }

    /// What a request comes to. The calling thread waits for it.
    pub fn wait<F: Future>(&self, request: F) -> F::Output {
        self.handle.block_on(request)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked there is nothing left to end.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn several_threads_wait_at_once() {
        let network = Network::start().unwrap();
        std::thread::scope(|scope| {
            for i in 0..4 {
                let network = &network;
                scope.spawn(move || {
                    let request = async move {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        i
                    };
                    assert_eq!(network.wait(request), i);
                });
            }
        });
    }
}
