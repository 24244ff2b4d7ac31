//! Parameters of lambdas, which are no columns: `x -> x + 1`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr};

use crate::names::normal;

/// The parameters of the lambdas that are open, while an expression is visited.
#[derive(Default)]
pub(super) struct Lambdas {
    params: Vec<String>,
}

impl Lambdas {
    /// An expression is about to be visited.
    pub(super) fn enter(&mut self, expr: &Expr) {
        if let Expr::Lambda(lambda) = expr {
            self.params.extend(lambda.params.iter().map(|param| normal(&param.name)));
        }
    }

    /// The parts of an expression have been visited.
    pub(super) fn leave(&mut self, expr: &Expr) {
        if let Expr::Lambda(lambda) = expr {
            let before = self.params.len().saturating_sub(lambda.params.iter().count());
            self.params.truncate(before);
        }
    }

    /// Whether a name is a parameter here.
    pub(super) fn has(&self, name: &str) -> bool {
        self.params.iter().any(|param| param == name)
    }

    /// A name of a value that would be a parameter here, and means something else where it was written.
    pub(super) fn taken(&self, value: &Expr) -> Option<String> {
        if self.params.is_empty() {
            return None;
        }
        let taken = ast::visit_expressions(value, |expr| match expr {
            Expr::Identifier(name) if self.has(&normal(name)) => ControlFlow::Break(normal(name)),
            _ => ControlFlow::Continue(()),
        });
        match taken {
            ControlFlow::Break(name) => Some(name),
            ControlFlow::Continue(()) => None,
        }
    }
}
