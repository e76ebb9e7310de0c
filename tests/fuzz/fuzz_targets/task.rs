//! The rules of a task against a second telling of them and the published schema.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocco_fuzz::bodies::task::body(data));
