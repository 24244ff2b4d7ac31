//! The service that answers calls: that of the crate of the protocol, and `GetSchema`, for which that has no place.

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{Any, Command};
use arrow_flight::{
    Action, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, PollInfo, SchemaResult, Ticket,
};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use super::Flight;

/// [`Flight`], whole.
#[derive(Clone)]
pub(crate) struct WholeFlight(pub(crate) Flight);

type Answer<T> = Result<Response<T>, Status>;

// `async_trait` stands here for the signatures that the crate of the protocol has.
#[tonic::async_trait]
impl FlightService for WholeFlight {
    type HandshakeStream = <Flight as FlightService>::HandshakeStream;
    type ListFlightsStream = <Flight as FlightService>::ListFlightsStream;
    type DoGetStream = <Flight as FlightService>::DoGetStream;
    type DoPutStream = <Flight as FlightService>::DoPutStream;
    type DoActionStream = <Flight as FlightService>::DoActionStream;
    type ListActionsStream = <Flight as FlightService>::ListActionsStream;
    type DoExchangeStream = <Flight as FlightService>::DoExchangeStream;

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        let command = Any::decode(request.get_ref().cmd.clone()).ok().and_then(|any| Command::try_from(any).ok());
        let schema = match command {
            Some(Command::CommandStatementQuery(query)) => {
                let session = Flight::session(&request).await?;
                self.0.columns_of(&session, query).await?
            }
            Some(Command::CommandPreparedStatementQuery(query)) => {
                let caller = Flight::caller(&request)?;
                self.0.columns_of_prepared(&caller.user, &query.prepared_statement_handle).await?
            }
            Some(_) => {
                let caller = Flight::caller(&request)?;
                let info = self.get_flight_info(request).await?.into_inner();
                self.0.cancel(&caller.user, &info)?;
                info.schema
            }
            None => return Err(Status::invalid_argument("the descriptor holds no command of Flight SQL")),
        };
        Ok(Response::new(SchemaResult { schema }))
    }

    async fn handshake(&self, request: Request<Streaming<HandshakeRequest>>) -> Answer<Self::HandshakeStream> {
        self.0.handshake(request).await
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        self.0.list_flights(request).await
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        self.0.get_flight_info(request).await
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<PollInfo> {
        self.0.poll_flight_info(request).await
    }

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        self.0.do_get(request).await
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        self.0.do_put(request).await
    }

    async fn do_exchange(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        self.0.do_exchange(request).await
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        self.0.do_action(request).await
    }

    async fn list_actions(&self, request: Request<Empty>) -> Answer<Self::ListActionsStream> {
        self.0.list_actions(request).await
    }
}
