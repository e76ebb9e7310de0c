//! The parser against serde_json and a naive reader.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocco_fuzz::bodies::parser::body(data));
