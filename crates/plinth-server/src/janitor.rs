//! What time ends: statements, rows that are not fetched, sessions that have nothing to do.

use std::sync::Arc;
use std::time::Duration;

use crate::door::Door;
use crate::statement::{Phase, Why};

/// How often it looks.
const EVERY: Duration = Duration::from_millis(200);

/// Looks after a server until it is dropped.
pub(crate) async fn run(door: Arc<Door>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        look(&door);
    }
}

fn look(door: &Door) {
    let limits = &door.limits;
    for session in door.sessions() {
        for statement in session.statements() {
            if statement.begun.elapsed() > limits.statement_time {
                statement.stop(Why::Time(limits.statement_time));
            }
            if matches!(statement.phase(), Phase::Sent(since) if since.elapsed() > limits.stalled) {
                statement.stop(Why::Stalled(limits.stalled));
            }
        }
        if !session.is_of_connection && session.idle() > limits.idle {
            door.end(&session, Why::Ended);
        }
    }
    door.handles.sweep(limits.ticket);
}
