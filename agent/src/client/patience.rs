//! Waiting for one request's steps, unless it is cut or falls silent. Both almost never happen, so neither is asked about
//! at each read.

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

/// Why waiting ended without what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupt {
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

impl Bell {
    /// Rung from the start, so that the rare ones are polled once and know whom to wake.
    fn new(task: &Waker) -> Arc<Self> {
        Arc::new(Self { task: task.clone(), rung: AtomicBool::new(true) })
    }
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
pub(super) struct Patience {
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    silence: Pin<Box<Sleep>>,
    limit: Duration,
    began: Instant,
    bell: Option<Arc<Bell>>,
}

/// Something with steps and signs of life.
pub(super) trait Step {
    /// What it comes to.
    type Done;

    /// As [`Future::poll`].
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Self::Done>;

    /// Its latest sign of life.
    fn last_sign(&self) -> Instant;
}

impl Patience {
    /// Until `cut` is cancelled, or for `limit` of silence at a time.
    pub(super) fn new(cut: &CancellationToken, limit: Duration) -> Self {
        let began = Instant::now();
        Self {
            cut: Box::pin(cut.clone().cancelled_owned()),
            silence: Box::pin(tokio::time::sleep(limit)),
            limit,
            began,
            bell: None,
        }
    }

    /// Polls `step` to its end, unless it is interrupted.
    pub(super) async fn wait<S: Step>(&mut self, step: &mut S) -> Result<S::Done, Interrupt> {
        std::future::poll_fn(|cx| match step.poll(cx) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => self.poll_rare(cx, step).map(Err),
        })
        .await
    }

    fn poll_rare(&mut self, cx: &Context<'_>, step: &impl Step) -> Poll<Interrupt> {
        if !self.bell.as_ref().is_some_and(|bell| bell.task.will_wake(cx.waker())) {
            self.bell = Some(Bell::new(cx.waker()));
        }
        let Some(bell) = &self.bell else { return Poll::Pending };
        // Most polls end here: by a look, as a swap would cost more than all of the above.
        if bell.rung.load(SeqCst) {
            bell.rung.store(false, SeqCst);
            let waker = Waker::from(Arc::clone(bell));
            let mut cx = Context::from_waker(&waker);
            if self.cut.as_mut().poll(&mut cx).is_ready() {
                return Poll::Ready(Interrupt::Cut);
            }
            // A task that has used up its turn finds everything pending, and is called again at once: asking on in this
            // very poll would never end.
            while self.silence.as_mut().poll(&mut cx).is_ready() {
                let deadline = step.last_sign().max(self.began) + self.limit;
                if Instant::now() >= deadline {
                    return Poll::Ready(Interrupt::Silent);
                }
                self.silence.as_mut().reset(deadline.into());
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses up its turn at each of some polls.
    struct Busy {
        polls: u8,
    }

    impl Step for Busy {
        type Done = ();

        fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            while std::pin::pin!(tokio::task::coop::consume_budget()).poll(cx).is_ready() {}
            self.polls -= 1;
            if self.polls == 0 { Poll::Ready(()) } else { Poll::Pending }
        }

        fn last_sign(&self) -> Instant {
            Instant::now()
        }
    }

    #[tokio::test]
    async fn a_step_that_uses_up_its_turn_is_called_again() {
        let cut = CancellationToken::new();
        let mut patience = Patience::new(&cut, Duration::from_hours(1));
        assert_eq!(patience.wait(&mut Busy { polls: 5 }).await, Ok(()));
    }
}
