//! Starts the browser app.

fn main() {
    speedmatrix_web::start();
}
