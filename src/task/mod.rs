//! `larry_submit_task`: a bounded coding task, handed to an executor.
//!
//! All faults of a call are reported at once. This layer does not know any executor.
//!
//! In the order in which a call meets them: [`schema`] describes the tool to a model, [`arguments`]
//! checks the arguments, [`fault`] is a fault of the arguments, [`submit`] is the tool while no
//! executor is configured, [`id`] is the name of an accepted task.

pub mod arguments;
pub mod fault;
pub mod id;
pub mod schema;
pub mod submit;
