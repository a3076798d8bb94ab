//! Cold prompts beside decoding requests (method §4): how long a new user waits while others are served, and what they
//! notice of it.

use speedmatrix_shared::{
    id::CellId,
    plan,
    raw::Prompts,
    stats::window::Window,
    trace::RequestFailure,
    units::{Context, Nanos},
};

use super::{
    Bench, Halt,
    cell::Book,
    single::{Single, failure},
    supply::Supply,
};

/// Cold prompts in a window, evenly spread; one that is due while another is still read is left out.
const PROMPTS: u64 = 5;

/// The cold prompts of a cell.
#[derive(Debug)]
pub(super) struct ColdPrompts {
    single: Single,
    supply: Supply,
    /// What came of them.
    pub(super) seen: Prompts,
}

impl ColdPrompts {
    /// Why the prompt on the idle server was of no use, if it was not.
    pub(super) fn failure(&self) -> Option<&RequestFailure> {
        self.seen.alone.iter().find_map(failure)
    }

    /// Sends them one after the other, each `gap` after the one before was due.
    async fn arrive(&mut self, start: Nanos, gap: Nanos) {
        for number in 1..=PROMPTS {
            let due = start + Nanos(gap.0 * number);
            let clock = self.single.clock();
            if clock.now() > due {
                continue;
            }
            let body = self.supply.next().await;
            clock.sleep_until(due).await;
            self.seen.arriving.push(self.single.send(0, body).await);
        }
    }
}

impl Bench {
    /// The context of the prompts in the slots of a cell: its own, or that of its background.
    pub(super) fn slot_context(&self, cell: CellId) -> Context {
        match self.plan.load() {
            plan::Load::Mixed { background } => background,
            plan::Load::Sustained | plan::Load::Burst { .. } | plan::Load::Open(_) => cell.context,
        }
    }

    /// The cold prompts of a mixed cell, the first of them sent to the idle server; `None` under any other load.
    pub(super) async fn cold_prompts(&mut self, cell: CellId) -> Result<Option<ColdPrompts>, Halt> {
        if !matches!(self.plan.load(), plan::Load::Mixed { .. }) {
            return Ok(None);
        }
        let recipe = self.recipe(cell.context, 1).await?;
        let Some(mut supply) = self.fresh_supplies(&recipe, &bytes::Bytes::new(), 1).pop() else { return Ok(None) };
        let mut single = self.single()?.with_idle_limit(self.idle_limit(cell));
        let alone = single.send_patiently(0, supply.next().await).await;
        let seen = Prompts { alone: vec![alone], arriving: Vec::new() };
        Ok(Some(ColdPrompts { single, supply, seen }))
    }

    /// A window in which `prompts` arrive. It ends as planned, or later: as long after the last of them as they are apart.
    pub(super) async fn window_with(
        &self,
        window: &mut Window,
        prompts: &mut ColdPrompts,
        book: &mut Book,
    ) -> Result<(), RequestFailure> {
        let gap = Nanos(self.plan.duration().0 / (PROMPTS + 1));
        {
            let mut arriving = std::pin::pin!(prompts.arrive(window.start, gap));
            loop {
                tokio::select! {
                    () = &mut arriving => break,
                    Some(ended) = book.load.ended.recv() => book.note(ended)?,
                }
            }
        }
        window.end = window.end.max(self.clock.now() + gap);
        self.window(*window, book).await
    }
}
