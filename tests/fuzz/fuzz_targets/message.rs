//! What a message and its envelope are, against the rules.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocco_fuzz::bodies::message::body(data));
