//! One run of a plan, twice over: the real engine and the real loop in the simulated system.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rocco::internals::event_loop::run::drive_busily;
use rocco::internals::event_loop::{Ended, Failure};

use super::expect::Fault;
use super::memory::{self, Scope};
use super::oracle::Oracle;
use super::plan::{Doom, Plan};
use super::server;
use super::transport::{Counts, World};

/// What a server may hold after a session beside its ring and its outbox.
pub const KEPT_BYTES_MAX: usize = 1 << 20;

/// What a run that went well has done.
#[derive(Debug, Default, Clone, Copy)]
pub struct Report {
    pub hash: u64,
    pub counts: Counts,
    pub replies: u64,
    pub lines: u64,
}

/// Runs a plan twice, and demands that both runs are the same to the last byte.
pub fn twice(plan: &Plan, validates: bool) -> Result<Report, Fault> {
    let first = once(plan, validates)?;
    let second = once(plan, false)?;
    if first.hash == second.hash {
        Ok(first)
    } else {
        Err("two runs of the seed differ".to_owned())
    }
}

/// Runs a plan. A panic of the server is a fault like any other.
pub fn once(plan: &Plan, validates: bool) -> Result<Report, Fault> {
    memory::start_over();
    let run = catch_unwind(AssertUnwindSafe(|| session(plan, validates)));
    run.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("without words")))
    })
}

fn session(plan: &Plan, validates: bool) -> Result<Report, Fault> {
    let server = Scope::server();
    let mut engine = server::engine();
    let mut world = {
        let _system = Scope::system();
        World::new(plan, Oracle::new(validates))
    };
    let ended = drive_busily(&mut engine, &mut world, plan.busy_poll());
    drop(server);
    if let Some(fault) = world.fault.take() {
        return Err(fault);
    }
    verdict(&world, &ended)?;
    let kept_bytes = memory::live_bytes().saturating_sub(world.base_bytes());
    if kept_bytes > KEPT_BYTES_MAX {
        return Err(format!("{kept_bytes} bytes are kept at the end"));
    }
    Ok(Report {
        hash: world.trace.hash(),
        counts: world.counts,
        replies: world.oracle.replies,
        lines: plan.kept.len() as u64,
    })
}

/// Whether a run has ended as it had to.
fn verdict(world: &World, ended: &Result<Ended, Failure>) -> Result<(), Fault> {
    let right = match ended {
        Ok(Ended::Input) => {
            world.oracle.settled()?;
            world.ended() && world.all_read()
        }
        Ok(Ended::Reader) => world.met(Doom::ReaderGone),
        Ok(Ended::Signal) => world.met(Doom::Signal),
        Err(Failure::Read(_)) => world.met(Doom::ReadFails),
        Err(Failure::Write(_)) => world.met(Doom::WriteFails),
        Err(Failure::Wait(_)) => world.met(Doom::WaitFails),
        Err(Failure::Stalled { unsent_bytes }) => world.may_stall(*unsent_bytes),
        // Only the transport of production says anything else, such as `Busy`.
        _ => false,
    };
    right
        .then_some(())
        .ok_or_else(|| format!("it ended with {ended:?}"))
}
