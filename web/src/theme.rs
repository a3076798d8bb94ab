//! Light or dark: the system's choice until the reader makes one, which is then remembered.

use leptos::prelude::*;

use crate::browser;

/// Key of the setting in the browser's storage.
const STORED_AS: &str = "speedmatrix.theme";

/// Which colours are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// As the system says.
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

impl Theme {
    /// The remembered theme.
    pub fn remembered() -> Self {
        Self::read(browser::stored(STORED_AS).as_deref())
    }

    fn read(text: Option<&str>) -> Self {
        match text {
            Some("light") => Self::Light,
            Some("dark") => Self::Dark,
            _ => Self::System,
        }
    }

    const fn name(self) -> Option<&'static str> {
        match self {
            Self::System => None,
            Self::Light => Some("light"),
            Self::Dark => Some("dark"),
        }
    }

    /// The other one of light and dark.
    #[must_use]
    pub fn switched(self) -> Self {
        let dark = match self {
            Self::System => browser::system_is_dark(),
            Self::Light => false,
            Self::Dark => true,
        };
        if dark { Self::Light } else { Self::Dark }
    }
}

/// Keeps the page's colours and the remembered setting as `theme` says.
pub fn follow(theme: RwSignal<Theme>) {
    Effect::new(move |_| {
        let Some(root) = document().document_element() else { return };
        if let Some(name) = theme.get().name() {
            root.set_attribute("data-theme", name).ok();
            browser::store(STORED_AS, name);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_theme_reads_back() {
        for theme in [Theme::System, Theme::Light, Theme::Dark] {
            assert_eq!(Theme::read(theme.name()), theme);
        }
        assert_eq!(Theme::read(Some("blue")), Theme::System);
    }
}
