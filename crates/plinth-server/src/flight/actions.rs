//! Transactions, cancelling, and what is said of sessions.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_flight::sql::{
    ActionBeginTransactionResult, ActionCancelQueryRequest, ActionCancelQueryResult, ActionEndTransactionRequest, Any,
    EndTransaction, TicketStatementQuery,
};
use arrow_flight::{Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo};
use bytes::Bytes;
use plinth_sql::{Params, parse};
use prost::Message;
use tonic::Status;

use super::Flight;
use crate::entry::Caller;
use crate::failure::status;
use crate::handles::Held;
use crate::session::Session;
use crate::statement::Why;
use crate::users::User;

pub(super) const NO_SAVEPOINTS: &str = "no savepoints by calls; in SQL they are SAVEPOINT, ROLLBACK TO and RELEASE";

const CANCEL_FLIGHT_INFO: &str = "CancelFlightInfo";
const CLOSE_SESSION: &str = "CloseSession";
const SET_SESSION_OPTIONS: &str = "SetSessionOptions";

/// Actions beside those of the protocol that the crate knows.
pub(super) fn types() -> Vec<ActionType> {
    [
        (CANCEL_FLIGHT_INFO, "Stops a statement: a CancelFlightInfoRequest, answered by a CancelFlightInfoResult"),
        (CLOSE_SESSION, "Ends the session: answered by a CloseSessionResult"),
        (SET_SESSION_OPTIONS, "Sets the schema that names are looked up in, and settings: a SetSessionOptionsRequest"),
    ]
    .map(|(name, description)| ActionType { r#type: name.to_owned(), description: description.to_owned() })
    .to_vec()
}

/// `CloseSessionResult` of `Flight.proto`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CloseSessionResult {
    #[prost(int32, tag = "1")]
    pub(crate) status: i32,
}

/// `CloseSessionResult.Status.CLOSED`.
const CLOSED: i32 = 1;

/// `SetSessionOptionsRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SetSessionOptionsRequest {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) options: HashMap<String, SessionOption>,
}

/// `SessionOptionValue`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SessionOption {
    #[prost(oneof = "OptionValue", tags = "1, 2, 3, 4")]
    pub(crate) value: Option<OptionValue>,
}

/// The values that an option of a session may have here; lists are of none.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum OptionValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Truth(bool),
    #[prost(sfixed64, tag = "3")]
    Number(i64),
    #[prost(double, tag = "4")]
    Double(f64),
}

/// `SetSessionOptionsResult`: what could not be set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) errors: HashMap<String, OptionError>,
}

/// `SetSessionOptionsResult.Error`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OptionError {
    #[prost(int32, tag = "1")]
    pub(crate) value: i32,
}

/// `SetSessionOptionsResult.ErrorValue`.
const INVALID_NAME: i32 = 1;
const INVALID_VALUE: i32 = 2;

fn decoded<T: Message + Default>(body: &Bytes) -> Result<T, Status> {
    T::decode(body.clone()).map_err(|_| Status::invalid_argument("the body of the action is no message of its kind"))
}

impl Flight {
    pub(super) async fn begin_transaction(
        &self,
        session: &Arc<Session>,
    ) -> Result<ActionBeginTransactionResult, Status> {
        let (engine, place) = self.door.transaction(session).await?;
        engine.run("BEGIN").await.map_err(|e| status(&e))?;
        let transaction_id = self.door.handles.keep(session, Held::Transaction { engine, _place: place })?;
        Ok(ActionBeginTransactionResult { transaction_id })
    }

    pub(super) async fn end_transaction(&self, user: &User, end: ActionEndTransactionRequest) -> Result<(), Status> {
        let (engine, session) = self.door.handles.transaction(&end.transaction_id, user)?;
        let how = match EndTransaction::try_from(end.action) {
            Ok(EndTransaction::Commit) => "COMMIT",
            Ok(EndTransaction::Rollback) => "ROLLBACK",
            _ => return Err(Status::invalid_argument("a transaction ends by a commit or by a rollback")),
        };
        session.touch();
        // A statement of its own may have ended it.
        let ended = match engine.session.in_transaction() {
            true => engine.run(how).await.map(drop),
            false => Ok(()),
        };
        self.door.handles.forget(&end.transaction_id);
        ended.map_err(|e| status(&e))
    }

    /// Stops the statement whose rows were to be fetched by an endpoint: whether there was one.
    pub(super) fn cancel(&self, user: &User, info: &FlightInfo) -> Result<bool, Status> {
        let tickets = info.endpoint.iter().filter_map(|endpoint| endpoint.ticket.as_ref());
        let mut any = false;
        for ticket in tickets {
            let message = Any::decode(ticket.ticket.clone());
            let known = message.ok().and_then(|any| any.unpack::<TicketStatementQuery>().ok().flatten());
            let Some(known) = known else { return Err(Status::invalid_argument("the ticket is none of this server")) };
            if let Some(statement) = self.door.handles.cancel_ticket(&known.statement_handle, user)? {
                statement.stop(Why::Cancelled);
            }
            any = true;
        }
        Ok(any)
    }

    pub(super) fn cancel_query(
        &self,
        user: &User,
        query: &ActionCancelQueryRequest,
    ) -> Result<ActionCancelQueryResult, Status> {
        let done = self.cancel(user, &decoded(&query.info)?)?;
        Ok(ActionCancelQueryResult { result: cancelled(done) })
    }

    /// An action that the crate of the protocol does not know: the bodies of its results.
    pub(super) async fn other_action(&self, caller: &Caller, action: &Action) -> Result<Vec<Bytes>, Status> {
        match action.r#type.as_str() {
            CANCEL_FLIGHT_INFO => {
                let request: CancelFlightInfoRequest = decoded(&action.body)?;
                let info = request.info.ok_or_else(|| Status::invalid_argument("no FlightInfo is named"))?;
                let done = self.cancel(&caller.user, &info)?;
                Ok(vec![CancelFlightInfoResult { status: cancelled(done) }.encode_to_vec().into()])
            }
            CLOSE_SESSION => {
                let session = caller.session().await?;
                self.door.end(&session, Why::Ended);
                Ok(vec![CloseSessionResult { status: CLOSED }.encode_to_vec().into()])
            }
            SET_SESSION_OPTIONS => {
                let (request, session) = (decoded(&action.body)?, caller.session().await?);
                Ok(vec![set_options(&session, request).await?.encode_to_vec().into()])
            }
            other => {
                let name: String = other.chars().take(64).collect();
                Err(Status::unimplemented(format!(
                    "{name:?}: there is no such action; ListActions tells which there are"
                )))
            }
        }
    }
}

fn cancelled(done: bool) -> i32 {
    let status = if done { CancelStatus::Cancelled } else { CancelStatus::NotCancellable };
    status.into()
}

/// Sets `catalog`, `schema` and settings of SQL, as SET and USE do.
async fn set_options(session: &Session, request: SetSessionOptionsRequest) -> Result<SetSessionOptionsResult, Status> {
    let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut errors = HashMap::new();
    for (name, option) in request.options {
        let value = match option.value {
            Some(OptionValue::Text(value)) => value,
            Some(OptionValue::Truth(value)) => value.to_string(),
            Some(OptionValue::Number(value)) => value.to_string(),
            Some(OptionValue::Double(value)) => value.to_string(),
            None => {
                errors.insert(name, OptionError { value: INVALID_VALUE });
                continue;
            }
        };
        let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || ['.', '_'].contains(&letter));
        let statement = match name.as_str() {
            "schema" => format!("USE {}", plinth_adbc::quoted(&value)),
            "catalog" if value == crate::engine::CATALOG => continue,
            "catalog" => {
                errors.insert(name, OptionError { value: INVALID_VALUE });
                continue;
            }
            _ if plain && name.contains('.') => format!("SET {name} = {}", text(&value)),
            _ => {
                errors.insert(name, OptionError { value: INVALID_NAME });
                continue;
            }
        };
        let statement = parse(&statement).map_err(|e| status(&e))?.pop();
        let Some(statement) = statement else { continue };
        if session.engine.begin(statement, &Params::of_values([]), |_| {}).await.is_err() {
            errors.insert(name, OptionError { value: INVALID_VALUE });
        }
    }
    Ok(SetSessionOptionsResult { errors })
}
