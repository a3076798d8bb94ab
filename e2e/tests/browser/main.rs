//! What people do, in a real Chromium on the simulator. `cargo xtask test` sets `AGENT_BIN`, `CHROMEDRIVER`,
//! `CHROMIUM` and `AXE_JS`; `SHOTS=FOLDER` keeps screenshots.
//!
//! What people want to do, and the tests that do it:
//!
//! 1. First visit, the sample's report: `reference`.
//! 2. The demonstration from the first visit to its report: `run::the_demo_is_one_click_from_the_first_visit`.
//! 3. Set-up by mouse: `setup_ways::a_run_is_set_up_by_mouse`, `setup::cells_are_painted_by_mouse_and_by_keyboard`.
//! 4. Set-up by keyboard: `setup_ways::a_run_is_set_up_by_keyboard_only`.
//! 5. Every error at its field: `setup::every_error_stands_at_its_field`, `setup_ways::each_problem_leads_to_its_field`.
//! 6. A server that can't be measured: `setup_ways::every_failure_of_a_look_says_what_to_do`.
//! 7. Cells that don't fit or queue: `setup_ways::cells_that_do_not_fit_say_why_and_those_that_queue_stay`.
//! 8. The plan as a command: `setup_ways::a_copied_command_measures_the_same_plan`; as a file: `a_plan_goes_into_a_file…`.
//! 9. Two browsers, equal text: `run::a_run_fills_in_two_browsers_and_becomes_a_report`.
//! 10. A viewer: `door::a_viewer_watches_without_controls_and_sees_why`.
//! 11. A cut network: `live::nothing_is_missing_after_the_network_was_cut`.
//! 12. A killed agent: `resume::an_interrupted_run_goes_on_and_is_completed`, `live::a_page_hears_an_agent_that_comes_back`.
//! 13. Pause, resume, skip, stop: `steer`.
//! 14. Metric and scope: `report::metric_and_scope_stay_in_the_address`.
//! 15. A cell by Enter and back: `cell::a_cell_opens_by_enter_and_gives_the_focus_back`.
//! 16. The table and its file: `report::the_table_sorts_and_filters_and_its_file_equals_it`.
//! 17. A comparison passed on: `compare::two_runs_are_picked_compared_and_passed_on`.
//! 18. A run against itself: `compare::a_run_against_itself_and_against_nothing`.
//! 19. Runs without a common cell: `compare::a_running_run_is_followed_and_runs_without_a_common_cell_say_so`.
//! 20. Files dropped on the page: `runs::files_are_imported_or_say_why_not`.
//! 21. Names, tags, search, delete, undo: `runs::a_run_is_renamed_tagged_and_found`, `runs::a_deleted_run_comes_back…`.
//! 22. Notes with markup: `runs::notes_with_markup_are_text`.
//! 23. A thousand cells: `report::a_thousand_cells_open_and_scroll`.
//! 24. 2, 9, 14 and 17 on a telephone: `phone`, and the second browser of 9.
//! 25. Accessible in both themes and with forced colours: `looks`, `opened`, `runs_looks`, `cell`, `compare`.
//! 26. A print: `report::a_print_has_every_row_and_nothing_to_press`.
//! 27. The report as a file: `report::the_page_as_a_file_opens_from_disk_without_a_network`.
//! 28. Another version: `live::another_version_offers_to_reload`.
//! 29. Links: `door::a_link_for_one_run_is_made_opened_and_taken_back`.
//! 30. Odd names: `runs_looks::odd_names_fit_in_both_themes_with_menus_and_dialogs`, `report::odd_runs_open_and_fit`.

mod base;
mod cell;
mod compare;
mod door;
mod history;
mod live;
mod looks;
mod odd;
mod opened;
mod phone;
mod reference;
mod relay;
mod report;
mod resume;
mod rig;
mod run;
mod runs;
mod runs_looks;
mod setup;
mod setup_ways;
mod steer;
