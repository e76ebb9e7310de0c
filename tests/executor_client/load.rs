//! An executor that writes without end, and a client that does not read.

use serde_json::json;

use super::front::{NEWEST, Place, WAYS};

/// What 100,000 updates may add to the resident memory, in bytes: buffers that were not touched
/// before, such as the ring of the executor's lines.
const GROWTH_BYTES_MAX: u64 = 2 << 20;

#[test]
fn memory_is_flat_over_a_hundred_thousand_updates() {
    for way in WAYS {
        let mut place = Place::new();
        let mut front = place.front(way, "", NEWEST);
        // Buffers that a flood touches are touched before.
        let first = front.submit_surely("flood 2000");
        front.await_state(&first, "succeeded");
        let before = front.resident_bytes();
        let task = front.submit_surely("flood 100000");
        let id = front.ask(
            "tools/call",
            json!({"name": "larry_task_status",
            "arguments": {"task_id": task, "wait_s": 45}, "_meta": {"progressToken": "t"}}),
        );
        let mut served = 0;
        let mut most = before;
        while place.count("succeeded") < 2 {
            front.serves_others();
            served += 1;
            most = most.max(front.resident_bytes());
        }
        let said = front.answer(id);
        assert!(said["state"].is_string(), "{said}");
        front.await_state(&task, "succeeded");
        let after = front.resident_bytes();
        println!("{way:?}: {before} bytes before, {most} at most, {after} after, {served} served");
        assert!(
            most - before.min(most) <= GROWTH_BYTES_MAX,
            "{before} {most} {after}"
        );
        front.close();
        place.nothing_is_left();
    }
}

/// The executor is not read while the client does not read, and nothing is lost.
#[test]
fn a_client_that_does_not_read_stops_an_executor_that_floods() {
    for way in WAYS {
        let mut place = Place::new();
        let mut front = place.front(way, "", NEWEST);
        let warm = front.submit_surely("flood 2000");
        front.await_state(&warm, "succeeded");
        let before = front.resident_bytes();
        // More replies than the outbox and the pipe hold, none of which is read.
        let lists: Vec<u64> = (0..200)
            .map(|_| front.ask("tools/list", json!({})))
            .collect();
        let submits: Vec<u64> = (0..3).map(|_| front.begin_submit("flood 20000")).collect();
        let most = (0..200).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            front.resident_bytes()
        });
        let most = most.max().unwrap();
        assert!(
            most - before.min(most) <= GROWTH_BYTES_MAX,
            "{before} {most}"
        );
        for id in lists {
            let tools = front.reply(id);
            assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 4);
        }
        for id in submits {
            let said = front.answer(id);
            let task = [&said["task_id"], &said["error"]["details"]["task_id"]];
            let task = task
                .into_iter()
                .find_map(|task| task.as_str())
                .unwrap()
                .to_owned();
            let ended = front.await_end(&task);
            assert_eq!(ended["record"]["outcome"], "succeeded", "{ended}");
        }
        front.close();
        place.nothing_is_left();
    }
}
