//! The side of a connection that is written to, with the changes of the tasks that it follows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::Write;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::executor::daemon::Daemon;
use crate::executor::schedule::queue::TaskEntry;
use crate::executor::threads::{locked, wait};
use crate::executor::{clock, json};
use crate::executor_protocol::state::TaskState;
use crate::limits::{EXECUTOR_PROGRESS_MS_MIN, FRONT_REPLIES_MAX};
use crate::task::id::TaskId;
use crate::wire::writer::ObjectWriter;

/// The side of a connection that is written to.
#[derive(Debug, Default)]
pub struct Outgoing {
    outgoing: Mutex<OutgoingState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct OutgoingState {
    replies: VecDeque<String>,
    /// The tasks that it follows, with what it was told of each last.
    followed: HashMap<TaskId, LastTold>,
    /// Those of them that have changed since.
    changed: HashSet<TaskId>,
    /// Grows with every addition, so that none is slept through.
    additions: u64,
    closed: bool,
}

#[derive(Debug, Clone, Copy)]
struct LastTold {
    seq: u64,
    state: Option<TaskState>,
    at: Option<Instant>,
}

impl Outgoing {
    /// Notes that a task has changed.
    pub fn touch(&self, id: TaskId) {
        let mut outgoing = locked(&self.outgoing);
        if outgoing.followed.contains_key(&id) {
            outgoing.changed.insert(id);
            outgoing.additions += 1;
            self.changed.notify_all();
        }
    }

    /// Follows a task from a state on, which the front is told in another way.
    pub fn follow(&self, id: TaskId, entry: &TaskEntry) {
        let told = LastTold {
            seq: entry.seq,
            state: Some(entry.state),
            at: None,
        };
        locked(&self.outgoing).followed.entry(id).or_insert(told);
    }

    /// Has a reply sent. A front that takes none has to wait with its next request.
    pub fn reply(&self, line: String) {
        let mut outgoing = locked(&self.outgoing);
        while outgoing.replies.len() >= FRONT_REPLIES_MAX && !outgoing.closed {
            outgoing = wait(&self.changed, outgoing);
        }
        outgoing.replies.push_back(line);
        outgoing.additions += 1;
        self.changed.notify_all();
    }

    /// Whether nothing is sent to it any more.
    pub fn is_closed(&self) -> bool {
        locked(&self.outgoing).closed
    }

    /// Has nothing sent to it any more.
    pub fn close(&self) {
        locked(&self.outgoing).closed = true;
        self.changed.notify_all();
    }

    /// The next line to send: a reply, or the change of a task. None when all is over.
    fn next(&self, daemon: &Daemon) -> Option<String> {
        loop {
            let (changed, additions) = {
                let mut outgoing = locked(&self.outgoing);
                if let Some(reply) = outgoing.replies.pop_front() {
                    self.changed.notify_all();
                    return Some(reply);
                }
                if outgoing.closed {
                    return None;
                }
                (outgoing.changed.clone(), outgoing.additions)
            };
            let mut patience = None;
            for id in changed {
                match self.update(daemon, id) {
                    Due::Now(line) => return Some(line),
                    Due::In(rest) => {
                        patience = Some(patience.map_or(rest, |least| rest.min(least)))
                    }
                    Due::Never => {}
                }
            }
            self.sleep(additions, patience);
        }
    }

    fn sleep(&self, additions: u64, patience: Option<Duration>) {
        let outgoing = locked(&self.outgoing);
        if outgoing.additions != additions || outgoing.closed {
            return;
        }
        // What woke it is looked at anew.
        match patience {
            Some(patience) => drop(self.changed.wait_timeout(outgoing, patience)),
            None => drop(self.changed.wait(outgoing)),
        }
    }

    /// The line that tells of a task's change, if it is time for it.
    fn update(&self, daemon: &Daemon, id: TaskId) -> Due {
        let queue = locked(&daemon.queue);
        let mut outgoing = locked(&self.outgoing);
        let (Some(entry), Some(told)) = (queue.get(id), outgoing.followed.get_mut(&id)) else {
            outgoing.changed.remove(&id);
            return Due::Never;
        };
        if entry.seq <= told.seq {
            outgoing.changed.remove(&id);
            return Due::Never;
        }
        let pause = Duration::from_millis(EXECUTOR_PROGRESS_MS_MIN);
        let rest = told
            .at
            .map_or(Duration::ZERO, |at| pause.saturating_sub(at.elapsed()));
        if told.state == Some(entry.state) && !rest.is_zero() {
            return Due::In(rest);
        }
        *told = LastTold {
            seq: entry.seq,
            state: Some(entry.state),
            at: Some(Instant::now()),
        };
        outgoing.changed.remove(&id);
        if entry.state.outcome().is_some() {
            outgoing.followed.remove(&id);
        }
        Due::Now(json::object(|message| {
            message.string("jsonrpc", "2.0");
            message.string("method", "task/update");
            message.object("params", |params| write_standing(params, entry));
        }))
    }
}

enum Due {
    Now(String),
    In(Duration),
    Never,
}

/// What is told of a task wherever it is told.
pub fn write_standing(object: &mut ObjectWriter<'_>, entry: &TaskEntry) {
    object.formatted("task_id", format_args!("{}", entry.task.id));
    object.unsigned("seq", entry.seq);
    object.string("state", entry.state.name());
    object.string("phase", &entry.phase);
    object.string("message", &entry.message);
    object.raw("progress", "null");
    object.string("updated_at", &clock::stamp(entry.updated_ms));
    let heard = entry.last_output_ms.map(clock::stamp);
    json::text_or_null(object, "last_output_at", heard.as_deref());
}

/// Sends what there is to send, to the end of the connection.
pub fn send(daemon: &Daemon, front: &Outgoing, mut writer: Box<dyn Write + Send>) {
    while let Some(mut line) = front.next(daemon) {
        line.push('\n');
        if writer
            .write_all(line.as_bytes())
            .and_then(|()| writer.flush())
            .is_err()
        {
            return front.close();
        }
    }
}
