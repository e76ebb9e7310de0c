//! `larry_submit_task`: a bounded coding task, handed to an executor.
//!
//! In the order in which a call meets them: [`schema`] is what the model is told, [`request`] is
//! what its arguments are held to, [`submit`] is the tool.

pub mod request;
pub mod schema;
pub mod submit;
