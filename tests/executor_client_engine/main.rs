//! Port, session and engine in one process, without input, output or a clock: an executor and a
//! client are made up, and every request gets one reply within its time, whatever they do.

#[path = "../support/mod.rs"]
mod support;

mod world;

use proptest::prelude::*;
use support::cases::config;
use world::{Call, Move, World};

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (0..3_usize).prop_map(Call::Submit),
        3 => (0..4_usize, 0..46_u64).prop_map(|(task, wait_s)| Call::Status(task, wait_s)),
        1 => Just(Call::List),
        1 => (0..4_usize).prop_map(Call::Page),
        1 => (0..4_usize).prop_map(Call::Cancel),
        2 => (0..4_usize).prop_map(Call::TaskGet),
        1 => (0..4_usize).prop_map(Call::TaskUpdate),
        1 => (0..4_usize).prop_map(Call::TaskCancel),
    ]
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => call().prop_map(Move::Ask),
        1 => any::<usize>().prop_map(Move::CancelRequest),
        1 => any::<usize>().prop_map(Move::AskTwice),
        8 => (any::<usize>(), 0..14_usize).prop_map(|(which, how)| Move::Answer(which, how)),
        4 => (0..4_usize, 0..12_u64, 0..11_usize)
            .prop_map(|(task, seq, state)| Move::Update(task, seq, state)),
        2 => (0..world::GARBAGE.len()).prop_map(Move::Garbage),
        2 => any::<bool>().prop_map(Move::Available),
        1 => Just(Move::HangUp),
        4 => prop_oneof![0..300_u64, 1_000..6_000_u64].prop_map(Move::Pass),
        2 => any::<bool>().prop_map(Move::ClientReads),
        3 => prop_oneof![Just(0_usize), 1..40_usize, Just(usize::MAX)]
            .prop_map(Move::ExecutorReads),
    ]
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn every_request_gets_one_reply_whatever_an_executor_does(
        moves in prop::collection::vec(any_move(), 1..80),
        ends in any::<bool>(),
    ) {
        let mut world = World::new();
        for each in moves {
            world.play(each);
        }
        world.settle(ends);
    }

    #[test]
    fn whoever_waits_for_a_task_hears_of_its_end_at_once(
        calls in prop::collection::vec((0..4_usize, 0..46_u64), 1..12),
        turns in prop::collection::vec((0..4_usize, any::<usize>(), any::<bool>()), 1..40),
        progress in any::<bool>(),
    ) {
        let mut world = World::honest(progress);
        world.play(Move::Available(true));
        for _ in 0..4 {
            world.play(Move::Ask(Call::Submit(0)));
        }
        let mut calls = calls.into_iter();
        for (task, which, late) in turns {
            if let Some((task, wait_s)) = calls.next() {
                world.play(Move::Ask(Call::Status(task, wait_s)));
            }
            world.work(task, which, late);
        }
        world.finish_all();
        let patience_ms = if progress { 0 } else { 2_000 };
        world.everybody_is_told_within(patience_ms);
    }
}

/// The bounds of calls and of waits, and what comes when both are reached.
#[test]
fn the_sixty_fifth_call_and_the_thirty_third_wait_are_refused() {
    let mut world = World::new();
    world.play(Move::Available(true));
    world.play(Move::Answer(0, 0));
    for _ in 0..64 {
        world.play(Move::Ask(Call::List));
    }
    for _ in 0..32 {
        world.play(Move::Ask(Call::Status(0, 45)));
    }
    assert_eq!(world.replies(), 0);
    for call in [Call::List, Call::Status(0, 45), Call::Submit(0)] {
        world.play(Move::Ask(call));
        assert_eq!(world.last_code(), Some("queue_full"));
    }
    world.settle(false);
}

/// A submit that was refused since nobody was there is not handed over later.
#[test]
fn a_submit_that_was_refused_never_leaves() {
    let mut world = World::new();
    world.play(Move::Available(false));
    world.play(Move::Ask(Call::Submit(0)));
    assert_eq!(world.last_code(), Some("executor_not_connected"));
    world.play(Move::Available(true));
    world.play(Move::Pass(1_000));
    world.play(Move::Ask(Call::Submit(0)));
    world.play(Move::Answer(0, 0));
    assert_eq!(world.submits_that_came(), 1);
    world.settle(false);
}

/// A line of which the first byte has left is sent to its end, though its call was given up.
#[test]
fn a_submit_that_has_begun_to_leave_is_sent_to_its_end() {
    let mut world = World::new();
    world.play(Move::Available(true));
    world.play(Move::Ask(Call::Submit(0)));
    world.play(Move::ExecutorReads(0));
    world.play(Move::Answer(0, 0));
    world.play(Move::ExecutorReads(1));
    world.play(Move::Pass(2_000));
    assert_eq!(world.last_code(), Some("executor_timeout"));
    world.play(Move::ExecutorReads(usize::MAX));
    assert_eq!(world.submits_that_came(), 1);
    world.settle(false);
}

/// A task is forgotten when too many others are known, but not by those who wait for it.
#[test]
fn a_wait_outlives_the_memory_of_its_task() {
    let mut world = World::honest(true);
    world.play(Move::Available(true));
    world.play(Move::Ask(Call::Submit(0)));
    world.work(0, 0, false);
    world.play(Move::Ask(Call::Status(0, 45)));
    world.work(0, 0, false);
    for _ in 0..300 {
        world.play(Move::Ask(Call::Submit(0)));
        world.answer_all();
    }
    world.finish_all();
    world.everybody_is_told_within(0);
}
