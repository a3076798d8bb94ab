//! What all pages share: how the connection to the agent stands, who else watches, and the colours.

use leptos::{ev, prelude::*};
use speedmatrix_shared::api::{Info, PROTOCOL};

use crate::{browser, enter::Access, theme::Theme};

/// How much room the page has across. Charts are drawn for it, so that their texts keep their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// A phone: one narrow column.
    Narrow,
    /// A tablet or half a screen: one wide column.
    Middle,
    /// Two columns.
    Wide,
}

impl Room {
    /// The room of a width in CSS pixels; the limits are those of the style sheets.
    const fn of(width_px: u32) -> Self {
        match width_px {
            ..=720 => Self::Narrow,
            721..=1100 => Self::Middle,
            _ => Self::Wide,
        }
    }
}

/// How the connection to the agent stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Conn {
    /// Nothing came yet.
    #[default]
    Opening,
    /// The agent answers.
    Connected,
    /// The agent does not answer; what is shown is from earlier.
    Lost {
        /// Local time of the last sign of life, `12:04`.
        since: String,
        /// Attempts to reach it since then.
        attempts: u32,
        /// Seconds to the next attempt.
        retry_in_s: u32,
    },
    /// The agent speaks another version than this page.
    Outdated {
        /// The agent's version.
        agent: String,
    },
}

impl Conn {
    /// The agent said who it is.
    pub fn answered(info: &Info) -> Self {
        if info.protocol == PROTOCOL { Self::Connected } else { Self::Outdated { agent: info.version.clone() } }
    }

    /// No answer came and nothing asks again by itself.
    pub fn offline() -> Self {
        Self::Lost { since: browser::local_time(), attempts: u32::MAX, retry_in_s: 0 }
    }

    /// The word beside the dot. It says "offline" after a few attempts in vain.
    pub fn word(&self) -> String {
        match self {
            Self::Opening => "Connecting…".into(),
            Self::Connected => "Connected".into(),
            Self::Lost { attempts: 0..=2, retry_in_s, .. } => format!("Reconnecting… {retry_in_s} s"),
            Self::Lost { .. } => "Offline".into(),
            Self::Outdated { .. } => "Another version".into(),
        }
    }

    /// What follows the word where there is room.
    pub fn more(&self) -> Option<String> {
        match self {
            Self::Lost { since, attempts: 3.., .. } => Some(format!(", showing data from {since}")),
            _ => None,
        }
    }

    /// Its class in the style sheet.
    pub const fn class(&self) -> &'static str {
        match self {
            Self::Opening => "conn",
            Self::Connected => "conn on",
            Self::Lost { attempts: 0..=2, .. } => "conn wait",
            Self::Lost { .. } | Self::Outdated { .. } => "conn off",
        }
    }

    /// Whether what is shown may be old.
    pub const fn is_stale(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Outdated { .. })
    }
}

/// What all pages share.
#[derive(Debug, Clone, Copy)]
pub struct Shell {
    /// How the connection stands.
    pub conn: RwSignal<Conn>,
    /// How many pages watch the same run; `None` where no run is shown.
    pub watching: RwSignal<Option<u32>>,
    /// Version of an agent that is not the one this page came from, though they understand each other.
    pub newer: RwSignal<Option<String>>,
    /// What this page may do.
    pub access: RwSignal<Access>,
    /// Whether it may start, change and delete.
    pub may_act: Memo<bool>,
    /// Whether the agent asks who looks.
    pub guarded: RwSignal<bool>,
    /// Light or dark.
    pub theme: RwSignal<Theme>,
    /// How much room there is.
    pub room: Memo<Room>,
}

impl Shell {
    /// The state of a page that has just been opened.
    pub fn opening() -> Self {
        let width_px = RwSignal::new(browser::width_px());
        let handle = window_event_listener(ev::resize, move |_| width_px.set(browser::width_px()));
        on_cleanup(move || handle.remove());
        let access = RwSignal::new(Access::Unknown);
        Self {
            access,
            may_act: Memo::new(move |_| access.get().may_act()),
            guarded: RwSignal::new(false),
            room: Memo::new(move |_| Room::of(width_px.get())),
            conn: RwSignal::new(Conn::Opening),
            watching: RwSignal::new(None),
            newer: RwSignal::new(None),
            theme: RwSignal::new(Theme::remembered()),
        }
    }

    /// The agent said its version, in words that this page understands.
    pub fn meet(&self, version: String) {
        let newer = Some(version).filter(|version| version != env!("CARGO_PKG_VERSION"));
        if self.newer.with_untracked(|known| *known != newer) {
            self.newer.set(newer);
        }
    }

    /// The agent said what this page may do.
    pub fn learn(&self, info: &Info) {
        self.conn.set(Conn::answered(info));
        self.guarded.set(info.is_guarded);
        let told = Access::told(info);
        if self.access.get_untracked() != told {
            self.access.set(told);
        }
    }

    /// The shell of this app.
    pub fn of_app() -> Self {
        expect_context()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_turns_into_offline_after_a_few_attempts() {
        let lost = |attempts| Conn::Lost { since: "12:04".into(), attempts, retry_in_s: 3 };
        assert_eq!(lost(1).word(), "Reconnecting… 3 s");
        assert_eq!(lost(3).word(), "Offline");
        assert_eq!((lost(1).more(), lost(3).more().as_deref()), (None, Some(", showing data from 12:04")));
        assert!(lost(1).is_stale() && !Conn::Connected.is_stale());
    }
}
