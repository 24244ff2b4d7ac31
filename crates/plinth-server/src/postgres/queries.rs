//! Statements: texts of several, and prepared ones with values.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_pg::datatypes::into_pg_type;
use arrow_schema::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::sql::sqlparser::ast;
use futures::{Sink, SinkExt, StreamExt};
use pgwire::api::portal::{Format, Portal};
use pgwire::api::query::{
    ExtendedQueryHandler, SimpleQueryHandler, send_execution_response, send_query_response, send_ready_for_query,
};
use pgwire::api::results::{FieldInfo, QueryResponse, Response, Tag};
use pgwire::api::stmt::QueryParser;
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, PgWireConnectionState, Type};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::EmptyQueryResponse;
use pgwire::messages::simplequery::Query;
use plinth_adbc::{changed, changes, is_query, number_places};
use plinth_profile::Stage;
use plinth_sql::{KeptPlan, Params, Statement as Parsed, parse};
use tonic::Status;

use super::answers::{Kind, columns, error, of_status, rows};
use super::catalog::readable;
use super::client::Client;
use super::values;
use crate::encode;
use crate::engine::{Begun, looked};
use crate::failure::status;
use crate::feed;
use crate::taken::taken;

/// Most places for values, as a message counts them.
const MOST_PLACES: usize = 65_535;

/// What a statement has answered.
enum Answer {
    Rows(QueryResponse),
    Done(Kind, Tag),
}

impl Client {
    /// The statements of a text, and how many places for values each has.
    fn texts(&self, text: &str) -> PgWireResult<Vec<(Parsed, usize)>> {
        let most = self.door.limits.statement_bytes;
        if text.len() > most {
            let what = format!("the statement has {} bytes, and {most} are the limit here: bind values", text.len());
            return Err(error("54000", &what));
        }
        let statements = parse(text).map_err(|e| of_status(&status(&e)))?;
        let numbered = statements.into_iter().map(|mut one| {
            readable(&mut one);
            let places = number_places(&mut one);
            (one, places)
        });
        Ok(numbered.collect())
    }

    /// Runs a statement, or begins to.
    async fn answer(
        self: &Arc<Self>,
        statement: Parsed,
        text: &str,
        params: &Params,
        format: &Format,
    ) -> PgWireResult<Answer> {
        let mut kind = Kind::of(&statement);
        let mut statement = statement;
        if self.has_failed() {
            match kind {
                Kind::Rollback | Kind::Back => {}
                Kind::Commit => {
                    kind = Kind::Rollback;
                    let undo = parse("ROLLBACK").map_err(|e| of_status(&status(&e)))?.pop();
                    statement = undo.unwrap_or(statement);
                }
                _ => {
                    return Err(error(
                        "25P02",
                        "a statement of the transaction has failed: ROLLBACK ends it, ROLLBACK TO goes back to a savepoint",
                    ));
                }
            }
        }
        if let Some(done) = values::settled(&statement) {
            return done.map(|()| Answer::Done(Kind::Other(String::new()), kind.tag(None)));
        }
        // Without a transaction its end says nothing, as PostgreSQL has it.
        if is_plain_end(&statement) && !self.session()?.engine.session.in_transaction() {
            let tag = kind.tag(None);
            return Ok(Answer::Done(kind, tag));
        }
        let goes_back = matches!(kind, Kind::Back);
        let answer = self.run(kind, statement, text, params, format).await;
        match goes_back && answer.is_ok() {
            // What had failed is taken back.
            true => self.recovered(),
            false => self.ended(answer.is_err()),
        }
        answer
    }

    async fn run(
        self: &Arc<Self>,
        kind: Kind,
        statement: Parsed,
        text: &str,
        params: &Params,
        format: &Format,
    ) -> PgWireResult<Answer> {
        let session = self.session()?;
        let engine = &session.engine;
        let entered = self.door.enter(session, engine, text).await;
        let (mut running, turn) = entered.map_err(|e| of_status(&e))?;
        let flow = Arc::clone(&running.statement);
        let profiler = self.door.profiler(engine, &statement, text);
        running.profiled_by(profiler.clone());
        let planning = engine.begin(statement, params, |flag| flow.listen(flag));
        let begun = flow.run(profiler.around(Stage::Plan, planning)).await;
        if begun.is_err() {
            running.ended(&begun);
        }
        let begun = begun.map_err(|e| of_status(&e))?;
        let schema = encode::plain_schema(&begun.schema());
        if let Begun::Done(_, answer) = &begun {
            let count = changed(answer);
            if count.is_some() || schema.fields().is_empty() {
                running.ended(&Ok::<_, Status>(()));
                let tag = kind.tag(count);
                return Ok(Answer::Done(kind, tag));
            }
        }
        // What can't be told is said before it is made.
        columns(&schema, format)?;
        let started = flow.run(feed::of_begun(begun, &profiler)).await;
        if started.is_err() {
            running.ended(&started);
        }
        let fed = flow.feeds(started.map_err(|e| of_status(&e))?, turn);
        let client = Arc::clone(self);
        let batches = taken(running, fed, Arc::clone(&schema)).inspect(move |batch| {
            if batch.is_err() {
                client.ended(true);
            }
        });
        let mut rows = rows(&schema, format, batches)?;
        if let Kind::Changes(words) = kind {
            rows.set_command_tag(words);
        }
        Ok(Answer::Rows(rows))
    }
}

/// Texts of statements without values.
pub(super) struct Simple(pub(super) Arc<Client>);

#[async_trait]
impl SimpleQueryHandler for Simple {
    async fn on_query<C>(&self, client: &mut C, query: Query) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if !matches!(client.state(), PgWireConnectionState::ReadyForQuery) {
            return Err(PgWireError::NotReadyForQuery);
        }
        client.set_state(PgWireConnectionState::QueryInProgress);
        let texts = self.0.texts(&query.query)?;
        if texts.is_empty() {
            client.feed(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
        }
        let alone = texts.len() == 1;
        for (statement, places) in texts {
            if places > 0 {
                return Err(error("08P01", "the statement has places for values: prepare it, and bind them"));
            }
            let text = if alone { query.query.clone() } else { statement.to_string() };
            // One after the other: the next may change what this one reads.
            match self.0.answer(statement, &text, &Params::of_values([]), &Format::UnifiedText).await? {
                Answer::Rows(rows) => send_query_response(client, rows, true).await?,
                Answer::Done(_, tag) => send_execution_response(client, tag).await?,
            }
        }
        let status = self.0.status();
        client.set_state(PgWireConnectionState::ReadyForQuery);
        client.set_transaction_status(status);
        send_ready_for_query(client, status).await
    }

    async fn do_query<C>(&self, _: &mut C, _: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Err(error("XX000", "internal error: a query went past the place where queries are answered"))
    }
}

/// Whether a statement ends a transaction and does nothing else: going back to a savepoint does not.
fn is_plain_end(statement: &Parsed) -> bool {
    let Parsed::Statement(inner) = statement else { return false };
    matches!(
        inner.as_ref(),
        ast::Statement::Commit { chain: false, .. } | ast::Statement::Rollback { chain: false, savepoint: None }
    )
}

/// Whether a statement changes rows and gives them.
fn returns(statement: &Parsed) -> bool {
    let Parsed::Statement(inner) = statement else { return false };
    match inner.as_ref() {
        ast::Statement::Insert(insert) => insert.returning.is_some(),
        ast::Statement::Update(update) => update.returning.is_some(),
        ast::Statement::Delete(delete) => delete.returning.is_some(),
        _ => false,
    }
}

/// Whether a statement tells of tables, settings or a plan: planning it changes nothing.
fn tells(statement: &Parsed) -> bool {
    match statement {
        Parsed::Explain(explain) => !explain.options.analyze,
        Parsed::Statement(inner) => matches!(
            inner.as_ref(),
            ast::Statement::ShowTables { .. }
                | ast::Statement::ShowVariable { .. }
                | ast::Statement::ShowColumns { .. }
                | ast::Statement::ExplainTable { .. }
        ),
        _ => false,
    }
}

/// A statement that is kept.
pub(super) struct Prepared {
    statement: Parsed,
    text: String,
    /// The types of its places, where something says which.
    types: Vec<Option<DataType>>,
    columns: SchemaRef,
    /// From one run to the next.
    plan: Arc<KeptPlan>,
}

/// Statements that are kept, and run with values.
pub(super) struct Extended {
    client: Arc<Client>,
    parser: Arc<Parser>,
}

impl Extended {
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self { parser: Arc::new(Parser(Arc::clone(&client))), client }
    }
}

/// Looks at statements before they are kept.
pub(super) struct Parser(Arc<Client>);

#[async_trait]
impl QueryParser for Parser {
    type Statement = Arc<Prepared>;

    async fn parse_sql<C>(&self, _: &C, sql: &str, types: &[Option<Type>]) -> PgWireResult<Option<Arc<Prepared>>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let mut texts = self.0.texts(sql)?;
        let Some((statement, places)) = texts.pop() else { return Ok(None) };
        if !texts.is_empty() {
            return Err(error("42601", "one statement can be prepared at a time"));
        }
        let (session, text) = (self.0.session()?, sql.to_owned());
        // Before it runs nothing tells its columns, and once it has run it is too late to refuse it.
        if returns(&statement) {
            return Err(error(
                "0A000",
                "RETURNING in a prepared statement: not supported; send it as a text, without values",
            ));
        }
        let has_rows = is_query(&statement) || tells(&statement);
        if self.0.has_failed() || !(has_rows || changes(&statement)) {
            // Nothing of it is to be known before it runs.
            let columns = Arc::new(arrow_schema::Schema::empty());
            return Ok(Some(Arc::new(Prepared {
                statement,
                text,
                types: vec![None; places],
                columns,
                plan: Arc::default(),
            })));
        }
        let entered = self.0.door.enter(session, &session.engine, sql).await;
        let (mut running, _turn) = entered.map_err(|e| of_status(&e))?;
        let given = values::data_types(types);
        let found =
            running.statement.unless_stopped(looked(&session.engine, &statement, places, &given, has_rows)).await;
        running.ended(&found);
        self.0.ended(found.is_err());
        let (columns, parameters) = found.map_err(|e| of_status(&e))?;
        let mut types = Vec::new();
        for field in parameters.fields() {
            let place = field.name().parse::<usize>().ok().filter(|place| (1..=MOST_PLACES).contains(place));
            let Some(place) = place else {
                return Err(error("0A000", &format!("${}: places for values have numbers here, as $1", field.name())));
            };
            if types.len() < place {
                types.resize(place, None);
            }
            let says = !matches!(field.data_type(), DataType::Null) && *field.data_type() != values::NUMBER;
            if let Some(known) = types.get_mut(place - 1).filter(|_| says) {
                *known = Some(field.data_type().clone());
            }
        }
        let columns = encode::plain_schema(&columns);
        Ok(Some(Arc::new(Prepared { statement, text, types, columns, plan: Arc::default() })))
    }

    fn get_parameter_types(&self, prepared: &Arc<Prepared>) -> PgWireResult<Vec<Type>> {
        let of =
            |known: &Option<DataType>| known.as_ref().and_then(|known| into_pg_type(known).ok()).unwrap_or(Type::TEXT);
        Ok(prepared.types.iter().map(of).collect())
    }

    fn get_result_schema(&self, prepared: &Arc<Prepared>, format: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
        columns(&prepared.columns, format.unwrap_or(&Format::UnifiedText))
    }
}

#[async_trait]
impl ExtendedQueryHandler for Extended {
    type Statement = Arc<Prepared>;
    type QueryParser = Parser;

    fn query_parser(&self) -> Arc<Parser> {
        Arc::clone(&self.parser)
    }

    async fn do_query<C>(&self, _: &mut C, portal: &Portal<Arc<Prepared>>, _: usize) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Arc<Prepared>>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let prepared = &portal.statement.statement;
        let params = values::of_portal(portal, &prepared.types)?.keeping(&prepared.plan);
        let (statement, format) = (prepared.statement.clone(), &portal.result_column_format);
        match self.client.answer(statement, &prepared.text, &params, format).await? {
            // A client would take rows that it was not told of for an error of the protocol.
            Answer::Rows(_) if prepared.columns.fields().is_empty() => Err(error(
                "0A000",
                "this statement has rows, and none were told of when it was prepared: send it as a text, without values",
            )),
            Answer::Rows(rows) => {
                let told = columns(&prepared.columns, format)?;
                let found = rows.row_schema();
                // A client reads them as those that it was told of: the tables may have other columns since.
                let alike = |(one, other): (&FieldInfo, &FieldInfo)| {
                    (one.name(), one.datatype()) == (other.name(), other.datatype())
                };
                if found.len() != told.len() || !found.iter().zip(&told).all(alike) {
                    return Err(error("0A000", "cached plan must not change result type: prepare the statement again"));
                }
                Ok(Response::Query(rows))
            }
            // Behind a savepoint nothing has failed.
            Answer::Done(Kind::Begin | Kind::Back, tag) => Ok(Response::TransactionStart(tag)),
            Answer::Done(Kind::Commit | Kind::Rollback, tag) => Ok(Response::TransactionEnd(tag)),
            Answer::Done(_, tag) => Ok(Response::Execution(tag)),
        }
    }
}
