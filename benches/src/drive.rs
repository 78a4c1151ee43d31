//! Load: closed-loop, so many callers, each calling again once it was answered; or open-loop, at a rate, come what may.
//!
//! Runs on the thread of its runtime, so that its cost is one thread's and can be told.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tonic::Status;

use crate::client::name_of;

/// When callers stop.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// After so many calls.
    Calls(usize),
    /// After so long.
    Elapsed(Duration),
}

/// What a drive gave.
#[derive(Debug, Clone, Default)]
pub struct Driven {
    /// From the first call to the last answer.
    pub elapsed: Duration,
    /// Of the calls that succeeded.
    pub latencies: Vec<Duration>,
    /// Failures by code and reason.
    pub errors: BTreeMap<String, usize>,
}

impl Driven {
    /// Calls a second that succeeded.
    pub fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Failures.
    pub fn num_errors(&self) -> usize {
        self.errors.values().sum()
    }
}

/// Drives `callers` at once. `call` is given the caller and the number of the call.
pub async fn drive<F: Future<Output = Result<(), Status>>>(
    callers: usize,
    until: Until,
    call: impl Fn(usize, usize) -> F,
) -> Driven {
    let next = Cell::new(0);
    let driven = RefCell::new(Driven::default());
    let begun = Instant::now();
    let one = async |caller: usize| {
        loop {
            let number = next.get();
            let goes_on = match until {
                Until::Calls(count) => number < count,
                Until::Elapsed(elapsed) => begun.elapsed() < elapsed,
            };
            if !goes_on {
                return;
            }
            next.set(number + 1);
            let asked = Instant::now();
            let outcome = call(caller, number).await;
            let latency = asked.elapsed();
            let mut driven = driven.borrow_mut();
            match outcome {
                Ok(()) => driven.latencies.push(latency),
                Err(status) => *driven.errors.entry(name_of(&status)).or_default() += 1,
            }
        }
    };
    join_all((0..callers.max(1)).map(one)).await;
    let elapsed = begun.elapsed();
    Driven { elapsed, ..driven.into_inner() }
}

/// What an offer gave.
#[derive(Debug, Clone, Default)]
pub struct Offered {
    /// What was sent; latencies count from when each call was due.
    pub driven: Driven,
    /// Calls that were due and not sent, for too many were under way.
    pub num_unsent: usize,
}

/// Open-loop load: calls at a rate, whether earlier ones were answered or not, as long as fewer than `max_in_flight` are under
/// way.
pub async fn offer<F: Future<Output = Result<(), Status>>>(
    rate: f64,
    elapsed: Duration,
    max_in_flight: usize,
    call: impl Fn(usize) -> F,
) -> Offered {
    let mut offered = Offered::default();
    let begun = Instant::now();
    let mut running = FuturesUnordered::new();
    let mut number = 0;
    let due = |number: usize| begun + Duration::from_secs_f64(number as f64 / rate.max(1e-9));
    loop {
        let now = Instant::now();
        while due(number) <= now && due(number) < begun + elapsed {
            if running.len() < max_in_flight {
                let (call, due) = (call(number), due(number));
                running.push(async move { (call.await, due.elapsed()) });
            } else {
                offered.num_unsent += 1;
            }
            number += 1;
        }
        let is_over = due(number) >= begun + elapsed;
        if is_over && running.is_empty() {
            break;
        }
        let wait = async {
            if is_over {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep_until(due(number).into()).await;
        };
        tokio::select! {
            () = wait => {}
            Some((outcome, latency)) = running.next(), if !running.is_empty() => match outcome {
                Ok(()) => offered.driven.latencies.push(latency),
                Err(status) => *offered.driven.errors.entry(name_of(&status)).or_default() += 1,
            },
        }
    }
    offered.driven.elapsed = elapsed;
    drop(running);
    offered
}
