//! Any text comes out as one line that reads back.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocco_fuzz::bodies::writer::body(data));
