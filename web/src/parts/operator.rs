//! What only those see who may act.

use leptos::prelude::*;

use crate::{base::at, shell::Shell};

/// Shows its children to who may act.
#[component]
pub fn ForOperator(
    /// What they see.
    children: ChildrenFn,
) -> impl IntoView {
    let may_act = Shell::of_app().may_act;
    move || may_act.get().then(|| children())
}

/// `Viewer` or `Operator`, where the agent tells them apart.
#[component]
pub fn RoleBadge() -> impl IntoView {
    let shell = Shell::of_app();
    move || {
        let role = match shell.access.get() {
            crate::enter::Access::As(role) if shell.guarded.get() => role,
            _ => return None,
        };
        Some(view! { <a class="badge role" href=at("/settings") data-testid="role">{role.label()}</a> })
    }
}
