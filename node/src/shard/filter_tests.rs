//! Filters over a shard that changes, against a model: rows that the cache kept are those that an evaluation by
//! definition finds, in the newest view and in older ones.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antiphon_proto::deadline::Deadline;
use antiphon_proto::store::{LogOp, log_op::Op};
use antiphon_proto::v1::filter::Condition;
use antiphon_proto::v1::value::Kind;
use antiphon_proto::v1::{
    AttributeField, AttributeType, Document, Equal, Exists, Filter, FilterList, Range, Schema, Value,
};
use antiphon_store::Store;
use proptest::prelude::*;

use super::{Shard, ShardContext};
use crate::cache::{CacheConfig, SegmentCache};
use crate::config::NodeConfig;
use crate::schema::ShardSchema;
use crate::search::{FilterCache, MatchingRows, Stop};
use crate::view::View;

/// What a document has in the attributes [`NAMES`].
type Held = [Option<i64>; 2];
/// Documents by key.
type Model = BTreeMap<u8, Held>;

/// The second is declared later, when documents have it already.
const NAMES: [&str; 2] = ["size", "later"];

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<(u8, Held)>),
    Delete(Vec<u8>),
    Seal,
    Merge,
    Reopen { adds_attribute: bool },
}

fn number(number: i64) -> Value {
    Value { kind: Some(Kind::Int64(number)) }
}

fn held() -> impl Strategy<Value = Held> {
    [prop::option::of(-2i64..3), prop::option::of(-2i64..3)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec((0u8..60, held()), 1..20).prop_map(Step::Write),
        2 => prop::collection::vec(0u8..60, 1..10).prop_map(Step::Delete),
        2 => Just(Step::Seal),
        2 => Just(Step::Merge),
        1 => any::<bool>().prop_map(|adds_attribute| Step::Reopen { adds_attribute }),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let field = || prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned);
    let leaf = prop_oneof![
        (field(), -2i64..3).prop_map(|(field, value)| Condition::Equal(Equal { field, value: Some(number(value)) })),
        (field(), -2i64..3, any::<bool>()).prop_map(|(field, bound, below)| {
            let (gte, lt) = if below { (None, Some(number(bound))) } else { (Some(number(bound)), None) };
            Condition::Range(Range { field, gte, lt, ..Range::default() })
        }),
        field().prop_map(|field| Condition::Exists(Exists { field })),
    ];
    leaf.prop_map(|condition| Filter { condition: Some(condition) }).prop_recursive(2, 6, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3).prop_map(|filters| FilterList { filters });
        prop_oneof![
            list.clone().prop_map(Condition::AllOf),
            list.prop_map(Condition::SomeOf),
            inner.prop_map(|inner| Condition::Not(Box::new(inner))),
        ]
        .prop_map(|condition| Filter { condition: Some(condition) })
    })
}

/// Whether a document meets a filter, by definition.
fn meets(filter: &Filter, held: &Held) -> bool {
    let of = |field: &str| NAMES.iter().position(|name| *name == field).and_then(|place| held[place]);
    let integer = |value: &Option<Value>| match value.as_ref().map(|value| value.kind.as_ref().unwrap()) {
        Some(Kind::Int64(number)) => Some(*number),
        _ => None,
    };
    match filter.condition.as_ref().unwrap() {
        Condition::Equal(equal) => of(&equal.field).is_some_and(|held| integer(&equal.value) == Some(held)),
        Condition::Range(range) => of(&range.field).is_some_and(|held| {
            integer(&range.gte).is_none_or(|bound| held >= bound) && integer(&range.lt).is_none_or(|bound| held < bound)
        }),
        Condition::Exists(exists) => of(&exists.field).is_some(),
        Condition::AllOf(list) => list.filters.iter().all(|filter| meets(filter, held)),
        Condition::SomeOf(list) => list.filters.iter().any(|filter| meets(filter, held)),
        Condition::Not(inner) => !meets(inner, held),
        Condition::AnyOf(_) => unreachable!("not made here"),
    }
}

/// Whether it asks for the attribute that is declared later.
fn needs_later(filter: &Filter) -> bool {
    match filter.condition.as_ref().unwrap() {
        Condition::Equal(Equal { field, .. })
        | Condition::Range(Range { field, .. })
        | Condition::Exists(Exists { field }) => field == NAMES[1],
        Condition::AllOf(list) | Condition::SomeOf(list) => list.filters.iter().any(needs_later),
        Condition::Not(inner) => needs_later(inner),
        Condition::AnyOf(_) => unreachable!("not made here"),
    }
}

async fn open(store: &Store, num_attributes: usize) -> Shard {
    let mut config = NodeConfig::default();
    config.sealing.age = Duration::from_secs(3_600);
    config.merging.idle = Duration::from_secs(3_600);
    config.poll_interval = Duration::from_secs(3_600);
    let cache = SegmentCache::open(None, &CacheConfig::default()).unwrap();
    let context = ShardContext { store: store.clone(), config: Arc::new(config), cache, threads: 1 };
    let attribute = |name: &&str| AttributeField { name: (*name).into(), r#type: AttributeType::Integer as i32 };
    let attributes = NAMES[..num_attributes].iter().map(attribute).collect();
    let schema = Schema { attributes, ..Schema::default() };
    let schema = Arc::new(ShardSchema::resolve_version(&schema, num_attributes as u32 - 1).unwrap());
    Shard::open("u/0".parse().unwrap(), schema, context).await.unwrap()
}

async fn take(shard: &Shard, step: &Step, model: &mut Model) {
    let key = |key: &u8| format!("d{key}");
    let op = |op| LogOp { op: Some(op) };
    let mut ops = match step {
        Step::Write(documents) => {
            model.extend(documents.iter().copied());
            let upsert = |(number_of_key, held): &(u8, Held)| {
                let fields = NAMES.iter().zip(held);
                let fields = fields.filter_map(|(name, held)| Some(((*name).to_owned(), number((*held)?)))).collect();
                op(Op::Upsert(Document { key: key(number_of_key), fields, ..Document::default() }))
            };
            documents.iter().map(upsert).collect()
        }
        Step::Delete(keys) => {
            model.retain(|key, _| !keys.contains(key));
            keys.iter().map(|number| op(Op::DeleteKey(key(number)))).collect()
        }
        Step::Seal => return shard.core.seal().await.unwrap(),
        Step::Merge => return shard.core.merge(shard.current().sealed.clone()).await.unwrap(),
        Step::Reopen { .. } => return,
    };
    shard.write(&mut ops, Deadline::after(Duration::from_secs(20))).await.unwrap();
}

/// Asks a filter twice, and compares with the model.
fn agree(view: &View, schema: &ShardSchema, filter: &Filter, model: &Model, cache: &Arc<FilterCache>, is_kept: bool) {
    let (stop, _guard) = Stop::new(Deadline::after(Duration::from_secs(20)));
    let expected: Vec<String> =
        model.iter().filter(|(_, held)| meets(filter, held)).map(|(key, _)| format!("d{key}")).collect();
    let ask = || MatchingRows::new(Some(filter), schema, cache).unwrap();
    let (first, again) = (ask(), ask());
    let first = first.of(view, &stop).unwrap().unwrap();
    let again = again.of(view, &stop).unwrap().unwrap();
    for sets in [first, again] {
        let keys = view.segments().zip(sets).flat_map(|(segment, matches)| {
            assert_eq!(matches.len() as usize, matches.rows().iter().count());
            matches.rows().iter().map(move |row| segment.segment().rows().key(row).to_owned())
        });
        let mut keys: Vec<String> = keys.collect();
        keys.sort_by_key(|key| key[1..].parse::<u8>().unwrap());
        assert_eq!(keys, expected, "{filter:?}");
    }
    let is_shared = first.iter().zip(again).all(|(first, again)| Arc::ptr_eq(first, again));
    assert!(first.is_empty() || is_shared == is_kept, "the second answer is the first one's exactly if it is kept");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn kept_rows_are_those_of_an_evaluation_whatever_happened_to_the_shard(
        steps in prop::collection::vec(step(), 1..14),
        filters in prop::collection::vec(filter(), 1..5),
        is_kept in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let cache = Arc::new(FilterCache::of_small_segments(if is_kept { 1 << 24 } else { 0 }));
            let store = Store::open("memory://").unwrap();
            let (mut num_attributes, mut model) = (1, Model::new());
            let mut shard = open(&store, num_attributes).await;
            let mut earlier: Vec<(Arc<View>, Arc<ShardSchema>, Model)> = Vec::new();
            for step in &steps {
                if let Step::Reopen { adds_attribute } = step {
                    num_attributes = if *adds_attribute { 2 } else { num_attributes };
                    shard.stop().await;
                    shard = open(&store, num_attributes).await;
                }
                take(&shard, step, &mut model).await;
                earlier.push((shard.current(), Arc::clone(shard.schema()), model.clone()));
                // Views in turns, so that each finds what another left behind.
                for (view, schema, model) in earlier.iter().rev().take(4) {
                    for filter in &filters {
                        if needs_later(filter) && schema.attributes.len() == 1 {
                            assert!(MatchingRows::new(Some(filter), schema, &cache).is_err());
                        } else {
                            agree(view, schema, filter, model, &cache, is_kept);
                        }
                    }
                }
            }
            shard.stop().await;
        });
    }
}
