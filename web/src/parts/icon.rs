//! Line icons of 16 × 16. They always stand beside words or on a button that has a name.

use leptos::prelude::*;

/// Which icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icon {
    /// Something to look at.
    Warning,
    /// Good to know.
    Info,
    /// Failed, or close.
    Cross,
    /// Waiting in a queue.
    Queue,
    /// Two sheets: copy.
    Copy,
    /// Done.
    Check,
    /// Out of the app.
    Download,
    /// In from elsewhere.
    Import,
    /// A moon: dark or light.
    Moon,
    /// A wave: not a real server.
    Simulated,
    /// A plus: new.
    Plus,
    /// A square: stop.
    Stop,
    /// A triangle: start.
    Play,
    /// A lock: something was taken out.
    Lock,
    /// A lens: look at it.
    Look,
    /// An arrow in a circle: again.
    Again,
    /// A pin: stays on top.
    Pin,
    /// Three dots: more to do.
    More,
    /// An arrow back: take it back.
    Undo,
}

impl Icon {
    const fn path(self) -> &'static str {
        match self {
            Self::Warning => "M8 2.5L14.2 13H1.8zM8 6.8v2.8M8 11.3v.1",
            Self::Info => "M8 2.2a5.8 5.8 0 110 11.6 5.8 5.8 0 010-11.6zM8 7.3v3.6M8 5v.1",
            Self::Cross => "M4 4l8 8M12 4l-8 8",
            Self::Queue => "M3 4h10M3 8h10M3 12h6",
            Self::Copy => {
                "M6 5.5h6.5a1 1 0 011 1V13a1 1 0 01-1 1H6a1 1 0 01-1-1V6.5M10.5 5V3a1 1 0 00-1-1H3.5a1 1 0 00-1 1v6a1 1 0 001 1H5"
            }
            Self::Check => "M3 8.5l3.3 3.2L13 4.6",
            Self::Download => "M8 2.5v8M4.8 7.5L8 10.7l3.2-3.2M3 13.5h10",
            Self::Import => "M8 10.5v-8M4.8 5.5L8 2.3l3.2 3.2M3 13.5h10",
            Self::Moon => "M13.2 9.7A5.6 5.6 0 016.3 2.8a5.6 5.6 0 106.9 6.9z",
            Self::Simulated => "M1.8 8c1.5-5 3.1-5 4.6 0s3.1 5 4.6 0 2.3-4 3.2-2.3",
            Self::Plus => "M8 3v10M3 8h10",
            Self::Stop => "M4 4h8v8H4z",
            Self::Play => "M5 3.2l7.5 4.8L5 12.8z",
            Self::Lock => "M3.5 7h9v6.5h-9zM5.5 7V5a2.5 2.5 0 015 0v2",
            Self::Look => "M7 2.8a4.2 4.2 0 110 8.4 4.2 4.2 0 010-8.4zM10.2 10.2l3.4 3.4",
            Self::Again => "M13 8a5 5 0 11-1.6-3.7M13 2.3v3h-3",
            Self::Pin => "M5.2 2.2h5.6M6 2.2v4.3L4.2 9h7.6L10 6.5V2.2M8 9v4.8",
            Self::More => "M3.4 8h.1M8 8h.1M12.6 8h.1",
            Self::Undo => "M6 3.5L3 6.5l3 3M3 6.5h6.2a3.5 3.5 0 010 7H6.5",
        }
    }
}

/// An icon, hidden from those who are read to.
pub fn icon(icon: Icon) -> impl IntoView {
    view! {
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
            <path d=icon.path()></path>
        </svg>
    }
}
