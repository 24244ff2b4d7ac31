//! Blocks that are stored like others of their column.

use plinth_encoding::{EncodeOptions, encode_like};

use super::model::{Row, column, rows};
use super::shapes::shapes;
use super::{encoded, null_patterns, open};

/// What a block comes to when it is stored like another: its rows again, always, and about as small as it was found to be if the other
/// was stored well.
#[test]
fn blocks_like_others_keep_their_rows() {
    let shapes = shapes();
    for shape in &shapes {
        let inputs: Vec<Vec<Row>> = [40, 3000].into_iter().flat_map(|len| null_patterns(&shape.rows(len))).collect();
        for input in [&inputs[0], &inputs[1], &inputs[inputs.len() / 2], &inputs[inputs.len() - 1]] {
            let (weighed, _) = encoded(shape.physical, input, shape.effort);
            let options = EncodeOptions { effort: shape.effort };
            for other in shapes.iter().filter(|other| other.physical == shape.physical) {
                let (like, _) = encoded(other.physical, &other.rows(2500), other.effort);
                let Some(recipe) = open(other.physical, &like, 2500).recipe() else { continue };
                let what = format!("{} like {}", shape.name, other.name);
                let mut out = Vec::new();
                let found =
                    encode_like(shape.physical, &column(shape.physical, input), &options, &recipe, &mut out).unwrap();
                let block = open(shape.physical, &out, input.len());
                assert_eq!(block.encoding(), found.encoding, "{what}");
                assert_eq!(rows(shape.physical, &block.decode(None).unwrap()), *input, "{what}: {}", block.describe());
                let mut again = Vec::new();
                encode_like(shape.physical, &column(shape.physical, input), &options, &recipe, &mut again).unwrap();
                assert_eq!(again, out, "{what}: the same input, other bytes");
            }
            let Some(own) = open(shape.physical, &weighed, input.len()).recipe() else { continue };
            let mut out = Vec::new();
            encode_like(shape.physical, &column(shape.physical, input), &options, &own, &mut out).unwrap();
            assert!(
                out.len() <= weighed.len() + weighed.len() / 8 + 64,
                "{}: {} like itself, {}",
                shape.name,
                out.len(),
                weighed.len()
            );
        }
    }
}
