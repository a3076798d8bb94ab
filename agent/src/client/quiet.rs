//! Two wakers that spare polls. The connection and the reader of its body live in one task and wake each other at each
//! frame; and two things that almost never happen, being cut and falling silent, need not be asked about at each frame.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::stamped::Notes;

/// Rounds before the task is woken after all: what wakes itself anew each time wants to yield (tokio's budget, hyper's).
const MOST_ROUNDS: u32 = 8;

/// Keeps wakes that come while the task is polling anyway from waking it once more.
#[derive(Debug)]
pub(crate) struct Quiet {
    task: Waker,
    polling: AtomicBool,
    again: AtomicBool,
}

impl Quiet {
    fn new(task: Waker) -> Arc<Self> {
        Arc::new(Self { task, polling: AtomicBool::new(false), again: AtomicBool::new(false) })
    }

    /// Polls `work` until it is ready, or pending with nothing left to do.
    fn poll<T>(self: &Arc<Self>, waker: &Waker, mut work: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let mut cx = Context::from_waker(waker);
        self.polling.store(true, SeqCst);
        let mut polled = Poll::Pending;
        for _ in 0..MOST_ROUNDS {
            self.again.store(false, SeqCst);
            polled = work(&mut cx);
            if polled.is_ready() || !self.again.load(SeqCst) {
                break;
            }
        }
        self.polling.store(false, SeqCst);
        // A wake from another thread may have come between the last look and the line above; that it is seen either
        // here or by the waker is why both flags are sequentially consistent.
        if polled.is_pending() && self.again.load(SeqCst) {
            self.task.wake_by_ref();
        }
        polled
    }
}

impl Wake for Quiet {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.again.store(true, SeqCst);
        if !self.polling.load(SeqCst) {
            self.task.wake_by_ref();
        }
    }
}

/// Why waiting ended without what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// We were told to stop.
    Cut,
    /// Nothing came for longer than the idle limit.
    Silent,
}

/// Notices that something rare wants to be polled.
#[derive(Debug)]
struct Bell {
    task: Waker,
    rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, SeqCst);
        self.task.wake_by_ref();
    }
}

/// Waits for one request's steps.
#[derive(Debug)]
pub(crate) struct Patience {
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    silence: Pin<Box<Sleep>>,
    limit: Duration,
    began: Instant,
    wakers: Option<Wakers>,
}

#[derive(Debug)]
struct Wakers {
    task: Waker,
    quiet: Arc<Quiet>,
    quiet_waker: Waker,
    bell: Arc<Bell>,
    bell_waker: Waker,
}

impl Wakers {
    fn new(task: &Waker) -> Self {
        let quiet = Quiet::new(task.clone());
        // Rung from the start, so that the rare ones are polled once and know whom to wake.
        let bell = Arc::new(Bell { task: task.clone(), rung: AtomicBool::new(true) });
        Self {
            task: task.clone(),
            quiet_waker: Waker::from(Arc::clone(&quiet)),
            quiet,
            bell_waker: Waker::from(Arc::clone(&bell)),
            bell,
        }
    }
}

impl Patience {
    /// Until `cut` is cancelled, or for `limit` of silence at a time.
    pub(crate) fn new(cut: &CancellationToken, limit: Duration) -> Self {
        let began = Instant::now();
        Self {
            cut: Box::pin(cut.clone().cancelled_owned()),
            silence: Box::pin(tokio::time::sleep(limit)),
            limit,
            began,
            wakers: None,
        }
    }

    /// Polls `work` to its end, unless it is interrupted.
    pub(crate) async fn wait<T>(
        &mut self,
        notes: &Notes,
        mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Interrupt> {
        std::future::poll_fn(|cx| {
            let wakers = match &mut self.wakers {
                Some(wakers) if wakers.task.will_wake(cx.waker()) => wakers,
                other => other.insert(Wakers::new(cx.waker())),
            };
            if let Poll::Ready(done) = wakers.quiet.poll(&wakers.quiet_waker, &mut work) {
                return Poll::Ready(Ok(done));
            }
            while wakers.bell.rung.swap(false, SeqCst) {
                let mut cx = Context::from_waker(&wakers.bell_waker);
                if self.cut.as_mut().poll(&mut cx).is_ready() {
                    return Poll::Ready(Err(Interrupt::Cut));
                }
                if self.silence.as_mut().poll(&mut cx).is_pending() {
                    continue;
                }
                let deadline = notes.last_sign().max(self.began) + self.limit;
                if Instant::now() >= deadline {
                    return Poll::Ready(Err(Interrupt::Silent));
                }
                self.silence.as_mut().reset(deadline.into());
                wakers.bell.rung.store(true, SeqCst);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Debug, Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn a_wake_while_polling_polls_again_and_wakes_nobody() {
        let wakes = Arc::new(Count::default());
        let quiet = Quiet::new(Waker::from(Arc::clone(&wakes)));
        let own_waker = Waker::from(Arc::clone(&quiet));
        let mut polls = 0;
        let polled = quiet.poll(&own_waker, |cx| {
            polls += 1;
            if polls < 3 {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((polls, wakes.0.load(SeqCst)), (3, 0));
        own_waker.wake_by_ref();
        assert_eq!(wakes.0.load(SeqCst), 1, "a wake from outside goes through");
        let endless = quiet.poll(&own_waker, |cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(endless.is_pending());
        assert_eq!(wakes.0.load(SeqCst), 2, "work that never rests yields");
    }
}
