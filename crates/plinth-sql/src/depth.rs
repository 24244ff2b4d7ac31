//! Statements that are deep: they become shallow, or are refused, before anything follows them down.
//!
//! A chain such as `a OR b OR c` is as deep as it is long once it is parsed, and what the engine and the parser do with it follows
//! each level on the stack. So the text of a statement is looked at first. One that may be deep is parsed on a thread of its
//! own with a large stack; there, chains of AND, OR and UNION become trees whose depth is the logarithm of their length, and a
//! statement that is deep nevertheless is an error.

use std::ops::ControlFlow;

use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{CopyToSource, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SetExpr, SetOperator, SetQuantifier, Value, Values, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::meaning::PlinthDialect;
use super::{habits, literals, structs};
use crate::error::{Result, SqlError};

/// Most levels that an expression has, and most names of a WITH.
const MOST: usize = 1_000;

/// Most tables that a query joins: each join of a plan has a schema of all columns so far, so memory grows with the square.
const MOST_TABLES: usize = 300;

/// Most of UNION, EXCEPT and INTERSECT of several kinds that follow one another.
const MOST_SETS: usize = 300;

/// Most steps of a plan that follow one another: a level of a statement makes several, and views add theirs.
const MOST_STEPS: usize = 1_500;

/// Most types within types.
const MOST_TYPES: usize = 50;

/// Tokens that no stack is too small to parse.
const SHALLOW: usize = 200;

/// Tokens of which some may be too deep for the stack of the thread that parses them.
const BOTTOMLESS: usize = 200_000;

/// The stack of that thread, of which it takes what it needs.
const STACK: usize = 512 << 20;

/// Chains that are longer become trees. Others stay as they were written.
const CHAIN: usize = 64;

/// Splits a text into statements, none of which is deep.
///
/// # Errors
/// If any of them is not SQL, or deep: none is run then.
pub(crate) fn parse(text: &str) -> Result<Vec<Statement>> {
    let tokens = Tokenizer::new(&PlinthDialect, text).tokenize_with_location();
    let mut tokens = tokens.map_err(|error| DataFusionError::from(ParserError::from(error)))?;
    literals::plain(&mut tokens)?;
    structs::in_angles(&mut tokens);
    let Bound { tokens: bound, types } = Bound::of(&tokens);
    if types > MOST_TYPES {
        return Err(SqlError::new(format!("a type nests {types} deep, at most {MOST_TYPES} are taken")));
    }
    if bound <= SHALLOW {
        return shallow(parse_tokens(tokens)?);
    }
    if bound > BOTTOMLESS {
        return Err(SqlError::new(format!(
            "a chain of {bound} words and signs without a comma is too long, at most {BOTTOMLESS} are taken: IN (...) and \
             VALUES hold many values"
        )));
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("plinth-parse".to_owned()).stack_size(STACK);
        let parsing = thread.spawn_scoped(scope, || shallow(parse_tokens(tokens)?));
        let parsing = parsing.map_err(|error| SqlError::new(format!("can't start a thread: {error}")))?;
        parsing.join().map_err(|_| SqlError::new("the statement was given up: see above"))?
    })
}

fn parse_tokens(tokens: Vec<TokenWithSpan>) -> Result<Vec<Statement>> {
    let tokens = habits::syntax::rewrite(tokens)?;
    let parsed = DFParserBuilder::new(tokens).with_dialect(&PlinthDialect).build()?.parse_statements();
    parsed.map(Into::into).map_err(|error| match error.find_root() {
        DataFusionError::SQL(parser, _) if matches!(parser.as_ref(), ParserError::RecursionLimitExceeded) => {
            SqlError::new(
                "parentheses, subqueries or signs nest too deep: about 50 within one another are taken; WITH gives subqueries \
                 names",
            )
        }
        _ => error.into(),
    })
}

/// How deep a statement may be at most, by its tokens.
#[derive(Debug, Default, PartialEq, Eq)]
struct Bound {
    /// Tokens between commas, with those around the parentheses that they are within.
    tokens: usize,
    /// Types that have types.
    types: usize,
}

impl Bound {
    fn of(tokens: &[TokenWithSpan]) -> Self {
        let (mut most, mut whole, mut types, mut angles) = (Self::default(), 0_usize, 0, 0_usize);
        // For each parenthesis that is open the tokens since the last comma within it.
        let mut open = vec![0_usize];
        let mut before = &Token::EOF;
        for token in tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))) {
            match token {
                Token::LParen | Token::LBracket | Token::LBrace => open.push(0),
                Token::RParen | Token::RBracket | Token::RBrace if open.len() > 1 => {
                    whole -= open.pop().unwrap_or(0);
                    types += usize::from(matches!((before, token), (Token::LBracket, Token::RBracket)));
                }
                Token::Comma => {
                    whole -= open.last_mut().map_or(0, std::mem::take);
                    types = 0;
                }
                Token::SemiColon => (open, whole, types, angles) = (vec![0], 0, 0, 0),
                Token::Lt if is_type(before) => angles += 1,
                Token::Gt => angles = angles.saturating_sub(1),
                Token::ShiftRight => angles = angles.saturating_sub(2),
                _ => {}
            }
            if !matches!(token, Token::Comma | Token::SemiColon)
                && let Some(last) = open.last_mut()
            {
                *last += 1;
                whole += 1;
            }
            most = Self { tokens: most.tokens.max(whole), types: most.types.max(types + angles) };
            before = token;
        }
        most
    }
}

fn is_type(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.keyword, Keyword::ARRAY | Keyword::STRUCT | Keyword::MAP))
}

/// Statements with trees in the place of chains.
fn shallow(mut statements: Vec<Statement>) -> Result<Vec<Statement>> {
    for statement in &mut statements {
        let mut inner = statement;
        let mut explained = 0;
        while let Statement::Explain(explain) = inner {
            inner = explain.statement.as_mut();
            explained += 1;
            if explained > 1 {
                return Err(SqlError::new("EXPLAIN of EXPLAIN: explain the statement itself"));
            }
        }
        let mut visitor = Shallow { levels: 0 };
        let visited = match inner {
            Statement::Statement(inner) => inner.visit(&mut visitor),
            Statement::CopyTo(copy) => match &mut copy.source {
                CopyToSource::Query(query) => query.visit(&mut visitor),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        };
        if let ControlFlow::Break(deep) = visited {
            return Err(deep.into());
        }
    }
    Ok(statements)
}

/// What is too deep.
enum Deep {
    Expression,
    Joins(usize),
    Sets(usize),
    With(usize),
}

impl From<Deep> for SqlError {
    fn from(deep: Deep) -> Self {
        Self::new(match deep {
            Deep::Expression => format!(
                "an expression is more than {MOST} levels deep: compute parts of it in a subquery; chains of AND, OR and UNION may \
                 be longer, and IN (...) holds many values"
            ),
            Deep::Joins(count) => format!("a query joins {count} tables, at most {MOST_TABLES} are joined"),
            Deep::Sets(count) => format!(
                "{count} of UNION, EXCEPT and INTERSECT follow one another, at most {MOST_SETS} of several kinds may"
            ),
            Deep::With(count) => format!("WITH names {count} queries, at most {MOST} are taken"),
        })
    }
}

struct Shallow {
    levels: usize,
}

impl VisitorMut for Shallow {
    type Break = Deep;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Deep> {
        if let Some(names) = query.with.as_ref().map(|with| with.cte_tables.len()).filter(|count| *count > MOST) {
            return ControlFlow::Break(Deep::With(names));
        }
        let body = query.body.as_mut();
        balance(body, SetExpr::Values(Values { explicit_row: false, value_keyword: false, rows: Vec::new() }));
        let mut levels = 0;
        let mut left = Some(&*body);
        while let Some(SetExpr::SetOperation { left: further, .. }) = left {
            levels += 1;
            left = Some(further);
        }
        if levels > MOST_SETS {
            return ControlFlow::Break(Deep::Sets(levels));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Deep> {
        let tables: usize = select.from.iter().map(|from| from.joins.len() + 1).sum();
        if tables > MOST_TABLES { ControlFlow::Break(Deep::Joins(tables)) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Deep> {
        balance(expr, Expr::Value(Value::Null.into()));
        self.levels += 1;
        let steps = match expr {
            Expr::CompoundFieldAccess { access_chain, .. } => access_chain.len(),
            _ => 0,
        };
        if self.levels + steps > MOST { ControlFlow::Break(Deep::Expression) } else { ControlFlow::Continue(()) }
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<Deep> {
        self.levels -= 1;
        ControlFlow::Continue(())
    }
}

/// What chains are made of. It does not matter how the links of one are grouped.
trait Chain: Sized {
    /// What makes two links alike.
    type Link: PartialEq;

    fn link(&self) -> Option<Self::Link>;

    /// The sides of a link.
    fn left(&self) -> Option<&Self>;
    fn split(self) -> std::result::Result<(Self, Self), Self>;
    fn join(link: &Self::Link, left: Self, right: Self) -> Self;
}

impl Chain for Expr {
    type Link = BinaryOperator;

    fn link(&self) -> Option<BinaryOperator> {
        match self {
            Self::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => Some(op.clone()),
            _ => None,
        }
    }

    fn left(&self) -> Option<&Self> {
        if let Self::BinaryOp { left, .. } = self { Some(left) } else { None }
    }

    fn split(self) -> std::result::Result<(Self, Self), Self> {
        if let Self::BinaryOp { left, right, .. } = self { Ok((*left, *right)) } else { Err(self) }
    }

    fn join(op: &BinaryOperator, left: Self, right: Self) -> Self {
        Self::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
    }
}

impl Chain for SetExpr {
    type Link = SetQuantifier;

    fn link(&self) -> Option<SetQuantifier> {
        use SetQuantifier::{All, Distinct, None as Plain};
        match self {
            Self::SetOperation { op: SetOperator::Union, set_quantifier: how @ (All | Distinct | Plain), .. } => {
                Some(*how)
            }
            _ => None,
        }
    }

    fn left(&self) -> Option<&Self> {
        if let Self::SetOperation { left, .. } = self { Some(left) } else { None }
    }

    fn split(self) -> std::result::Result<(Self, Self), Self> {
        if let Self::SetOperation { left, right, .. } = self { Ok((*left, *right)) } else { Err(self) }
    }

    fn join(how: &SetQuantifier, left: Self, right: Self) -> Self {
        let (left, right) = (Box::new(left), Box::new(right));
        Self::SetOperation { op: SetOperator::Union, set_quantifier: *how, left, right }
    }
}

/// Makes a tree of a long chain.
fn balance<T: Chain>(whole: &mut T, nothing: T) {
    let Some(link) = whole.link() else { return };
    let chained = |part: &T| part.link().as_ref() == Some(&link);
    let mut links = 0;
    let mut part = Some(&*whole);
    while let Some(inner) = part.filter(|part| chained(part)) {
        links += 1;
        part = inner.left();
    }
    if links <= CHAIN {
        return;
    }
    let mut parts = Vec::with_capacity(links + 1);
    let mut rest = std::mem::replace(whole, nothing);
    while chained(&rest) {
        match rest.split() {
            Ok((left, right)) => {
                parts.push(right);
                rest = left;
            }
            Err(other) => {
                rest = other;
                break;
            }
        }
    }
    parts.push(rest);
    parts.reverse();
    while parts.len() > 1 {
        let mut pairs = Vec::with_capacity(parts.len().div_ceil(2));
        let mut links = parts.into_iter();
        while let Some(left) = links.next() {
            pairs.push(match links.next() {
                Some(right) => T::join(&link, left, right),
                None => left,
            });
        }
        parts = pairs;
    }
    if let Some(tree) = parts.pop() {
        *whole = tree;
    }
}

/// Refuses a plan whose steps follow one another for too long, as those of views of views do.
///
/// # Errors
/// If it is one.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut waiting = vec![(plan, 1)];
    while let Some((plan, steps)) = waiting.pop() {
        if steps > MOST_STEPS {
            return Err(SqlError::new(format!(
                "the plan is more than {MOST_STEPS} steps deep: make a table of a part of it (views of views add up)"
            )));
        }
        waiting.extend(plan.inputs().into_iter().map(|input| (input, steps + 1)));
    }
    Ok(())
}
