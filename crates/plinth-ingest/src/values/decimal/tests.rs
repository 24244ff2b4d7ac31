use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn usual_decimals_are_those_of_any_spelling(
        text in "[-+]?[0-9]{0,12}[.e]?[0-9]{0,8}",
        precision in 1_u8..=38,
        scale in -3_i8..=20,
    ) {
        if let Some(value) = usual_decimal(&text, precision, scale) {
            let any = any_decimal(&text, precision, scale).map_err(Cow::into_owned);
            prop_assert_eq!(any, Ok(i256::from_i128(value.into())), "{}", text);
        }
    }
}

#[test]
fn decimals_are_exact_or_refused() {
    let d = |text, p, s| decimal(text, p, s).ok().and_then(i256::to_i128);
    assert_eq!(d("1.50", 5, 2), Some(150));
    assert_eq!(d("-1.5", 5, 2), Some(-150));
    assert_eq!(d("1.500", 5, 2), Some(150));
    assert_eq!(d("1.505", 5, 2), None);
    assert_eq!(d("1e2", 5, 2), Some(10_000));
    assert_eq!(d("1e3", 5, 2), None);
    assert_eq!(d("99999e-2", 5, 2), Some(99_999));
    assert_eq!(d("1200", 5, -2), Some(12));
    assert_eq!(d("1250", 5, -2), None);
    assert_eq!(d("0e9999", 5, 2), Some(0));
    for bad in ["", ".", "-", "1.2.3", "1 ", "--1", "e5", "1e", "1e99999999"] {
        assert_eq!(d(bad, 38, 2), None, "{bad}");
    }
}
