//! The order of joins that costs least, by estimates.
//!
//! Relations are bits of a set. What a set of them joins to does not depend on the order: the product of their rows, divided for each pair
//! of columns that are equal by the number of values of the column that has more of them. What a join costs is counted in rows:
//! those that are gathered, those that are looked up, and those that come out.

/// Relations up to which all orders are weighed; above it the cheapest next pair is joined each time.
const WHOLE: usize = 10;

/// Relations that a set has room for.
pub(super) const MOST: usize = 64;

/// What a gathered row costs, beside one that is looked up.
const GATHERED: f64 = 3.0;
/// What a row costs that a join filter drops within its scan.
const DROPPED: f64 = 0.3;
/// What any join costs.
const JOIN: f64 = 100.0;

/// Relations, as bits.
pub(super) type Set = u64;

/// What is joined.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) relations: Vec<Relation>,
    /// Columns that are equal in all rows of the result, by class.
    pub(super) classes: Vec<Vec<Member>>,
    pub(super) conditions: Vec<Condition>,
}

/// A relation of a join.
#[derive(Debug)]
pub(super) struct Relation {
    /// Rows after its filters.
    pub(super) rows: f64,
    /// Rows before them.
    pub(super) all: f64,
}

/// A column that is equal to others.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) relation: usize,
    /// Its values, before filters.
    pub(super) distinct: f64,
}

/// A condition on rows of several relations.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) relations: Set,
    /// The share of rows that it holds for.
    pub(super) selectivity: f64,
}

/// An order of joins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Leaf(usize),
    /// The side that is gathered, and the one whose rows are looked up in it.
    Join(Box<Tree>, Box<Tree>),
}

impl Tree {
    /// The relations in it.
    pub(super) fn relations(&self) -> Set {
        match self {
            Self::Leaf(relation) => 1 << relation,
            Self::Join(left, right) => left.relations() | right.relations(),
        }
    }
}

/// The best way to a set.
#[derive(Clone, Debug)]
struct Way {
    tree: Tree,
    set: Set,
    cost: f64,
    rows: f64,
}

/// The relations of a set.
pub(super) fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..MOST).filter(move |relation| set >> relation & 1 == 1)
}

impl Graph {
    /// The rows that the relations of a set join to.
    pub(super) fn rows(&self, set: Set) -> f64 {
        let product: f64 = members(set).filter_map(|at| self.relations.get(at)).map(|relation| relation.rows).product();
        let conditions = self.conditions.iter().filter(|condition| condition.relations & !set == 0);
        let selectivity: f64 = conditions.map(|condition| condition.selectivity).product();
        product * selectivity / self.divisor(set)
    }

    /// By what equal columns divide the rows of a product. Several columns that two relations are joined by have no more values
    /// together than the smaller relation has rows, whose key they mostly are.
    fn divisor(&self, set: Set) -> f64 {
        let mut pairs: Vec<(usize, usize, Vec<usize>)> = Vec::new();
        for (class, of_class) in self.classes.iter().enumerate() {
            let inside: Vec<usize> =
                of_class.iter().map(|member| member.relation).filter(|at| set >> at & 1 == 1).collect();
            for (at, &one) in inside.iter().enumerate() {
                for &other in &inside[at + 1..] {
                    let (one, other) = (one.min(other), one.max(other));
                    match pairs.iter_mut().find(|(a, b, _)| (*a, *b) == (one, other)) {
                        Some((.., shared)) => shared.push(class),
                        None if one != other => pairs.push((one, other, vec![class])),
                        None => {}
                    }
                }
            }
        }
        let distinct = |class: usize, relation: usize| {
            let of_class = self.classes.get(class).into_iter().flatten();
            let values = of_class.filter(|member| member.relation == relation).map(|member| member.distinct);
            values.fold(1.0, f64::max)
        };
        let of_pair = |(one, other, shared): &(usize, usize, Vec<usize>)| -> f64 {
            shared.iter().map(|class| distinct(*class, *one).max(distinct(*class, *other))).product()
        };
        // Those that share most are joined first, then those with most values: each class joins its members once.
        pairs.sort_by(|a, b| b.2.len().cmp(&a.2.len()).then(of_pair(b).total_cmp(&of_pair(a))));
        let mut joined: Vec<Vec<usize>> = vec![(0..self.relations.len()).collect(); self.classes.len()];
        let mut divisor = 1.0;
        for (one, other, shared) in pairs {
            let (mut product, mut largest) = (1.0, 1.0_f64);
            for class in shared {
                let Some(groups) = joined.get_mut(class) else { continue };
                let (Some(&a), Some(&b)) = (groups.get(one), groups.get(other)) else { continue };
                if a != b {
                    groups.iter_mut().filter(|group| **group == b).for_each(|group| *group = a);
                    let values = distinct(class, one).max(distinct(class, other));
                    product *= values;
                    largest = largest.max(values);
                }
            }
            let all = |at: usize| self.relations.get(at).map_or(1.0, |relation| relation.all);
            divisor *= product.min(all(one).min(all(other)).max(largest));
        }
        divisor
    }

    /// Whether some column of one set equals one of the other.
    fn joins(&self, one: Set, other: Set) -> bool {
        self.classes.iter().any(|class| {
            let inside = |set: Set| class.iter().any(|member| set >> member.relation & 1 == 1);
            inside(one) && inside(other)
        })
    }

    /// The join of two ways to so many rows, the cheaper way round.
    fn join(one: &Way, other: &Way, rows: f64) -> Way {
        let set = one.set | other.set;
        let (left, right) = if one.rows <= other.rows { (one, other) } else { (other, one) };
        let cost = left.cost + right.cost + cost(left.rows, right.rows, rows);
        let tree = Tree::Join(Box::new(left.tree.clone()), Box::new(right.tree.clone()));
        Way { tree, set, cost, rows }
    }

    fn leaf(&self, relation: usize) -> Way {
        let rows = self.relations.get(relation).map_or(1.0, |relation| relation.rows);
        Way { tree: Tree::Leaf(relation), set: 1 << relation, cost: 0.0, rows }
    }

    /// What an order costs, with the sides as they are.
    pub(super) fn cost(&self, tree: &Tree) -> f64 {
        let Tree::Join(left, right) = tree else { return 0.0 };
        let rows = |tree: &Tree| self.rows(tree.relations());
        self.cost(left) + self.cost(right) + cost(rows(left), rows(right), rows(tree))
    }

    /// The order that costs least, if all relations are joined by equal columns.
    pub(super) fn best(&self) -> Option<Tree> {
        if self.relations.len() > MOST {
            return None;
        }
        let way = if self.relations.len() <= WHOLE { self.whole() } else { self.greedy() };
        way.map(|way| way.tree)
    }

    /// All orders, from small sets to large ones.
    fn whole(&self) -> Option<Way> {
        let count = self.relations.len();
        let mut ways: Vec<Option<Way>> = vec![None; 1 << count];
        for set in 1..1_usize << count {
            if set.is_power_of_two() {
                ways[set] = Some(self.leaf(set.trailing_zeros() as usize));
                continue;
            }
            let mut best: Option<Way> = None;
            // The same for all divisions, and asked for only if there is one.
            let mut rows = None;
            // Each division once: one half has the lowest relation.
            let mut one = (set - 1) & set;
            while one > 0 {
                let other = set & !one;
                if one & (set & set.wrapping_neg()) != 0
                    && let (Some(left), Some(right)) = (&ways[one], &ways[other])
                    && self.joins(one as Set, other as Set)
                {
                    // What the halves cost alone may be too much.
                    let bound = best.as_ref().map_or(f64::INFINITY, |best| best.cost);
                    if left.cost + right.cost < bound {
                        let rows = *rows.get_or_insert_with(|| self.rows(set as Set));
                        let way = Self::join(left, right, rows);
                        if way.cost < bound {
                            best = Some(way);
                        }
                    }
                }
                one = (one - 1) & set;
            }
            ways[set] = best;
        }
        ways.pop().flatten()
    }

    /// Each time the pair that costs least.
    fn greedy(&self) -> Option<Way> {
        let mut ways: Vec<Way> = (0..self.relations.len()).map(|relation| self.leaf(relation)).collect();
        while ways.len() > 1 {
            let mut best: Option<(usize, usize, Way, f64)> = None;
            for one in 0..ways.len() {
                for other in one + 1..ways.len() {
                    if !self.joins(ways[one].set, ways[other].set) {
                        continue;
                    }
                    let rows = self.rows(ways[one].set | ways[other].set);
                    let way = Self::join(&ways[one], &ways[other], rows);
                    let more = way.cost - ways[one].cost - ways[other].cost;
                    if best.as_ref().is_none_or(|(.., least)| more < *least) {
                        best = Some((one, other, way, more));
                    }
                }
            }
            let (one, other, way, _) = best?;
            ways.swap_remove(other);
            ways[one] = way;
        }
        ways.pop()
    }
}

/// What one join costs.
pub(super) fn cost(gathered: f64, looked_up: f64, out: f64) -> f64 {
    JOIN + GATHERED * gathered + DROPPED * looked_up + looked_up.min(out) + out
}

#[cfg(test)]
mod tests {
    use plinth_core::random::Random;

    use super::*;

    /// A relation for each number of rows, all its rows wanted; classes of (relation, values).
    fn graph(rows: &[(f64, f64)], classes: &[&[(usize, f64)]]) -> Graph {
        Graph {
            relations: rows.iter().map(|(rows, all)| Relation { rows: *rows, all: *all }).collect(),
            classes: classes
                .iter()
                .map(|class| {
                    class
                        .iter()
                        .map(|(relation, distinct)| Member { relation: *relation, distinct: *distinct })
                        .collect()
                })
                .collect(),
            conditions: Vec::new(),
        }
    }

    fn trees(set: Set) -> Vec<Tree> {
        if set.is_power_of_two() {
            return vec![Tree::Leaf(set.trailing_zeros() as usize)];
        }
        let mut all = Vec::new();
        let mut one = (set - 1) & set;
        while one > 0 {
            for left in trees(one) {
                for right in trees(set & !one) {
                    all.push(Tree::Join(Box::new(left.clone()), Box::new(right)));
                }
            }
            one = (one - 1) & set;
        }
        all
    }

    fn without_products(graph: &Graph, tree: &Tree) -> bool {
        let Tree::Join(left, right) = tree else { return true };
        graph.joins(left.relations(), right.relations())
            && without_products(graph, left)
            && without_products(graph, right)
    }

    #[test]
    fn no_order_costs_less_than_the_best() {
        for seed in 0..60 {
            let random = &mut Random(seed);
            let count = 2 + random.index(4);
            let rows: Vec<(f64, f64)> = (0..count)
                .map(|_| {
                    let all = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5][random.index(6)];
                    (all * [1.0, 0.5, 0.01][random.index(3)], all)
                })
                .collect();
            // Each but the first is joined to one before it, and some to others.
            let mut classes: Vec<Vec<(usize, f64)>> = Vec::new();
            for relation in 1..count {
                let other = random.index(relation);
                classes.push(vec![(relation, rows[relation].1), (other, rows[other].1.min(rows[relation].1))]);
                if random.index(3) == 0
                    && let Some(class) = classes.first_mut().filter(|class| class.iter().all(|(at, _)| *at != relation))
                {
                    class.push((relation, 7.0));
                }
            }
            let slices: Vec<&[(usize, f64)]> = classes.iter().map(Vec::as_slice).collect();
            let graph = graph(&rows, &slices);
            let best = graph.best().expect("they are joined");
            let least = trees((1 << count) - 1)
                .iter()
                .filter(|tree| without_products(&graph, tree))
                .map(|tree| graph.cost(tree))
                .fold(f64::INFINITY, f64::min);
            // The larger side is never gathered, which costs least wherever it is weighed.
            assert!(graph.cost(&best) <= least * (1.0 + 1e-9), "seed {seed}: {} beside {least}", graph.cost(&best));
        }
    }

    #[test]
    fn keys_of_several_columns_have_no_more_values_than_their_relation_rows() {
        let both: [&[(usize, f64)]; 2] = [&[(0, 200e3), (1, 200e3)], &[(0, 10e3), (1, 10e3)]];
        let graph = graph(&[(6e6, 6e6), (800e3, 800e3)], &both);
        assert!((graph.rows(3) - 6e6).abs() < 1.0, "{}", graph.rows(3));
    }

    #[test]
    fn many_relations_are_joined_pair_by_pair() {
        let rows: Vec<(f64, f64)> = (0..40).map(|at| (f64::from(at) + 1.0, 100.0)).collect();
        let classes: Vec<Vec<(usize, f64)>> = (1..40).map(|at| vec![(0, 100.0), (at, 100.0)]).collect();
        let slices: Vec<&[(usize, f64)]> = classes.iter().map(Vec::as_slice).collect();
        let tree = graph(&rows, &slices).best().expect("they are joined");
        assert_eq!(tree.relations(), (1 << 40) - 1);
    }

    #[test]
    fn what_nothing_joins_has_no_order() {
        assert_eq!(graph(&[(1.0, 1.0), (2.0, 2.0)], &[]).best(), None);
        assert_eq!(graph(&[], &[]).best(), None);
    }
}
