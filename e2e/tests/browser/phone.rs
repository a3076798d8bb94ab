//! What people do on a telephone, 390 pixels wide: the same steps as on a wide screen. That two browsers show the same run,
//! one of them so narrow, is in `run`.

use anyhow::Result;

use crate::{compare, report, run};

/// Width and height of a telephone, CSS pixels.
const PHONE: (u32, u32) = (390, 844);

#[tokio::test]
async fn the_demo_is_one_touch_from_the_first_visit() -> Result<()> {
    run::demo_from_first_use(PHONE.0, PHONE.1).await
}

#[tokio::test]
async fn metric_and_scope_stay_in_the_address_on_a_phone() -> Result<()> {
    report::metric_and_scope(PHONE.0, PHONE.1).await
}

#[tokio::test]
async fn two_runs_are_compared_on_a_phone() -> Result<()> {
    compare::picked_compared_and_passed_on(PHONE.0, PHONE.1).await
}
