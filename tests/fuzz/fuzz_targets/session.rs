//! A whole session gets the replies that are due, and no other byte.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocco_fuzz::bodies::session::body(data));
