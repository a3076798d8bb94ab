//! The cells of a run in their order: each once a round or as often as it takes, and each in a turn of its own.

use speedmatrix_shared::{
    id::{CellId, Phase},
    plan::{CellOrder, Prefill},
    trace::RequestTrace,
    units::{Concurrency, Context},
};

use super::{
    Bench, Halt, steer,
    tally::Tally,
    turns::{Place, Wish},
};

impl Bench {
    /// Measures a prefill cell, unless it comes from the warm-up of a decode cell.
    pub(super) async fn first_prefill(&mut self, cell: CellId, place: Place) -> Result<(), Halt> {
        // As it was before the run went on.
        if self.tallies.contains_key(&cell) {
            return Ok(());
        }
        // Those from warm-up finish right before the first decode cell of their context.
        if *self.plan.prefill() == Prefill::FromWarmUp {
            self.from_warm_up.insert(cell.context);
            return Ok(());
        }
        let Some(turn) = self.turn(cell, place, Wish::Measure).await else { return Ok(()) };
        tokio::select! {
            biased;
            () = steer::skip_of(self.steering.clone(), cell) => self.leave(cell).await?,
            done = self.prefill_cell(cell) => done?,
        }
        self.hand_over(turn).await
    }

    /// Measures a decode cell once, or as often as it takes, as the plan has it; not at all where that is settled.
    pub(super) async fn decode_round(&mut self, cell: CellId, mut place: Place) -> Result<(), Halt> {
        loop {
            let (is_settled, has_prefill) = (self.is_settled(cell), self.from_warm_up.contains(&cell.context));
            // What is given up here may go on elsewhere; it is not asked for again.
            if matches!(self.tallies.get(&cell), Some(Tally::GivenUp)) && !has_prefill {
                return Ok(());
            }
            let wish = if is_settled && !has_prefill { Wish::Enough } else { Wish::Measure };
            let Some(turn) = self.turn(cell, place, wish).await else { return Ok(()) };
            self.may_go_on().await?;
            let scout = self.waiting_prefill(cell.context).await?;
            // A run that goes on may lack no more than the prefill row.
            if !(has_prefill && is_settled) {
                tokio::select! {
                    biased;
                    () = steer::skip_of(self.steering.clone(), cell) => self.leave(cell).await?,
                    done = self.decode_cell(cell, scout) => done?,
                }
            }
            self.hand_over(turn).await?;
            if self.plan.order() == CellOrder::Interleaved {
                return Ok(());
            }
            place.repeat += 1;
        }
    }

    /// Measures the prefill row that waits for the first decode cell of its context.
    async fn waiting_prefill(&mut self, context: Context) -> Result<Option<RequestTrace>, Halt> {
        if !self.from_warm_up.remove(&context) {
            return Ok(None);
        }
        let cell = CellId { phase: Phase::Prefill, context, concurrency: Concurrency::ONE };
        tokio::select! {
            biased;
            () = steer::skip_of(self.steering.clone(), cell) => self.leave(cell).await.map(|()| None),
            warm_up = self.prefill_from_warm_up(context) => warm_up,
        }
    }

    fn is_settled(&self, cell: CellId) -> bool {
        match self.tallies.get(&cell) {
            None => false,
            Some(Tally::GivenUp) => true,
            Some(Tally::Speeds(speeds)) => self.plan.repeats().are_enough(speeds),
        }
    }
}
