//! What happens when nothing comes: deadlines, connections that end and are opened again, and word
//! to those who wait.

use crate::executor_client::dispatcher::{Dispatcher, Purpose, RefusalReason, Stage};
use crate::executor_client::errors::{Absence, ToolRefusal, text};
use crate::executor_client::link::LinkState;
use crate::executor_client::responses::StatusLine;
use crate::executor_client::task_update::ShortMessage;
use crate::executor_protocol::error_code::TaskErrorCode;
use crate::limits::{
    EXECUTOR_CALL_MS, EXECUTOR_DRAIN_MS, EXECUTOR_PROGRESS_MS, EXECUTOR_PROGRESS_MS_MIN,
};
use crate::mcp::delegate::Replies;

impl Dispatcher {
    /// Sets the time since some start.
    pub fn set_time(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// When something is due.
    pub fn deadline_ms(&self) -> Option<u64> {
        if self.pending.is_empty() {
            return None;
        }
        let link = match self.link.state() {
            LinkState::Down { retry_at_ms } => Some(retry_at_ms),
            LinkState::Greeting { until_ms } => Some(until_ms),
            LinkState::Up(_) => None,
        };
        let waits = self
            .pending
            .iter()
            .filter_map(|pending| match pending.stage {
                Stage::Asked { until_ms } => until_ms,
                Stage::Refused(_) => Some(self.now_ms),
                Stage::Waiting {
                    changed,
                    look_at_ms,
                } => {
                    let word_ms = match changed {
                        true => pending.quiet_until_ms,
                        false => pending.alive_at_ms,
                    };
                    let due_ms = word_ms.min(wait_until(pending.purpose));
                    Some(look_at_ms.map_or(due_ms, |look_at_ms| due_ms.min(look_at_ms)))
                }
            });
        waits.chain(link).chain(self.ending_ms).min()
    }

    /// Whether a connection is to be opened: there is none, somebody waits for it, and the last
    /// failure is long enough ago.
    pub fn wants_open(&self) -> bool {
        match self.link.state() {
            LinkState::Down { retry_at_ms } => {
                retry_at_ms <= self.now_ms && !self.pending.is_empty()
            }
            _ => false,
        }
    }

    /// A connection was opened.
    pub fn opened(&mut self) {
        let serial = self.serial();
        let hello = super::hello(serial, self.settings.version, self.settings.depth);
        self.link.open(&hello, serial, self.now_ms);
    }

    /// The executor has said hello: what waited for it is sent, and must be answered in time.
    pub fn is_up(&mut self) {
        let Some(features) = self.link.features() else {
            unreachable!("it has just said what it offers")
        };
        let first_deadline = self.call_deadline();
        for pending in &mut self.pending {
            let refused = match pending.purpose {
                Purpose::List if !features.list => Some(RefusalReason::NoList),
                Purpose::Page(_) if !features.page => Some(RefusalReason::NoPages),
                _ => None,
            };
            if let Some(why) = refused {
                self.link.unanswered.answer(pending.serial);
                pending.stage = Stage::Refused(why);
            } else if let Stage::Asked { until_ms } = &mut pending.stage {
                *until_ms = (*until_ms).or(first_deadline);
            }
        }
    }

    /// There is no connection any more, or none could be had. Whoever was never heard by an
    /// executor is told at once; the others are asked for again on the next connection.
    pub fn lost(&mut self, refusal: ToolRefusal) {
        let greeting = matches!(self.link.state(), LinkState::Greeting { .. });
        let refusal = match refusal.absence {
            Some(Absence::Lost) if greeting => {
                let why = refusal.what.as_str();
                let why = format_args!("the executor did not say hello: {why}");
                ToolRefusal::absent(Absence::HandshakeFailed, why)
            }
            _ => refusal,
        };
        self.link.close(refusal, self.now_ms);
        let until_ms = Some(self.now_ms + EXECUTOR_CALL_MS);
        for index in 0..self.pending.len() {
            match self.pending[index].stage {
                Stage::Waiting { .. } => {
                    self.ask_again(index);
                    self.pending[index].stage = Stage::Asked { until_ms };
                }
                // It waits for a first connection, and this one was to be that.
                Stage::Asked { until_ms: None } => {
                    let pending = &mut self.pending[index];
                    self.link.unanswered.answer(pending.serial);
                    pending.stage = Stage::Refused(RefusalReason::Absent);
                }
                Stage::Asked { .. } | Stage::Refused(_) => {}
            }
        }
    }

    /// The client says no more.
    pub fn end_of_input(&mut self) {
        self.ending_ms = Some(self.now_ms + EXECUTOR_DRAIN_MS);
    }

    /// Does what is due, while the client reads.
    pub fn advance(&mut self, replies: &mut Replies<'_>) {
        if let LinkState::Greeting { until_ms } = self.link.state()
            && until_ms <= self.now_ms
        {
            let refusal = ToolRefusal::absent(Absence::HandshakeFailed, format_args!("{NO_HELLO}"));
            self.lost(refusal);
        }
        let mut index = 0;
        while index < self.pending.len() && replies.is_open() {
            let pending = self.pending[index];
            let ending = self
                .ending_ms
                .is_some_and(|ending_ms| ending_ms <= self.now_ms);
            match pending.stage {
                Stage::Refused(why) => {
                    let refusal = self.refusal(why);
                    self.give_up(index, &refusal, replies);
                    continue;
                }
                Stage::Asked { until_ms } => {
                    if ending || until_ms.is_some_and(|until_ms| until_ms <= self.now_ms) {
                        let refusal = self.silence(index);
                        self.give_up(index, &refusal, replies);
                        continue;
                    }
                }
                Stage::Waiting { look_at_ms, .. } => {
                    let until_ms = wait_until(pending.purpose);
                    if self.ending_ms.is_some() || until_ms <= self.now_ms {
                        self.say_how_it_stands(index, replies);
                        continue;
                    }
                    self.say_that_it_works(index, replies);
                    if look_at_ms.is_some_and(|look_at_ms| look_at_ms <= self.now_ms) {
                        self.ask_again(index);
                    }
                }
            }
            index += 1;
        }
    }

    /// Answers one who has waited long enough with what is known.
    fn say_how_it_stands(&mut self, index: usize, replies: &mut Replies<'_>) {
        let pending = self.pending.swap_remove(index);
        let snapshot = pending.task.and_then(|task| self.snapshots.get(task));
        match snapshot {
            Some(snapshot) => replies.answer(pending.handle, |reply| {
                reply.structured(|result| {
                    crate::executor_client::responses::status_members(result, snapshot)
                })
            }),
            None => {
                let what = format_args!("nothing more is known of the task here");
                let refusal =
                    ToolRefusal::new(TaskErrorCode::ExecutorTimeout, what).of_task(pending.task);
                replies.answer(pending.handle, |reply| refusal.write(reply));
            }
        }
    }

    /// Tells one who waits, and wants to hear of it, what has happened, or that nothing has.
    fn say_that_it_works(&mut self, index: usize, replies: &mut Replies<'_>) {
        let now_ms = self.now_ms;
        let pending = &mut self.pending[index];
        let Stage::Waiting { changed, .. } = &mut pending.stage else {
            unreachable!("only who waits is told")
        };
        let due = (*changed && pending.quiet_until_ms <= now_ms) || pending.alive_at_ms <= now_ms;
        if !due {
            return;
        }
        *changed = false;
        pending.quiet_until_ms = now_ms + EXECUTOR_PROGRESS_MS_MIN;
        pending.alive_at_ms = now_ms + EXECUTOR_PROGRESS_MS;
        let snapshot = pending.task.and_then(|task| self.snapshots.get(task));
        if let Some(snapshot) = snapshot.filter(|_| replies.wants_progress(pending.handle)) {
            let line = text(format_args!("{}", StatusLine(snapshot)));
            let line = ShortMessage::new(line.as_str());
            replies.progress(pending.handle, line.as_str());
        }
    }

    /// Why nothing was heard of a question in time.
    fn silence(&self, index: usize) -> ToolRefusal {
        let pending = self.pending[index];
        let heard = self.link.unanswered.has_left(pending.serial);
        let Some(task) = pending
            .task
            .filter(|_| pending.purpose == Purpose::Submit && heard)
        else {
            return match self.link.state() {
                LinkState::Up(_) => {
                    let what = format_args!("the executor gave no word within 2 seconds");
                    ToolRefusal::new(TaskErrorCode::ExecutorTimeout, what).of_task(pending.task)
                }
                LinkState::Down { .. } => self.link.absence(),
                LinkState::Greeting { .. } => {
                    let why = format_args!("the executor has not answered hello yet");
                    ToolRefusal::absent(Absence::HandshakeFailed, why)
                }
            };
        };
        let what = format_args!(
            "the executor gave no word within 2 seconds, and may have taken the task as {task}"
        );
        ToolRefusal::new(TaskErrorCode::ExecutorTimeout, what).of_task(Some(task))
    }

    /// Tells one that nothing will come of it.
    fn give_up(&mut self, index: usize, refusal: &ToolRefusal, replies: &mut Replies<'_>) {
        let pending = self.pending.swap_remove(index);
        self.link.unanswered.answer(pending.serial);
        self.refuse(
            pending.purpose,
            pending.handle,
            pending.task,
            refusal,
            replies,
        );
    }
}

/// When a call that waits is answered in any case.
fn wait_until(purpose: Purpose) -> u64 {
    match purpose {
        Purpose::Status { wait_until_ms } => wait_until_ms,
        _ => unreachable!("only a status waits"),
    }
}

/// What is said of an executor that does not answer hello in its time.
pub const NO_HELLO: &str = "the executor did not answer hello within 5 seconds";

const _: () = assert!(EXECUTOR_CALL_MS == 2_000 && crate::limits::EXECUTOR_HELLO_MS == 5_000);
