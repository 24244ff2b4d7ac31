//! The dialect of SQL: the parser's generic one, with `IS [NOT] DISTINCT FROM` as tight as `IS NULL`.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

/// The generic dialect, but for one operator: the parser takes all that follows `IS DISTINCT FROM` for its right side, so
/// that `a IS DISTINCT FROM b AND c` would be `a IS DISTINCT FROM (b AND c)`.
#[derive(Debug)]
pub(crate) struct PlinthDialect;

/// Whether a column of a SELECT begins here.
fn begins_column(parser: &Parser) -> bool {
    match &parser.get_current_token().token {
        Token::Comma => true,
        Token::Word(word) => matches!(word.keyword, Keyword::SELECT | Keyword::DISTINCT),
        _ => false,
    }
}

fn is_glob(word: &Word) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case("glob")
}

/// `x GLOB 'a*'`, which becomes a regular expression later.
fn glob(dialect: &PlinthDialect, parser: &mut Parser, expr: &Expr) -> Option<Result<Expr, ParserError>> {
    let negated = matches!(&parser.peek_token_ref().token, Token::Word(word) if word.keyword == Keyword::NOT);
    let at = usize::from(negated);
    if !matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if is_glob(word)) {
        return None;
    }
    for _ in 0..=at {
        parser.next_token();
    }
    let right = match parser.parse_subexpr(dialect.prec_value(Precedence::Like)) {
        Ok(right) => right,
        Err(error) => return Some(Err(error)),
    };
    let op = BinaryOperator::Custom(if negated { "NOT GLOB" } else { "GLOB" }.to_owned());
    Some(Ok(Expr::BinaryOp { left: Box::new(expr.clone()), op, right: Box::new(right) }))
}

/// Answers as the generic dialect does.
macro_rules! as_generic {
    ($($question:ident),* $(,)?) => {
        $(fn $question(&self) -> bool {
            GenericDialect.$question()
        })*
    };
}

impl Dialect for PlinthDialect {
    // What the parser asks of a dialect by its type, it is to be told of the generic one.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        GenericDialect.is_identifier_part(ch)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let Token::Word(word) = parser.peek_token_ref().token.clone() else { return None };
        match (&parser.peek_nth_token_ref(1).token, &parser.peek_nth_token_ref(2).token) {
            // j -> 'key' takes a value out of JSON, though it looks like a lambda.
            (Token::Arrow, Token::SingleQuotedString(_) | Token::Number(..)) => {
                Some(parser.parse_identifier().map(Expr::Identifier))
            }
            // SELECT a: 1
            (Token::Colon, _) if begins_column(parser) => {
                let span = parser.peek_token_ref().span;
                parser.next_token();
                parser.next_token();
                let name = word.into_ident(span);
                Some(parser.parse_expr().map(|expr| Expr::Named { expr: Box::new(expr), name }))
            }
            _ => None,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            // 2 * 3 ^ 2
            Token::Caret => Some(Ok(self.prec_value(Precedence::MulDivModOp) + 1)),
            // j ->> 'a' = 'b'
            Token::Arrow | Token::LongArrow => Some(Ok(self.prec_value(Precedence::PlusMinus) - 1)),
            Token::Word(word) if is_glob(word) => Some(Ok(self.prec_value(Precedence::Like))),
            Token::Word(word) if word.keyword == Keyword::NOT => match &parser.peek_nth_token_ref(1).token {
                Token::Word(word) if is_glob(word) => Some(Ok(self.prec_value(Precedence::Like))),
                _ => None,
            },
            _ => None,
        }
    }

    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, _: u8) -> Option<Result<Expr, ParserError>> {
        if let Some(matches) = glob(self, parser, expr) {
            return Some(matches);
        }
        let make = if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            Expr::IsDistinctFrom
        } else if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
            Expr::IsNotDistinctFrom
        } else {
            return None;
        };
        let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
        Some(right.map(|right| make(Box::new(expr.clone()), Box::new(right))))
    }

    // 1_000_000
    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_alter_column_type_using(&self) -> bool {
        true
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }

    // x -> x + 1
    fn supports_lambda_functions(&self) -> bool {
        true
    }

    as_generic! {
        supports_unicode_string_literal, supports_partition_by_after_order_by, supports_array_join_syntax,
        supports_group_by_expr, supports_group_by_with_modifier, supports_left_associative_joins_without_parens,
        supports_connect_by, supports_match_recognize, supports_pipe_operator, supports_start_transaction_modifier,
        supports_window_function_null_treatment_arg, supports_dictionary_syntax,
        supports_window_clause_named_window_reference, supports_parenthesized_set_variables,
        supports_select_wildcard_except, support_map_literal_syntax, allow_extract_custom,
        allow_extract_single_quotes, supports_extract_comma_syntax, supports_create_view_comment_syntax,
        supports_parens_around_table_factor, supports_values_as_table_factor, supports_create_index_with_clause,
        supports_explain_with_utility_options, supports_limit_comma, supports_update_order_by,
        supports_from_first_select, supports_projection_trailing_commas, supports_asc_desc_in_column_definition,
        supports_try_convert, supports_bitwise_shift_operators, supports_comment_on, supports_load_extension,
        supports_named_fn_args_with_assignment_operator, supports_struct_literal, supports_empty_projections,
        supports_nested_comments, supports_multiline_comment_hints, supports_user_host_grantee,
        supports_string_escape_constant, supports_array_typedef_with_brackets, supports_match_against,
        supports_set_names, supports_comma_separated_set_assignments, supports_filter_during_aggregation,
        supports_select_wildcard_exclude, supports_data_type_signed_suffix, supports_interval_options,
        supports_quote_delimited_string, supports_select_wildcard_replace, supports_select_wildcard_ilike,
        supports_select_wildcard_rename, supports_optimize_table, supports_install, supports_detach,
        supports_prewhere, supports_with_fill, supports_limit_by, supports_interpolate, supports_settings,
        supports_select_format, supports_comment_optimizer_hint, supports_constraint_keyword_without_name,
        supports_key_column_option, supports_comma_separated_trim, supports_cte_without_as,
        supports_select_item_multi_column_alias, supports_xml_expressions,
    }
}
