//! Statements: with rows or without, prepared or not, with values or without.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, CommandStatementQuery,
    CommandStatementUpdate, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, Ticket};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use plinth_adbc::{changed, is_query, nulls, number_places, params_of};
use plinth_core::sync::lock;
use plinth_profile::{Profiler, Stage};
use plinth_sql::{Params, Statement as Parsed, parse};
use prost::Message;
use tonic::{Response, Status};

use super::Flight;
use crate::door::Running;
use crate::encode;
use crate::engine::{Begun, Engine, looked};
use crate::failure::{arrow, internal, status};
use crate::feed::{self, Each};
use crate::handles::{Held, Prepared, Waiting};
use crate::session::Session;
use crate::taken::taken;
use crate::users::User;

/// What a statement's text holds: each statement, with how many places for values it has.
type Texts = Vec<(Parsed, usize)>;

/// What a count of rows is where none is known.
const UNKNOWN: i64 = -1;

fn count(rows: Option<u64>) -> i64 {
    rows.map_or(UNKNOWN, |rows| i64::try_from(rows).unwrap_or(i64::MAX))
}

fn fits(places: usize, columns: usize) -> Result<(), Status> {
    if places > 0 && places != columns {
        return Err(Status::invalid_argument(format!(
            "the statement has {places} places for values, and {columns} were bound"
        )));
    }
    Ok(())
}

/// Batches out of messages.
pub(super) fn batches(
    messages: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> FlightRecordBatchStream {
    // The first may have a command and no data.
    let messages = messages.try_filter(|message| std::future::ready(!message.data_header.is_empty()));
    FlightRecordBatchStream::new_from_flight_data(messages.map_err(FlightError::from))
}

/// Why messages are no batches.
pub(super) fn of_flight(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        FlightError::Arrow(error) => arrow(error),
        FlightError::NotYetImplemented(what) => Status::unimplemented(crate::failure::short(&what)),
        FlightError::DecodeError(what) | FlightError::ProtocolError(what) => {
            Status::invalid_argument(crate::failure::short(&plinth_sql::one_line(&what)))
        }
        other => internal(other),
    }
}

impl Flight {
    /// What a text holds.
    fn texts(&self, text: &str) -> Result<Texts, Status> {
        let most = self.door.limits.statement_bytes;
        if text.len() > most {
            return Err(Status::resource_exhausted(format!(
                "the statement has {} bytes, and {most} are the limit here: bind values, or ingest rows",
                text.len()
            )));
        }
        let statements = parse(text).map_err(|e| status(&e))?;
        if statements.is_empty() {
            return Err(Status::invalid_argument("the text has no statement"));
        }
        let numbered = statements.into_iter().map(|mut one| {
            let places = number_places(&mut one);
            (one, places)
        });
        Ok(numbered.collect())
    }

    /// What runs a statement: the session, or the transaction that it names.
    pub(super) fn engine(
        &self,
        session: &Arc<Session>,
        transaction: Option<&Bytes>,
    ) -> Result<(Arc<Engine>, Arc<Session>), Status> {
        match transaction.filter(|name| !name.is_empty()) {
            Some(name) => self.door.handles.transaction(name, &session.user),
            None => Ok((Arc::clone(&session.engine), Arc::clone(session))),
        }
    }

    /// The rows of a statement, to be fetched by the ticket that this gives.
    pub(super) async fn query(
        &self,
        session: &Arc<Session>,
        query: CommandStatementQuery,
        descriptor: FlightDescriptor,
    ) -> Result<FlightInfo, Status> {
        let (engine, session) = self.engine(session, query.transaction_id.as_ref())?;
        let texts = self.texts(&query.query)?;
        self.plan(&session, &engine, &query.query, texts, Vec::new(), descriptor).await
    }

    /// The same of a prepared statement, with the values that are bound.
    pub(super) async fn query_prepared(
        &self,
        user: &User,
        handle: &[u8],
        descriptor: FlightDescriptor,
    ) -> Result<FlightInfo, Status> {
        let (prepared, session) = self.door.handles.prepared(handle, user)?;
        let mut values = prepared.values()?;
        if values.is_empty() && prepared.places == 0 {
            values.push(Params::of_values([]));
        }
        if let [one] = &mut values[..] {
            *one = std::mem::take(one).keeping(&prepared.plan);
        }
        let texts = vec![(prepared.statement.clone(), prepared.places)];
        self.plan(&session, &prepared.engine, &prepared.text, texts, values, descriptor).await
    }

    async fn plan(
        &self,
        session: &Arc<Session>,
        engine: &Arc<Engine>,
        text: &str,
        texts: Texts,
        values: Vec<Params>,
        descriptor: FlightDescriptor,
    ) -> Result<FlightInfo, Status> {
        let (mut running, _turn) = self.door.enter(session, engine, text).await?;
        let planned = self.begun(&running, engine, texts, values, text).await;
        running.ended(&planned);
        let (begun, each, profiler) = planned?;
        if matches!(begun, Begun::Query(_)) {
            running.planned();
        }
        let schema = begun.schema();
        let schema = if each.is_some() { feed::nullable(&schema) } else { schema };
        let waiting = Waiting {
            engine: Arc::clone(engine),
            begun,
            schema: encode::plain_schema(&schema),
            text: text.to_owned(),
            each,
            profiler,
        };
        self.ticket(session, waiting, descriptor)
    }

    /// Runs all statements but the last, and plans the last; one that is no query is over then.
    async fn begun(
        &self,
        running: &Running,
        engine: &Arc<Engine>,
        mut texts: Texts,
        mut values: Vec<Params>,
        text: &str,
    ) -> Result<(Begun, Option<Each>, Profiler), Status> {
        let statement = &running.statement;
        let Some((last, places)) = texts.pop() else {
            return Err(Status::invalid_argument("the text has no statement"));
        };
        if values.is_empty() {
            fits(places, 0)?;
            values.push(Params::of_values([]));
        }
        for (one, _) in texts {
            self.run_out(running, engine, one).await?;
        }
        if values.len() > 1 && !is_query(&last) {
            let work = engine.change_each(&last, &values, |flag| statement.listen(flag));
            let rows = statement.run(work).await?;
            return Ok((counted(rows)?, None, Profiler::off()));
        }
        let first = values.remove(0);
        let profiler = self.door.profiler(engine, &last, text);
        let planning = engine.begin(last.clone(), &first, |flag| statement.listen(flag));
        let begun = statement.run(profiler.around(Stage::Plan, planning)).await?;
        let each = (!values.is_empty()).then(|| Each { engine: Arc::clone(engine), query: last, values });
        Ok((begun, each, profiler))
    }

    /// Runs a statement to its end, and drops its rows.
    async fn run_out(&self, running: &Running, engine: &Engine, one: Parsed) -> Result<Option<u64>, Status> {
        let statement = &running.statement;
        let none = Params::of_values([]);
        let begun = engine.begin(one, &none, |flag| statement.listen(flag));
        match statement.run(begun).await? {
            Begun::Done(_, answer) => Ok(changed(&answer)),
            query @ Begun::Query(_) => {
                let drained = async {
                    let off = Profiler::off();
                    let mut rows = feed::of_begun(query, &off).await.map_err(|e| status(&e))?;
                    while rows.try_next().await?.is_some() {}
                    Ok(None)
                };
                statement.unless_stopped(drained).await
            }
        }
    }

    /// Keeps rows to be fetched, and tells their columns and the ticket.
    pub(super) fn ticket(
        &self,
        session: &Arc<Session>,
        waiting: Waiting,
        descriptor: FlightDescriptor,
    ) -> Result<FlightInfo, Status> {
        let schema = Arc::clone(&waiting.schema);
        let statement_handle = self.door.handles.keep(session, Held::Ticket(Box::new(waiting)))?;
        let ticket = TicketStatementQuery { statement_handle };
        let ticket = Ticket { ticket: ticket.as_any().encode_to_vec().into() };
        let info = FlightInfo::new().try_with_schema(&schema).map_err(arrow)?;
        let info = info.with_endpoint(FlightEndpoint::new().with_ticket(ticket)).with_descriptor(descriptor);
        Ok(info.with_ordered(true))
    }

    /// An answer that is there already, as rows to be fetched.
    pub(super) fn told(
        &self,
        session: &Arc<Session>,
        batch: Result<RecordBatch, Status>,
        descriptor: FlightDescriptor,
    ) -> Result<Response<FlightInfo>, Status> {
        let batch = batch?;
        let schema = batch.schema();
        let waiting = Waiting {
            engine: Arc::clone(&session.engine),
            schema: Arc::clone(&schema),
            begun: Begun::Done(schema, vec![batch]),
            text: String::new(),
            each: None,
            profiler: Profiler::off(),
        };
        self.ticket(session, waiting, descriptor).map(Response::new)
    }

    /// The rows of a ticket, made as they are taken.
    pub(super) async fn fetch(
        &self,
        user: &User,
        ticket: &Bytes,
    ) -> Result<impl Stream<Item = Result<FlightData, Status>> + Send + 'static, Status> {
        let (waiting, session) = self.door.handles.take_ticket(ticket, user)?;
        let Waiting { engine, begun, schema, text, each, profiler } = waiting;
        let (mut running, turn) = self.door.enter(&session, &engine, &text).await?;
        let statement = Arc::clone(&running.statement);
        running.fetched_by(ticket.clone());
        running.profiled_by(profiler.clone());
        let columns = begun.schema();
        let started = statement.run(feed::of_begun(begun, &profiler)).await;
        if started.is_err() {
            running.ended(&started);
        }
        let mut rows = started?;
        if let Some(each) = each {
            rows = each.rows(rows, feed::nullable(&columns), Arc::clone(&statement));
        }
        let rows = statement.feeds(rows, turn);
        Ok(encode::messages(Arc::clone(&schema), taken(running, rows, schema)))
    }

    /// Runs statements to their ends: the rows that the last has changed.
    pub(super) async fn update(&self, session: &Arc<Session>, update: CommandStatementUpdate) -> Result<i64, Status> {
        let (engine, session) = self.engine(session, update.transaction_id.as_ref())?;
        let texts = self.texts(&update.query)?;
        let (mut running, _turn) = self.door.enter(&session, &engine, &update.query).await?;
        let work = async {
            let mut rows = None;
            for (one, places) in texts {
                fits(places, 0)?;
                rows = self.run_out(&running, &engine, one).await?;
            }
            Ok(rows)
        };
        let done = work.await;
        running.ended(&done);
        done.map(count)
    }

    /// Keeps a statement, and tells the types of its places and its columns.
    pub(super) async fn prepare(
        &self,
        session: &Arc<Session>,
        query: ActionCreatePreparedStatementRequest,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let (engine, session) = self.engine(session, query.transaction_id.as_ref())?;
        let (statement, places) = self.one(&query.query)?;
        let (bound, plan) = Default::default();
        let prepared = Prepared { statement, places, text: query.query, engine, bound, plan };
        let (columns, parameters) = self.look(&session, &prepared).await?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: self.door.handles.keep(&session, Held::Prepared(Arc::new(prepared)))?,
            dataset_schema: encode::schema_bytes(&encode::plain_schema(&columns))?,
            parameter_schema: encode::schema_bytes(&encode::plain_schema(&parameters))?,
        })
    }

    /// The only statement of a text.
    fn one(&self, text: &str) -> Result<(Parsed, usize), Status> {
        let mut texts = self.texts(text)?;
        match (texts.pop(), texts.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(Status::invalid_argument("one statement can be prepared at a time")),
        }
    }

    /// The columns of a statement, and those of its places.
    async fn look(&self, session: &Arc<Session>, prepared: &Prepared) -> Result<(SchemaRef, SchemaRef), Status> {
        let Prepared { statement, places, text, engine, .. } = prepared;
        let (mut running, _turn) = self.door.enter(session, engine, text).await?;
        let looked = looked(engine, statement, *places, &[], is_query(statement));
        let looked = running.statement.unless_stopped(looked).await;
        running.ended(&looked);
        looked
    }

    /// The columns that a statement would give, which is not run: the bytes of a message of IPC.
    pub(super) async fn columns_of(
        &self,
        session: &Arc<Session>,
        query: CommandStatementQuery,
    ) -> Result<Bytes, Status> {
        let (engine, session) = self.engine(session, query.transaction_id.as_ref())?;
        let (statement, places) = self.one(&query.query)?;
        let (bound, plan) = Default::default();
        let prepared = Prepared { statement, places, text: query.query, engine, bound, plan };
        let (columns, _) = self.look(&session, &prepared).await?;
        encode::schema_bytes(&encode::plain_schema(&columns))
    }

    /// The same of a prepared statement.
    pub(super) async fn columns_of_prepared(&self, user: &User, handle: &[u8]) -> Result<Bytes, Status> {
        let (prepared, session) = self.door.handles.prepared(handle, user)?;
        session.touch();
        let (columns, _) = self.look(&session, &prepared).await?;
        encode::schema_bytes(&encode::plain_schema(&columns))
    }

    /// Keeps values for a prepared statement.
    pub(super) async fn bind(
        &self,
        user: &User,
        handle: &[u8],
        messages: PeekableFlightDataStream,
    ) -> Result<(), Status> {
        let (prepared, session) = self.door.handles.prepared(handle, user)?;
        session.touch();
        let bound = self.gathered(messages).await?;
        *lock(&prepared.bound) = bound;
        Ok(())
    }

    /// All batches of a stream, which are no larger than a message together.
    async fn gathered(&self, messages: PeekableFlightDataStream) -> Result<Vec<RecordBatch>, Status> {
        let (mut batches, mut all, mut bytes) = (batches(messages), Vec::new(), 0_usize);
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(of_flight)?;
            bytes = bytes.saturating_add(batch.get_array_memory_size());
            if bytes > self.door.limits.message_bytes {
                return Err(Status::resource_exhausted(format!(
                    "more than {} bytes of values were bound: ingest rows instead",
                    self.door.limits.message_bytes
                )));
            }
            all.push(batch);
        }
        Ok(all)
    }

    /// Runs a prepared statement, with the values that come along, else with those that are bound.
    pub(super) async fn update_prepared(
        &self,
        user: &User,
        handle: &[u8],
        messages: PeekableFlightDataStream,
    ) -> Result<i64, Status> {
        let (prepared, session) = self.door.handles.prepared(handle, user)?;
        let given = self.gathered(messages).await?;
        if !given.is_empty() {
            *lock(&prepared.bound) = given;
        }
        let values = prepared.values()?;
        let engine = &prepared.engine;
        let (mut running, _turn) = self.door.enter(&session, engine, &prepared.text).await?;
        let done = match values.is_empty() {
            true => match fits(prepared.places, 0) {
                Ok(()) => self.run_out(&running, engine, prepared.statement.clone()).await,
                Err(refused) => Err(refused),
            },
            false => {
                let statement = &running.statement;
                let work = engine.change_each(&prepared.statement, &values, |flag| statement.listen(flag));
                statement.run(work).await.map(Some)
            }
        };
        running.ended(&done);
        done.map(count)
    }
}

impl Prepared {
    /// The rows of values that are bound.
    fn values(&self) -> Result<Vec<Params>, Status> {
        let bound = lock(&self.bound).clone();
        let mut values = Vec::new();
        for batch in &bound {
            fits(self.places, batch.num_columns())?;
            for row in 0..batch.num_rows() {
                values.push(params_of(batch, row).map_err(|e| status(&e))?);
            }
        }
        if let (true, Some(batch)) = (values.is_empty(), bound.first()) {
            values.push(nulls(&batch.schema()).map_err(|e| status(&e))?);
        }
        Ok(values)
    }
}

/// An answer that says how many rows were changed.
fn counted(rows: u64) -> Result<Begun, Status> {
    let counts: ArrayRef = Arc::new(UInt64Array::from(vec![rows]));
    let batch = RecordBatch::try_from_iter([("count", counts)]).map_err(arrow)?;
    Ok(Begun::Done(batch.schema(), vec![batch]))
}
