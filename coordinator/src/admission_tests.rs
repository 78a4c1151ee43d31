#![allow(clippy::unwrap_used)]

use futures::future::join_all;
use tokio::time::sleep;

use super::*;

fn later() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// Nobody runs, nobody waits.
fn is_idle(admission: &Admission) -> bool {
    let state = admission.0.lock();
    state.running == 0 && state.num_waiting == 0 && state.waiting.is_empty() && state.turns.is_empty()
}

#[tokio::test]
async fn so_many_run_and_the_others_wait_in_order() {
    let admission = Admission::new(2, 10);
    let first = admission.enter("a", later()).await.unwrap();
    let second = admission.enter("a", later()).await.unwrap();
    let order = Mutex::new(Vec::new());
    let wait = async |number: usize| {
        let admitted = admission.enter("a", later()).await.unwrap();
        order.lock().unwrap().push(number);
        drop(admitted);
    };
    let release = async {
        sleep(Duration::from_millis(5)).await;
        assert!(order.lock().unwrap().is_empty());
        drop(first);
    };
    tokio::join!(wait(0), wait(1), wait(2), release);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    drop(second);
    assert!(is_idle(&admission));
}

#[tokio::test]
async fn callers_take_turns() {
    let admission = Admission::new(1, 100);
    let held = admission.enter("a", later()).await.unwrap();
    let order = Mutex::new(String::new());
    let wait = async |caller: &'static str| {
        let admitted = admission.enter(caller, later()).await.unwrap();
        order.lock().unwrap().push_str(caller);
        drop(admitted);
    };
    let greedy = join_all((0..6).map(|_| wait("a")));
    let release = async {
        sleep(Duration::from_millis(5)).await;
        drop(held);
    };
    tokio::join!(greedy, wait("b"), wait("c"), wait("b"), release);
    assert_eq!(*order.lock().unwrap(), "abcabaaaa");
    assert!(is_idle(&admission));
}

#[tokio::test]
async fn a_full_queue_sheds_the_oldest_of_who_has_most_in_it() {
    let admission = Admission::new(1, 3);
    let held = admission.enter("a", later()).await.unwrap();
    let outcomes = Mutex::new(Vec::new());
    let wait = async |name: &'static str, caller: &'static str| {
        let outcome = admission.enter(caller, later()).await.map(drop).map_err(|error| error.kind());
        outcomes.lock().unwrap().push((name, outcome));
    };
    let release = async {
        sleep(Duration::from_millis(5)).await;
        drop(held);
    };
    tokio::join!(wait("a1", "a"), wait("b1", "b"), wait("a2", "a"), wait("b2", "b"), wait("a3", "a"), release);
    let outcomes = outcomes.into_inner().unwrap();
    let shed: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).collect();
    assert_eq!(shed.len(), 2, "{outcomes:?}");
    assert!(
        shed.iter().all(|(name, outcome)| name.ends_with('1') && *outcome == Err(ErrorKind::Overloaded)),
        "{shed:?}"
    );
    assert!(is_idle(&admission));
}

#[tokio::test]
async fn who_waits_too_long_is_told_and_when_overloaded_sooner() {
    let admission = Admission::new(1, 1000);
    let held = admission.enter("a", later()).await.unwrap();
    let timed = async |deadline| {
        let began = Instant::now();
        let error = admission.enter("a", deadline).await.map(drop).unwrap_err();
        (error.kind(), began.elapsed())
    };
    let soon = Deadline::after(Duration::from_millis(1));
    assert_eq!(timed(soon).await.0, ErrorKind::Deadline);
    // Somebody waits all the time: the last to come finds the queue full for longer than a burst lasts.
    let after = async |bursts: f64| {
        sleep(LEAST_BURST.mul_f64(bursts)).await;
        timed(later()).await
    };
    let (first, second, third) = tokio::join!(after(0.0), after(0.6), after(1.2));
    assert_eq!((first.0, second.0, third.0), (ErrorKind::Overloaded, ErrorKind::Overloaded, ErrorKind::Overloaded));
    assert!(first.1 >= LEAST_BURST && second.1 >= LEAST_BURST, "{first:?} {second:?}");
    assert!(third.1 >= LEAST_DELAY && third.1 < LEAST_BURST, "{third:?}");
    let error = admission.overloaded("x").to_status();
    let retry = tonic_types::StatusExt::get_details_retry_info(&error).unwrap().retry_delay.unwrap();
    assert!(retry >= LEAST_DELAY, "{retry:?}");
    drop(held);
    assert!(is_idle(&admission));
}

#[tokio::test]
async fn who_goes_leaves_no_trace_and_no_place_is_lost() {
    let admission = Admission::new(3, 50);
    let mut tasks = Vec::new();
    for number in 0..400_u64 {
        let admission = admission.clone();
        tasks.push(tokio::spawn(async move {
            let caller = ["a", "b", "c"][number as usize % 3];
            let admitted = admission.enter(caller, Deadline::after(Duration::from_millis(number % 7))).await;
            sleep(Duration::from_micros(number % 11 * 100)).await;
            drop(admitted);
        }));
        if number % 5 == 0 {
            tasks.swap_remove(number as usize % tasks.len()).abort();
        }
        if number % 20 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
    for task in tasks {
        let _ = task.await;
    }
    tokio::task::yield_now().await;
    sleep(Duration::from_millis(20)).await;
    assert!(is_idle(&admission));
}

#[tokio::test]
async fn when_too_many_come_the_newest_goes_first() {
    let admission = Admission::new(1, 100);
    let held = admission.enter("a", later()).await.unwrap();
    {
        let mut state = admission.0.lock();
        for _ in 0..3 {
            // Whoever wakes them is not the matter here.
            let (wake, _) = oneshot::channel();
            state.push("a", wake);
        }
        assert_eq!(state.next().unwrap().number, 1, "the oldest, as long as the queue was empty lately");
        state.last_empty = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(state.next().unwrap().number, 3, "the newest");
        assert_eq!(state.next().unwrap().number, 2);
        assert!(state.next().is_none());
    }
    drop(held);
    assert!(is_idle(&admission));
}
