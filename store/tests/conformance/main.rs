//! What every store must do, run against a local directory, memory, and S3's protocol.
//!
//! The S3 run needs python3 with `moto[server]`, or a bucket of one's own in ANTIPHON_TEST_S3_URL (`s3://bucket/prefix`,
//! with the usual AWS_* variables). Without either it is skipped with a word, or fails where ANTIPHON_REQUIRE_S3=1.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, unreachable_pub)]

mod catalog;
mod objects;
mod s3;
mod shards;

use antiphon_store::Store;

macro_rules! conformance {
    ($($module:ident :: $check:ident),* $(,)?) => {
        mod file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $check() {
                let temp = tempfile::tempdir().unwrap();
                let store = super::Store::open(&format!("file://{}", temp.path().display())).unwrap();
                super::$module::$check(store).await;
            })*
        }
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $check() {
                super::$module::$check(super::Store::open("memory://").unwrap()).await;
            })*
        }
        /// One test, for all share one server.
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn s3_conforms() {
            let Some(bucket) = s3::Bucket::start() else { return };
            $(
                println!("s3: {}", stringify!($check));
                $module::$check(bucket.store(stringify!($check))).await;
            )*
        }
    };
}

conformance! {
    objects::of_16_racers_one_wins_each_of_50_names,
    objects::what_was_written_is_read,
    objects::lists_are_sorted_and_begin_after,
    objects::deleting_takes_what_it_was_told,
    objects::files_go_up_and_down,
    objects::invalid_paths_are_refused,
    shards::log_positions_are_taken_once,
    shards::an_entry_is_appended_once_however_often_it_is_tried,
    shards::sixteen_writers_share_one_log,
    shards::a_gap_is_not_read_over,
    shards::damaged_entries_are_errors,
    shards::manifests_have_one_winner,
    shards::a_stale_manifest_is_lost,
    shards::a_damaged_newest_manifest_is_an_error,
    shards::a_sleeper_at_a_collected_position_is_fenced,
    shards::a_slow_writer_at_the_tail_is_not_fenced,
    catalog::concurrent_updates_lose_none,
    catalog::an_empty_store_has_an_empty_catalog,
    catalog::refusals_and_no_changes_write_nothing,
    catalog::old_versions_go_and_blind_nobody,
}
