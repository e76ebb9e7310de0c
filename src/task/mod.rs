//! `larry_submit_task`: a bounded coding task, handed to an executor.
//!
//! In the order in which a call meets them: [`schema`] is what the model is told, [`request`] is
//! what its arguments are held to, [`fault`] is what may be wrong with them, [`submit`] is the
//! tool while no executor is connected, [`id`] is what an accepted task is called.

pub mod fault;
pub mod id;
pub mod request;
pub mod schema;
pub mod submit;
