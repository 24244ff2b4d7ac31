//! Scopes as spans of `tracing`.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use plinth_profile::{Stage, scope};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Listener {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "plinth"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        self.note(format!("new {} {:?}", span.metadata().name(), fields.0));
        Id::from_u64(u64::try_from(self.0.lock().unwrap().len()).unwrap())
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.note(format!("record {:?}", fields.0));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        self.note("enter".into());
    }

    fn exit(&self, _: &Id) {
        self.note("exit".into());
    }
}

#[test]
fn a_listener_hears_of_scopes_though_no_profiler_runs() {
    let listener = Listener::default();
    tracing::subscriber::with_default(listener.clone(), || {
        let decode = scope(Stage::Decode.of("fsst"));
        decode.rows(8192);
        drop(decode);
        let _filter = scope(Stage::Filter.nth(3));
    });
    let heard = listener.0.lock().unwrap().clone();
    let expected = [
        r#"new stage {"stage": "\"decode\""}"#,
        r#"record {"part": "\"fsst\""}"#,
        "enter",
        r#"record {"rows": "8192"}"#,
        "exit",
        r#"new stage {"stage": "\"filter\""}"#,
        r#"record {"part": "3"}"#,
        "enter",
        "exit",
    ];
    assert_eq!(heard, expected);
}
