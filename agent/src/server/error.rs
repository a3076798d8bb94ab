//! Every answer that is no success, as problem+json: a stable code, and one sentence that says what to do.

use std::fmt::Display;

use axum::{
    Json,
    extract::{FromRequest, Request},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::de::DeserializeOwned;
use speedmatrix_shared::{
    api::Problem,
    id::IdError,
    label::Labels,
    plan::{Field, FieldError},
};

use super::listen::TooSlow;
use crate::{
    hub::TellError,
    runs::{StartError, StopError},
    store::StoreError,
};

/// A refused request.
#[derive(Debug)]
pub(super) struct Refusal {
    code: &'static str,
    status: StatusCode,
    detail: String,
    fields: Vec<FieldError>,
    labels: Option<Box<Labels>>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Display) -> Self {
        Self { code, status, detail: detail.to_string(), fields: Vec::new(), labels: None }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { code, status, detail, fields, labels } = self;
        let problem = Problem { code: code.into(), status: status.as_u16(), detail, fields, labels };
        (status, [(header::CONTENT_TYPE, "application/problem+json")], Json(problem)).into_response()
    }
}

impl From<IdError> for Refusal {
    fn from(error: IdError) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let (status, code) = match &error {
            StoreError::NoSuchRun(_) => (StatusCode::NOT_FOUND, "not_found"),
            StoreError::Running(_) => (StatusCode::CONFLICT, "run_running"),
            StoreError::TooManyPasses { .. } => (StatusCode::CONFLICT, "too_many_links"),
            StoreError::Label(_) => (StatusCode::UNPROCESSABLE_ENTITY, "label_invalid"),
            StoreError::LabelsChanged { now, .. } => {
                let labels = Some(now.clone());
                return Self { labels, ..Self::new(StatusCode::CONFLICT, "labels_changed", error) };
            }
            StoreError::DamagedRun { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "run_damaged"),
            StoreError::DamagedRaw { .. } | StoreError::Refused { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "store_failed")
            }
            // The others name files of the host, which are for those who read its log.
            _ => {
                tracing::error!("{error}");
                return Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store_failed", error.plain());
            }
        };
        Self::new(status, code, error)
    }
}

impl From<StartError> for Refusal {
    fn from(error: StartError) -> Self {
        let error = match error {
            StartError::Load(error) | StartError::Store(TellError::Store(error)) => return error.into(),
            other => other,
        };
        let (status, code) = match &error {
            StartError::Plan(errors) => {
                let fields = errors.0.clone();
                return Self { fields, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "plan_invalid", error) };
            }
            StartError::Corpus(wrong) => {
                let fields = vec![FieldError { field: Field::Corpus, message: wrong.to_string() }];
                return Self { fields, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "plan_invalid", error) };
            }
            StartError::Busy(_) | StartError::Unstored { .. } => (StatusCode::CONFLICT, "busy"),
            StartError::Target(_) => (StatusCode::BAD_GATEWAY, "target_unreachable"),
            StartError::Store(_) | StartError::Load(_) => (StatusCode::INTERNAL_SERVER_ERROR, "store_failed"),
            StartError::NothingOpen(_) => (StatusCode::CONFLICT, "run_over"),
            StartError::NotAPair(_) => (StatusCode::CONFLICT, "not_a_pair"),
            StartError::Imported(_) => (StatusCode::CONFLICT, "run_imported"),
            StartError::Changed(_) => (StatusCode::CONFLICT, "server_changed"),
            StartError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        };
        Self::new(status, code, error)
    }
}

impl From<StopError> for Refusal {
    fn from(error: StopError) -> Self {
        match error {
            StopError::Over(_) => Self::new(StatusCode::CONFLICT, "run_over", error),
            StopError::NotOpen(_) => Self::new(StatusCode::CONFLICT, "cell_not_open", error),
            StopError::Elsewhere(_) => Self::new(StatusCode::CONFLICT, "run_elsewhere", error),
            StopError::Store(error) => error.into(),
        }
    }
}

/// A body of JSON; what is wrong with one is a problem like any other.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(rejection) if is_too_slow(&rejection) => Err(body_slow()),
            Err(rejection) => {
                let detail = format!("the body was not understood ({}): send JSON of that kind", rejection.body_text());
                Err(Refusal::new(rejection.status(), "body_invalid", detail))
            }
        }
    }
}

/// Whether a body was given up because it came too slowly.
pub(super) fn is_too_slow(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(<dyn std::error::Error>::is::<TooSlow>)
}

/// A body that came too slowly.
pub(super) fn body_slow() -> Refusal {
    let detail = "what was sent came too slowly or stopped in the middle: try again on a better line";
    Refusal::new(StatusCode::REQUEST_TIMEOUT, "body_slow", detail)
}

/// A path that knows other methods.
pub(super) async fn method_not_allowed() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not know that method")
}

/// A path of the interface that there is not.
pub(super) fn no_such_path(path: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "not_found", format!("there is nothing at {path}: check its spelling"))
}
