//! The few things the app asks of the browser beside drawing: focus, title, clipboard, storage, time. Each is a small
//! effect that may fail without harm; what fails is simply not done.

use leptos::prelude::{document, request_animation_frame, window};
use wasm_bindgen::JsCast as _;

use crate::base;

/// Takes the element with this id out of the page.
pub fn remove(id: &str) {
    if let Some(element) = document().get_element_by_id(id) {
        element.remove();
    }
}

/// Moves the focus to the element with this id, if it is there.
pub fn focus(id: &str) {
    let element = document().get_element_by_id(id).and_then(|e| e.dyn_into::<web_sys::HtmlElement>().ok());
    if let Some(element) = element {
        element.focus().ok();
    }
}

/// Moves the focus to the page's content without scrolling, as after a change of page.
pub fn focus_content() {
    let element = document().get_element_by_id("main").and_then(|e| e.dyn_into::<web_sys::HtmlElement>().ok());
    if let Some(element) = element {
        let options = web_sys::FocusOptions::new();
        options.set_prevent_scroll(true);
        element.focus_with_options(&options).ok();
    }
}

/// Whether nobody works anywhere: the element that had the focus is gone, or it is the page's content as a whole.
fn is_focus_free() -> bool {
    document().active_element().is_none_or(|active| active.tag_name() == "BODY" || active.id() == "main")
}

/// Moves the focus to the element with this id, unless a person has gone on to another one meanwhile.
pub fn focus_if_free(id: &str) {
    if is_focus_free() {
        focus(id);
    }
}

/// Where the element that had the focus is gone, the page's content gets it.
pub fn rescue_focus() {
    if is_focus_free() {
        focus_content();
    }
}

/// Wall time on this machine, milliseconds since 1970 UTC.
pub fn unix_ms() -> u64 {
    js_sys::Date::now() as u64
}

/// Sets the page's title: `PAGE · Speedmatrix`.
pub fn set_title(page: &str) {
    document().set_title(&format!("{page} · Speedmatrix"));
}

/// Copies text; says whether the browser let it. Clipboards need a secure context (https or this machine).
pub async fn copy(text: String) -> bool {
    if !window().is_secure_context() {
        return false;
    }
    let promise = window().navigator().clipboard().write_text(&text);
    wasm_bindgen_futures::JsFuture::from(promise).await.is_ok()
}

/// Offers a text to the person as a file of that name.
pub fn save_as(name: &str, content_type: &str, text: &str) {
    let link = document().create_element("a").ok().and_then(|link| link.dyn_into::<web_sys::HtmlElement>().ok());
    let Some(link) = link else { return };
    let address = format!("data:{content_type};charset=utf-8,{}", js_sys::encode_uri_component(text));
    let set = link.set_attribute("href", &address).and_then(|()| link.set_attribute("download", name));
    if set.is_ok() {
        link.click();
    }
}

/// A stored setting.
pub fn stored(key: &str) -> Option<String> {
    window().local_storage().ok()??.get_item(key).ok()?
}

/// Stores a setting; private windows may refuse, and then it lasts as long as the page.
pub fn store(key: &str, value: &str) {
    if let Ok(Some(storage)) = window().local_storage() {
        storage.set_item(key, value).ok();
    }
}

/// Whether the system asks for dark colours.
pub fn system_is_dark() -> bool {
    window().match_media("(prefers-color-scheme: dark)").ok().flatten().is_some_and(|query| query.matches())
}

/// The page's width in CSS pixels.
pub fn width_px() -> u32 {
    let width = window().inner_width().ok().and_then(|width| width.as_f64());
    width.unwrap_or(0.0) as u32
}

/// Whether the page is in a hidden tab.
pub fn is_hidden() -> bool {
    document().hidden()
}

/// Wall time on this machine: `12:04`.
pub fn local_time() -> String {
    let now = js_sys::Date::new_0();
    format!("{:02}:{:02}", now.get_hours(), now.get_minutes())
}

/// A number from 0 to 1 by chance.
pub fn chance() -> f64 {
    js_sys::Math::random()
}

/// Loads the page again, as after an update of the agent.
pub fn reload() {
    window().location().reload().ok();
}

/// The address of a WebSocket at `path` of the agent that served this page.
pub fn socket_address(path: &str) -> Option<String> {
    let location = window().location();
    let scheme = if location.protocol().ok()? == "https:" { "wss" } else { "ws" };
    Some(format!("{scheme}://{}{}", location.host().ok()?, base::at(path)))
}

/// How many pixels of the screen a CSS pixel has.
pub fn pixel_ratio() -> f64 {
    window().device_pixel_ratio().clamp(1.0, 4.0)
}

/// The colour behind an element as the style sheets have it, such as `rgb(12, 34, 56)`.
pub fn background(element: &web_sys::Element) -> Option<String> {
    window().get_computed_style(element).ok()??.get_property_value("background-color").ok()
}

/// Moves the focus to the first element that `selector` finds, in the next frame: after the page was drawn anew.
pub fn focus_later(selector: String) {
    request_animation_frame(move || {
        let element = document().query_selector(&selector).ok().flatten();
        if let Some(element) = element.and_then(|e| e.dyn_into::<web_sys::HtmlElement>().ok()) {
            element.focus().ok();
        }
    });
}

/// As [`focus_later`], but only if the focus is on nothing by then: what had it is gone.
pub fn focus_later_if_lost(selector: String) {
    request_animation_frame(move || {
        if document().active_element().is_none_or(|element| element.tag_name() == "BODY") {
            focus_later(selector);
        }
    });
}
