//! Arrow Flight SQL (<https://arrow.apache.org/docs/format/FlightSql.html>): what each call of the protocol does.

mod actions;
mod catalog;
mod ingest;
mod kinds;
mod queries;
mod service;

use std::pin::Pin;
use std::sync::Arc;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::metadata::SqlInfoData;
use arrow_flight::sql::server::{FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionBeginSavepointRequest, ActionBeginSavepointResult, ActionBeginTransactionRequest,
    ActionBeginTransactionResult, ActionCancelQueryRequest, ActionCancelQueryResult,
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    ActionEndSavepointRequest, ActionEndTransactionRequest, Any, Command, CommandGetCatalogs, CommandGetCrossReference,
    CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo,
    CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementIngest, CommandStatementQuery, CommandStatementUpdate,
    DoPutPreparedStatementResult, SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse, Result as ActionResult,
    Ticket,
};
use futures::{Stream, StreamExt, stream};
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};

use crate::door::Door;
use crate::entry::Caller;
use crate::failure::internal;
use crate::session::Session;

pub(crate) use service::WholeFlight;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send + 'static>>;
type DataStream<T> = Response<<T as FlightService>::DoGetStream>;

/// The protocol, of one server.
#[derive(Clone)]
pub(crate) struct Flight {
    pub(crate) door: Arc<Door>,
    infos: Arc<SqlInfoData>,
}

impl Flight {
    pub(crate) fn new(door: Arc<Door>) -> Result<Self, crate::ServerError> {
        let infos = catalog::infos().map_err(crate::ServerError::new)?;
        Ok(Self { door, infos: Arc::new(infos) })
    }

    /// Who asks: [`crate::entry`] has put it there.
    fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
        let caller = request.extensions().get::<Caller>().cloned();
        caller.ok_or_else(|| Status::unauthenticated(crate::entry::Refused::Unknown.sentence()))
    }

    async fn session<T>(request: &Request<T>) -> Result<Arc<Session>, Status> {
        Self::caller(request)?.session().await
    }
}

fn refused<T>(what: &str) -> Result<T, Status> {
    Err(Status::unimplemented(what))
}

const NO_TICKET: &str =
    "tickets are made by GetFlightInfo, and are no commands: ask for the command, and fetch the ticket of its endpoint";

const NO_KEYS: &str = "there are no foreign keys";

// `async_trait` stands here for the signatures that the crate of the protocol has.
#[tonic::async_trait]
impl FlightSqlService for Flight {
    type FlightService = Self;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Answers<HandshakeResponse>>, Status> {
        let caller = Self::caller(&request)?;
        let session = self.door.session(&caller.user, false, caller.peer()).await?;
        let token = self.door.name(&session)?;
        let answer = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let answers: Answers<HandshakeResponse> = Box::pin(stream::iter([Ok(answer)]));
        let mut response = Response::new(answers);
        let header = MetadataValue::try_from(format!("Bearer {token}")).map_err(internal)?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        self.query(&session, query, request.into_inner()).await.map(Response::new)
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let caller = Self::caller(&request)?;
        self.query_prepared(&caller.user, &query.prepared_statement_handle, request.into_inner())
            .await
            .map(Response::new)
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        self.told(&session, catalog::catalogs(&session, query), request.into_inner())
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        self.told(&session, catalog::schemas(&session, query), request.into_inner())
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        let tables = catalog::tables(&session, query).await;
        self.told(&session, tables, request.into_inner())
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        self.told(&session, catalog::table_types(query), request.into_inner())
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        let infos = query.into_builder(&self.infos).build().map_err(internal);
        self.told(&session, infos, request.into_inner())
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        let keys = catalog::primary_keys(&session, query).await;
        self.told(&session, keys, request.into_inner())
    }

    async fn get_flight_info_exported_keys(
        &self,
        _: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        self.told(&session, catalog::no_foreign_keys(), request.into_inner())
    }

    async fn get_flight_info_imported_keys(
        &self,
        _: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        self.told(&session, catalog::no_foreign_keys(), request.into_inner())
    }

    async fn get_flight_info_cross_reference(
        &self,
        _: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        self.told(&session, catalog::no_foreign_keys(), request.into_inner())
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = Self::session(&request).await?;
        self.told(&session, kinds::types(query), request.into_inner())
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Result<DataStream<Self>, Status> {
        let caller = Self::caller(&request)?;
        let data = self.fetch(&caller.user, &ticket.statement_handle).await?;
        Ok(Response::new(Box::pin(data)))
    }

    async fn do_get_fallback(&self, _: Request<Ticket>, _: Any) -> Result<DataStream<Self>, Status> {
        refused(NO_TICKET)
    }

    async fn do_get_prepared_statement(
        &self,
        _: CommandPreparedStatementQuery,
        _: Request<Ticket>,
    ) -> Result<DataStream<Self>, Status> {
        refused(NO_TICKET)
    }

    async fn do_get_catalogs(&self, _: CommandGetCatalogs, _: Request<Ticket>) -> Result<DataStream<Self>, Status> {
        refused(NO_TICKET)
    }

    async fn do_get_schemas(&self, _: CommandGetDbSchemas, _: Request<Ticket>) -> Result<DataStream<Self>, Status> {
        refused(NO_TICKET)
    }

    async fn do_get_tables(&self, _: CommandGetTables, _: Request<Ticket>) -> Result<DataStream<Self>, Status> {
        refused(NO_TICKET)
    }

    async fn do_get_table_types(
        &self,
        _: CommandGetTableTypes,
        _: Request<Ticket>,
    ) -> Result<DataStream<Self>, Status> {
        refused(NO_TICKET)
    }

    async fn do_get_sql_info(&self, _: CommandGetSqlInfo, _: Request<Ticket>) -> Result<DataStream<Self>, Status> {
        refused(NO_TICKET)
    }

    async fn do_get_primary_keys(
        &self,
        _: CommandGetPrimaryKeys,
        _: Request<Ticket>,
    ) -> Result<DataStream<Self>, Status> {
        refused(NO_TICKET)
    }

    async fn do_get_exported_keys(
        &self,
        _: CommandGetExportedKeys,
        _: Request<Ticket>,
    ) -> Result<DataStream<Self>, Status> {
        refused(NO_KEYS)
    }

    async fn do_get_imported_keys(
        &self,
        _: CommandGetImportedKeys,
        _: Request<Ticket>,
    ) -> Result<DataStream<Self>, Status> {
        refused(NO_KEYS)
    }

    async fn do_get_cross_reference(
        &self,
        _: CommandGetCrossReference,
        _: Request<Ticket>,
    ) -> Result<DataStream<Self>, Status> {
        refused(NO_KEYS)
    }

    async fn do_get_xdbc_type_info(
        &self,
        _: CommandGetXdbcTypeInfo,
        _: Request<Ticket>,
    ) -> Result<DataStream<Self>, Status> {
        refused(NO_TICKET)
    }

    async fn do_put_statement_update(
        &self,
        update: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let session = Self::session(&request).await?;
        self.update(&session, update).await
    }

    async fn do_put_statement_ingest(
        &self,
        command: CommandStatementIngest,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let session = Self::session(&request).await?;
        self.ingest(&session, command, request.into_inner()).await
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let caller = Self::caller(&request)?;
        let handle = query.prepared_statement_handle;
        self.bind(&caller.user, &handle, request.into_inner()).await?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) })
    }

    async fn do_put_prepared_statement_update(
        &self,
        update: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let caller = Self::caller(&request)?;
        self.update_prepared(&caller.user, &update.prepared_statement_handle, request.into_inner()).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let session = Self::session(&request).await?;
        self.prepare(&session, query).await
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let caller = Self::caller(&request)?;
        self.door.handles.prepared(&query.prepared_statement_handle, &caller.user)?;
        self.door.handles.forget(&query.prepared_statement_handle);
        Ok(())
    }

    async fn do_action_begin_transaction(
        &self,
        _: ActionBeginTransactionRequest,
        request: Request<Action>,
    ) -> Result<ActionBeginTransactionResult, Status> {
        let session = Self::session(&request).await?;
        self.begin_transaction(&session).await
    }

    async fn do_action_end_transaction(
        &self,
        end: ActionEndTransactionRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let caller = Self::caller(&request)?;
        self.end_transaction(&caller.user, end).await
    }

    async fn do_action_begin_savepoint(
        &self,
        _: ActionBeginSavepointRequest,
        _: Request<Action>,
    ) -> Result<ActionBeginSavepointResult, Status> {
        refused(actions::NO_SAVEPOINTS)
    }

    async fn do_action_end_savepoint(&self, _: ActionEndSavepointRequest, _: Request<Action>) -> Result<(), Status> {
        refused(actions::NO_SAVEPOINTS)
    }

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        let caller = Self::caller(&request)?;
        self.cancel_query(&caller.user, &query)
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<<Self as FlightService>::DoActionStream>, Status> {
        let caller = Self::caller(&request)?;
        let bodies = self.other_action(&caller, &request.into_inner()).await?;
        let results = bodies.into_iter().map(|body| Ok(ActionResult { body }));
        Ok(Response::new(stream::iter(results).boxed()))
    }

    async fn list_custom_actions(&self) -> Option<Vec<Result<ActionType, Status>>> {
        Some(actions::types().into_iter().map(Ok).collect())
    }

    async fn get_flight_info_fallback(
        &self,
        command: Command,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        Err(Status::unimplemented(format!("{}: is no command that has rows", command.type_url())))
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}
