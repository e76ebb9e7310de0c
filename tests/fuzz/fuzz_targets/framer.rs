//! The framer against a split.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocco_fuzz::bodies::framer::body(data));
