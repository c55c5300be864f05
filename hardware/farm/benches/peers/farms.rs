//! The farms: ours, and three others that promise the same. Each reads on the calling thread, has so many tasks in flight
//! and no more, uses them again, pins its workers alike, and hands results on in order on the calling thread.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Condvar, Mutex};
use std::thread;

use genuma_farm::{CpuSlot, Farm};
use genuma_machine::placement::pin;
use rayon::prelude::*;

use crate::load::{Load, Stream, Task, work};

/// Workers of a farm and the tasks it may have in flight.
#[derive(Clone)]
pub struct Size {
    pub cpu_slots: Vec<CpuSlot>,
    pub tasks_per_worker: usize,
}

impl Size {
    fn tasks(&self) -> usize {
        self.cpu_slots.len() * self.tasks_per_worker
    }
}

/// This crate.
pub fn ours(size: &Size, load: &Load) {
    let stream = std::cell::RefCell::new(load.stream());
    let summary = Farm::new(size.cpu_slots.clone())
        .with_tasks_per_worker(size.tasks_per_worker)
        .run_tasks(
            |_| Task::default(),
            |_| Ok(()),
            |task| Ok(stream.borrow_mut().read(task)),
            |(), task| {
                work(task);
                Ok::<(), String>(())
            },
            |task| {
                stream.borrow_mut().hand_on(task);
                Ok(())
            },
        )
        .expect("nothing fails");
    assert_eq!(summary.tasks, load.tasks);
    stream.into_inner().finish();
}

/// This crate with two masters: half of the workers are assigned to a second node.
pub fn two_masters(size: &Size, load: &Load) {
    let (mut read, mut written) = (load.stream(), load.stream());
    let cpu_slot = |(i, cpu_slot): (usize, &CpuSlot)| CpuSlot { node: Some(i as u32 % 2), ..*cpu_slot };
    let summary = Farm::new(size.cpu_slots.iter().enumerate().map(cpu_slot).collect())
        .with_tasks_per_worker(size.tasks_per_worker)
        .run_tasks_with_master_per_node(
            |_| Task::default(),
            |_| Ok(()),
            |task| Ok(read.read(task)),
            |(), task| {
                work(task);
                Ok::<(), String>(())
            },
            |task| {
                written.hand_on(task);
                Ok(())
            },
        )
        .expect("nothing fails");
    assert_eq!((summary.tasks, summary.num_masters), (load.tasks, 2));
    written.finish();
}

/// A queue with a lock; closed when nothing more comes.
struct Queue {
    tasks: Mutex<(VecDeque<Box<Task>>, bool)>,
    came: Condvar,
}

impl Queue {
    fn new(capacity: usize) -> Self {
        Queue { tasks: Mutex::new((VecDeque::with_capacity(capacity), false)), came: Condvar::new() }
    }

    fn push(&self, task: Box<Task>) {
        self.tasks.lock().expect("no panics").0.push_back(task);
        self.came.notify_one();
    }

    fn pop(&self) -> Option<Box<Task>> {
        let guard = self.tasks.lock().expect("no panics");
        let mut guard = self.came.wait_while(guard, |(tasks, closed)| tasks.is_empty() && !*closed).expect("no panics");
        guard.0.pop_front()
    }

    /// Waits for tasks and takes all there are.
    fn pop_all(&self, into: &mut VecDeque<Box<Task>>) {
        let guard = self.tasks.lock().expect("no panics");
        let mut guard = self.came.wait_while(guard, |(tasks, _)| tasks.is_empty()).expect("no panics");
        mem::swap(&mut guard.0, into);
    }

    fn close(&self) {
        self.tasks.lock().expect("no panics").1 = true;
        self.came.notify_all();
    }
}

/// Two queues, each a `Mutex<VecDeque>` with a `Condvar`; every task and every result is taken by itself.
pub fn mutex(size: &Size, load: &Load) {
    locked(size, load, |back, results| results.extend(back.pop()));
}

/// Two queues as in [`mutex`]; the master takes all available results under one lock.
pub fn mutex_swapped(size: &Size, load: &Load) {
    locked(size, load, Queue::pop_all);
}

fn locked(size: &Size, load: &Load, take: impl Fn(&Queue, &mut VecDeque<Box<Task>>)) {
    let (out, back) = (Queue::new(size.tasks()), Queue::new(size.tasks()));
    thread::scope(|scope| {
        for &cpu_slot in &size.cpu_slots {
            let (out, back) = (&out, &back);
            scope.spawn(move || {
                let _pinned = pinned(cpu_slot);
                while let Some(mut task) = out.pop() {
                    work(&mut task);
                    back.push(task);
                }
            });
        }
        let mut results = VecDeque::with_capacity(size.tasks());
        master(
            size,
            load.stream(),
            |task| out.push(task),
            |window| {
                take(&back, &mut results);
                results.drain(..).for_each(|task| window.put(task));
            },
        );
        out.close();
    });
}

/// Two bounded channels of crossbeam, with many ends each.
pub fn crossbeam(size: &Size, load: &Load) {
    let (out, inbox) = crossbeam_channel::bounded::<Box<Task>>(size.tasks());
    let (outbox, back) = crossbeam_channel::bounded(size.tasks());
    thread::scope(|scope| {
        for &cpu_slot in &size.cpu_slots {
            let (inbox, outbox) = (inbox.clone(), outbox.clone());
            scope.spawn(move || {
                let _pinned = pinned(cpu_slot);
                for mut task in inbox {
                    work(&mut task);
                    outbox.send(task).expect("the master is there");
                }
            });
        }
        master(
            size,
            load.stream(),
            |task| out.send(task).expect("workers are there"),
            |window| {
                window.put(back.recv().expect("workers are there"));
                back.try_iter().for_each(|task| window.put(task));
            },
        );
        drop(out);
    });
}

/// Rayon: as many tasks as may be in flight are read, worked on in parallel, and handed on, again and again.
pub fn rayon(size: &Size, load: &Load) {
    let cpu_slots = size.cpu_slots.clone();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(cpu_slots.len())
        .start_handler(move |thread| mem::forget(pinned(cpu_slots[thread])))
        .build()
        .expect("threads start");
    let mut stream = load.stream();
    let mut tasks: Vec<Task> = (0..size.tasks()).map(|_| Task::default()).collect();
    loop {
        let read = tasks.iter_mut().map_while(|task| stream.read(task).then_some(())).count();
        if read == 0 {
            break;
        }
        pool.install(|| tasks[..read].par_iter_mut().for_each(work));
        tasks[..read].iter().for_each(|task| stream.hand_on(task));
    }
    stream.finish();
}

fn pinned(cpu_slot: CpuSlot) -> Option<pin::PinnedThread> {
    cpu_slot.cpu.map(|cpu| pin::pin_to_cpu(cpu).expect("the CPU may be used"))
}

/// Results that wait for earlier ones.
struct Window(Vec<Option<Box<Task>>>);

impl Window {
    fn put(&mut self, task: Box<Task>) {
        let slot = task.number as usize % self.0.len();
        self.0[slot] = Some(task);
    }
}

/// The master of both farms with queues: reads while tasks are free, then waits for results.
fn master(size: &Size, mut stream: Stream, mut send: impl FnMut(Box<Task>), mut receive: impl FnMut(&mut Window)) {
    let mut free: Vec<Box<Task>> = (0..size.tasks()).map(|_| Box::default()).collect();
    let mut window = Window((0..size.tasks().next_power_of_two()).map(|_| None).collect());
    let (mut next, mut ended) = (0, false);
    loop {
        while !ended && let Some(mut task) = free.pop() {
            if stream.read(&mut task) {
                send(task);
            } else {
                free.push(task);
                ended = true;
            }
        }
        if free.len() == size.tasks() {
            break;
        }
        receive(&mut window);
        while let Some(task) = window.0[next].take() {
            stream.hand_on(&task);
            free.push(task);
            next = (next + 1) % window.0.len();
        }
    }
    stream.finish();
}
