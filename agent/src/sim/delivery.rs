//! One request's way back to its client: chunks written to the socket when they are due, stamped, logged, and broken off
//! where the script says so.

use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::oneshot;

use super::clock::{SimClock, SimTime, Stamp};
use super::config::Recording;
use super::http::Answer;
use super::log::{ChunkRecord, End, RequestRecord, SimLog};
use super::metrics::Finish;
use super::prompt::AskedUsage;
use super::render::{self, Field, Shape, Usage};
use super::script::{Behaviour, Cut, Misbehaviour};
use super::sequence::{More, What};
use super::text::Writer;
use super::wire::Wire;

/// What the connection gets back when the engine is done with a request: its write half, and what is still to be
/// written.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) half: OwnedWriteHalf,
    pub(super) pending: Vec<u8>,
    pub(super) then: Then,
}

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    KeepAlive,
    Close,
    Reset,
}

/// Where a request stands after some of its tokens were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Going,
    Over(End, Then),
}

/// How the answer goes out.
#[derive(Debug)]
pub(super) enum Form {
    Stream,
    /// All at once at the end; the text so far.
    Whole(Vec<u8>),
}

/// Everything the way back needs; made by the connection, used by the engine.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) log: SimLog,
    pub(super) serial: u64,
    pub(super) record: RequestRecord,
    pub(super) recording: Recording,
    pub(super) shape: Shape,
    pub(super) text: Writer,
    pub(super) behaviour: Behaviour,
    pub(super) usage: AskedUsage,
    pub(super) finish: Finish,
    pub(super) wire: Wire,
    pub(super) form: Form,
    pub(super) reply: oneshot::Sender<Reply>,
    pub(super) state: Written,
}

/// What has been rendered so far.
#[derive(Debug, Default)]
pub(super) struct Written {
    role: Role,
    /// Tokens rendered, held ones too.
    tokens: u64,
    /// Events rendered.
    events: u64,
    /// Rendered bytes that are held back to be glued together, and the tokens in them.
    held: Vec<u8>,
    held_chunks: Vec<(SimTime, u64)>,
    /// Scratch for one event.
    event: Vec<u8>,
    stalled: Stalled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Role {
    #[default]
    Unsent,
    Sent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stalled {
    #[default]
    No,
    ForEver,
}

impl Delivery {
    /// Notes or writes what happened; `due` is its time on the schedule.
    pub(super) fn happen(&mut self, what: What, due: SimTime, clock: &SimClock) -> Progress {
        match what {
            What::Admitted { cached_tokens } => {
                self.record.admitted = Some(due);
                self.record.cached_tokens = cached_tokens;
                let waited = due.since(self.record.received.simulated);
                self.record.queue_ns = u64::try_from(waited.as_nanos()).ok();
                Progress::Going
            }
            What::Prefilled { .. } => Progress::Going,
            What::Tokens { .. } if self.state.stalled == Stalled::ForEver => Progress::Going,
            What::Tokens { tokens, more, .. } => {
                self.tokens(tokens, more, due, clock).unwrap_or_else(|end| Progress::Over(end, Then::Close))
            }
        }
    }

    /// Sends the role-only chunk now, before any token.
    pub(super) fn early_role(&mut self, clock: &SimClock) -> Result<(), End> {
        self.role();
        self.flush(clock)
    }

    /// Closes the books and hands the connection back. What a client needs to see the end is `pending` until then, so
    /// whoever saw the end finds the whole record.
    pub(super) fn end(mut self, end: End, then: Then) {
        self.close_record(end);
        let Wire { half, mut pending } = self.wire;
        if let Form::Whole(text) = self.form {
            let answer = match (end, then) {
                (End::Completed, _) => {
                    let text = String::from_utf8_lossy(&text);
                    let usage = usage_of(&self.record, &self.behaviour, self.record.output_tokens);
                    let body = self.shape.whole(&text, finish_reason(self.finish, &self.behaviour), usage);
                    Some(Answer::bytes(200, "application/json", body))
                }
                (_, Then::KeepAlive) => {
                    Some(Answer::error(500, "InternalServerError", "the engine failed (simulated)"))
                }
                _ => None,
            };
            if let Some(answer) = answer {
                pending = Answer { request_id: Some(self.record.id), ..answer }.to_bytes();
            }
        }
        // Fails only when the connection is gone, and then nobody needs the reply.
        self.reply.send(Reply { half, pending, then }).ok();
    }

    /// Closes the books, once.
    pub(super) fn close_record(&mut self, end: End) {
        if self.record.end.is_some() {
            return;
        }
        self.record.end = Some(end);
        let chunk_log = std::mem::take(&mut self.record.chunk_log);
        self.log.update(self.serial, RequestRecord { chunk_log, ..self.record.clone() });
    }

    fn tokens(&mut self, tokens: u64, more: More, due: SimTime, clock: &SimClock) -> Result<Progress, End> {
        let cut = self.behaviour.cut();
        let before_cut = cut.map_or(u64::MAX, |(after, _)| after.saturating_sub(self.state.tokens));
        let allowed = tokens.min(before_cut);
        if allowed > 0 {
            self.chunk(allowed, more, due, clock)?;
        }
        if let Some((after, cut)) = cut
            && self.state.tokens >= after
        {
            return self.break_off(cut, clock);
        }
        if more == More::No {
            self.complete(clock)?;
            return Ok(Progress::Over(End::Completed, Then::KeepAlive));
        }
        Ok(Progress::Going)
    }

    /// Renders one chunk of tokens and writes it unless it is held back; the last one goes out with the stream's end.
    fn chunk(&mut self, tokens: u64, more: More, due: SimTime, clock: &SimClock) -> Result<(), End> {
        if let Form::Whole(text) = &mut self.form {
            self.text.write(tokens, text);
            self.state.tokens += tokens;
            self.account(due, tokens, clock.stamp(), clock);
            return Ok(());
        }
        if self.state.role == Role::Unsent {
            self.role();
            if self.behaviour.glued_events() == 1 {
                self.flush(clock)?;
            }
        }
        let field = self.field();
        self.state.tokens += tokens;
        let usage = (self.usage == AskedUsage::EveryChunk)
            .then(|| Usage { cached: None, ..usage_of(&self.record, &self.behaviour, self.state.tokens) });
        let mut event = std::mem::take(&mut self.state.event);
        let text = &mut self.text;
        self.shape.text(field, usage, |out| text.write(tokens, out), &mut event);
        self.state.event = event;
        self.put();
        self.state.held_chunks.push((due, tokens));
        if more == More::Yes && self.state.held_chunks.len() as u64 >= self.behaviour.glued_events() {
            self.flush(clock)?;
        }
        Ok(())
    }

    fn field(&self) -> Field {
        if self.behaviour.has(Misbehaviour::ToolCalls) {
            if self.state.tokens == 0 { Field::ToolCall } else { Field::ToolArguments }
        } else if self.state.tokens < self.behaviour.reasoning_tokens() {
            Field::Reasoning
        } else {
            Field::Content
        }
    }

    fn role(&mut self) {
        self.state.role = Role::Sent;
        let usage = (self.usage == AskedUsage::EveryChunk)
            .then(|| Usage { cached: None, ..usage_of(&self.record, &self.behaviour, 0) });
        self.shape.role(usage, &mut self.state.event);
        self.put();
    }

    /// Writes the end of a stream, after the books are closed: the last tokens and what follows them in one write, as
    /// packets that wait together keep only the last one's stamp.
    fn complete(&mut self, clock: &SimClock) -> Result<(), End> {
        if matches!(self.form, Form::Whole(_)) {
            return Ok(());
        }
        if self.behaviour.has(Misbehaviour::Split) {
            self.flush(clock)?;
        }
        let usage = usage_of(&self.record, &self.behaviour, self.state.tokens);
        let every = (self.usage == AskedUsage::EveryChunk).then_some(Usage { cached: None, ..usage });
        self.shape.finish(finish_reason(self.finish, &self.behaviour), every, &mut self.state.event);
        self.put();
        if self.usage != AskedUsage::None {
            self.shape.usage(usage, &mut self.state.event);
            self.put();
        }
        if !self.behaviour.has(Misbehaviour::NoDone) {
            self.state.event.extend_from_slice(render::DONE);
            self.put();
        }
        self.state.held.extend_from_slice(render::LAST_CHUNK);
        self.book(clock.stamp(), clock);
        self.close_record(End::Completed);
        self.flush(clock)
    }

    fn break_off(&mut self, cut: Cut, clock: &SimClock) -> Result<Progress, End> {
        self.flush(clock)?;
        Ok(match cut {
            Cut::Stall => {
                self.state.stalled = Stalled::ForEver;
                Progress::Going
            }
            Cut::Reset => Progress::Over(End::Scripted, Then::Reset),
            Cut::Close => Progress::Over(End::Scripted, Then::Close),
            Cut::ErrorEvent => {
                for event in [render::ERROR, render::DONE] {
                    self.state.event.extend_from_slice(event);
                    self.put();
                }
                self.state.held.extend_from_slice(render::LAST_CHUNK);
                self.close_record(End::Scripted);
                self.flush(clock)?;
                Progress::Over(End::Scripted, Then::KeepAlive)
            }
        })
    }

    /// Moves the rendered event to the held bytes, framed.
    fn put(&mut self) {
        if self.state.event.is_empty() {
            return;
        }
        if self.behaviour.has(Misbehaviour::Comments) {
            render::chunk(render::COMMENT, &mut self.state.held);
        }
        render::chunk(&self.state.event, &mut self.state.held);
        self.state.event.clear();
        self.state.events += 1;
    }

    /// Writes the held bytes, and books the tokens in them with a stamp from right before the write that completes them.
    fn flush(&mut self, clock: &SimClock) -> Result<(), End> {
        let wire = &mut self.wire;
        if matches!(self.form, Form::Whole(_)) {
            self.state.held.clear();
            return Ok(());
        }
        let held = std::mem::take(&mut self.state.held);
        let mut rest = held.as_slice();
        if self.behaviour.has(Misbehaviour::Split) && held.len() > 1 {
            let cut = 1 + (self.state.events as usize * 7) % (held.len() - 1);
            let (first, second) = held.split_at(cut);
            wire.send(first)?;
            rest = second;
        }
        let stamp = clock.stamp();
        let sent = wire.send(rest);
        self.state.held = held;
        self.state.held.clear();
        sent?;
        self.book(stamp, clock);
        Ok(())
    }

    /// Books the held tokens as sent at `stamp`.
    fn book(&mut self, stamp: Stamp, clock: &SimClock) {
        let mut chunks = std::mem::take(&mut self.state.held_chunks);
        for (due, tokens) in chunks.drain(..) {
            self.account(due, tokens, stamp, clock);
        }
        self.state.held_chunks = chunks;
    }

    fn account(&mut self, due: SimTime, tokens: u64, sent: Stamp, clock: &SimClock) {
        let record = &mut self.record;
        record.output_tokens += tokens;
        record.chunks += 1;
        record.last_token = Some(sent);
        record.max_lateness_ns = record.max_lateness_ns.max(clock.lateness_ns(&sent, due));
        if self.recording == Recording::EveryChunk {
            record.chunk_log.push(ChunkRecord { due, sent, tokens });
        }
        if record.first_token.is_none() {
            record.first_token = Some(sent);
            self.log.update(self.serial, record.clone());
        }
    }
}

fn usage_of(record: &RequestRecord, behaviour: &Behaviour, completion: u64) -> Usage {
    if behaviour.has(Misbehaviour::ZeroUsage) {
        return Usage { prompt: 0, completion: 0, cached: Some(0) };
    }
    Usage { prompt: record.prompt_tokens, completion, cached: Some(record.cached_tokens) }
}

fn finish_reason(finish: Finish, behaviour: &Behaviour) -> &'static str {
    match finish {
        _ if behaviour.has(Misbehaviour::ToolCalls) => "tool_calls",
        Finish::Length => "length",
        Finish::Stop | Finish::Abort => "stop",
    }
}
