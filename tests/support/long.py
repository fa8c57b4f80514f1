"""Which tests are long variants, besides those marked so where they stand: further parameters of what a shorter one proves already.

``make test`` leaves them out and says how many; ``make test-long`` runs all. Names as pytest prints them, below ``tests/``, with ``*``.
"""

from fnmatch import fnmatchcase

LONG = (
    # The walk-throughs of examples whose mechanisms other tests prove on applications of their own.
    "examples/test_captcha.py::*",
    "examples/test_inventory.py::*",
    "examples/test_inventory_faust.py::*",
    "examples/test_page_views.py::*",
    "examples/test_prices_whole.py::*",
    "examples/test_regions.py::*",
    "examples/test_reprocess.py::*",
    "examples/test_routing.py::*",
    "examples/test_stream_or_table.py::*",
    "examples/test_word_count.py::*",
    # Spark Connect's server proves that what is sent to another machine arrives; this, that two share the work.
    "spark/test_cluster.py::test_two_workers_compute_and_write",
    "spark/test_secured.py::test_what_the_application_wrote_is_rebuilt_after_it_is_lost?at_least_once?",
    # One guarantee, one protocol, one way to end each.
    "streams/test_resume.py::*?at_least_once-*",
    "streams/test_streams_live.py::*?classic?",
    "broker/test_topics_streams.py::*?classic?",
    "broker/test_offsets_streams.py::*?classic?",
    "broker/test_groups_delete.py::*?classic?",
    "sandbox/test_three_brokers.py::test_what_an_operator_sees_when_one_goes?stop?",
    "streams/test_killed.py::test_kops_ended_while_it_writes?9-exactly_once_v2-*",
    "streams/test_killed.py::test_kops_ended_while_it_writes?2-*",
    "streams/test_killed.py::test_the_broker_killed_and_back?reads-*",
    "streams/test_repartition_killed.py::*",
    "streams/test_harness.py::test_a_real_application_writes_what_the_driver_says?exactly_once_v2?",
    "replay/test_killed.py::test_killed_at_random_moments?how1-*",
    "replay/test_killed.py::test_killed_at_random_moments?how2-4?",
    "sandbox/test_fixtures.py::test_a_broker_that_is_killed_comes_back_with_its_topics_on_its_port",
    "broker/test_batch_producer.py::test_it_writes_over_tls_with_scram",
    "broker/test_batch_producer.py::test_a_broker_that_restarts_meanwhile_loses_and_doubles_nothing",
    "sandbox/test_command.py::test_two_sandboxes_run_side_by_side",
    "connect/test_databases.py::test_a_sink_writes_its_rows_again_and_fails_without_its_table",
    "streams/test_tables_application.py::test_a_table_whose_topic_is_its_changelog_is_explained_and_never_written",
    "streams/test_tables_application.py::test_a_versioned_store_is_made_anew_and_restored_with_its_partitions_and_the_application_takes_it",
    "streams/test_state_moves_refused.py::test_the_buffer_of_suppress_moves_with_its_headers_and_comes_back",
    # Further kinds of stores; each way of computing has one that stays.
    "streams/test_rebuild_application.py::*?table?",
    "streams/test_rebuild_application.py::*?concat?",
    "streams/test_refusals.py::test_a_record_that_cannot_be_decoded??xff?",
    "streams/test_refusals.py::test_a_record_that_cannot_be_decoded?{?",
    "streams/test_refusals.py::test_a_member_that_is_still_alive?classic?",
    "streams/test_tables_oracle.py::test_read_in_the_order_of_time_all_is_equal?left?",
    "streams/test_tables_oracle.py::test_read_in_any_order_a_join_differs_only_in_timestamps_that_it_doubts?outer?",
    "streams/test_tables_oracle.py::test_read_in_any_order_a_join_differs_only_in_timestamps_that_it_doubts?inner?",
    "streams/test_tables_oracle.py::test_read_in_any_order_groups_over_a_join_have_the_same_members?left?",
    "streams/test_tables_oracle.py::test_read_in_the_order_of_time_all_is_equal?regions-*",
    "streams/test_tables_oracle.py::test_read_in_the_order_of_time_all_is_equal?sum?",
    "streams/test_tables_oracle.py::test_read_in_the_order_of_time_all_is_equal?count?",
    "streams/test_tables_oracle.py::test_read_in_the_order_of_time_all_is_equal?versioned-inner?",
    "streams/test_tables_oracle.py::test_a_foreign_key_join_has_the_same_values_and_says_which_timestamps_are_sure?inner?",
    "streams/test_tables_oracle.py::test_several_topics_of_one_stream?last?",
    "streams/test_tables_oracle.py::test_several_topics_of_one_stream?max?",
    "streams/test_tables_oracle.py::test_kafka_streams_4_1_holds_the_same?[!f]*",
    "spark/test_windows.py::*?sliding-window-sum-*",
    "spark/test_windows.py::*?sliding-window-concat-*",
    "spark/test_windows.py::*?sliding-window-min-*",
    "spark/test_windows.py::*?window-sum-*",
    "spark/test_windows.py::*?window-max-*",
    "spark/test_windows.py::*?window-last-*",
    "spark/test_windows.py::*?session-max-*",
    "spark/test_windows.py::*?session-sum-*",
    "spark/test_windows.py::*?session-last-*",
    "spark/test_windows.py::*?session-first-*",
    "spark/test_windows.py::*?session-count-*",
    "spark/test_windows.py::*?window-concat-*",
    "spark/test_windows.py::*?window-first-*",
    "spark/test_windows.py::*?window-count-long-10-3-None?",
    "spark/test_windows_order.py::test_after_a_new_key_a_result_is_only_called_sure_when_every_order_gives_it?10000-*",
    "spark/test_windows_order.py::test_after_a_new_key_a_result_is_only_called_sure_when_every_order_gives_it?0-*",
    "spark/test_windows_order.py::test_after_a_new_key_the_order_of_one_partition_is_known?sliding-window?",
    "spark/test_added_up.py::test_windows?hopping-max?",
    "spark/test_added_up.py::test_windows?tumbling-count?",
    "spark/test_added_up.py::test_windows?expiring-min?",
    "spark/test_added_up.py::test_stores_of_keys?min?",
    "spark/test_added_up.py::test_stores_of_keys?max?",
    "spark/test_added_up.py::test_stores_of_keys?last?",
    "spark/test_whole_partitions.py::test_tasks_stage_what_spark_does?tumbling-count?",
    "spark/test_whole_partitions.py::test_tasks_stage_what_spark_does?sum?",
    "replay/test_killed.py::test_two_at_once_into_one_topic",
    "replay/test_quotas.py::test_slowed_down_in_the_middle?how0?",
    "connect/test_connectors.py::test_twenty_connectors_and_again_without_a_change",
    "broker/test_security.py::test_apaches_tool_connects_with_the_java_settings?files?",
)


def is_long(item):
    """Tell whether a test is a long variant."""
    name = item.nodeid.partition("tests/")[2]
    return item.get_closest_marker("long") is not None or any(fnmatchcase(name, pattern) for pattern in LONG)
