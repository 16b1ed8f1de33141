//! A booking in three steps. Kill the worker in the middle and start it again: what is booked is not booked twice.
//!
//! `durable-mcp serve &` and then `cargo run -p durable-mcp-worker --example steps`

use std::time::Duration;

use durable_mcp_worker::schemars::{self, JsonSchema};
use durable_mcp_worker::{Context, Delivery, Failure, Retry, RunError, Tool, ToolError, Worker};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Trip {
    city: String,
    #[serde(default = "one")]
    nights: u32,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize, Serialize)]
struct Reservation {
    id: String,
}

#[derive(Serialize)]
struct Booking {
    flight: Reservation,
    hotel: Reservation,
    letter: String,
}

async fn book_trip(args: Trip, ctx: Context) -> Result<Booking, Failure> {
    let Trip { city, nights } = &args;
    if *nights < 1 {
        Err(ToolError::new("a trip has at least one night"))?;
    }
    let flight = ctx.step("flight", || reserve("flight", city, ctx.effect_key())).await?;
    ctx.progress(1.0, Some(3.0), Some("the flight is booked"));
    let hotel = ctx.step("hotel", || reserve("hotel", city, ctx.effect_key())).await?;
    ctx.progress(2.0, Some(3.0), Some("the hotel is booked"));
    let text = format!("Flight {}, hotel {}, {nights} nights in {city}.", flight.id, hotel.id);
    let letter = ctx.step("letter", async || Ok(text)).await?;
    Ok(Booking { flight, hotel, letter })
}

/// Stands for a request to a service that knows idempotency keys: the same key books once.
async fn reserve(what: &str, city: &str, key: &str) -> Result<Reservation, Failure> {
    sleep(Duration::from_secs(3)).await;
    if key.is_empty() {
        Err(Retry::new("the service is busy").after(Duration::from_secs(2)).not_started())?;
    }
    let end = &key[key.len().saturating_sub(4)..];
    Ok(Reservation { id: format!("{what}-{city}-{end}").to_lowercase() })
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let tool = Tool::new("book_trip")
        .description("Books a flight, then a hotel, then writes the confirmation.")
        .delivery(Delivery::AtLeastOnce)
        .timeout(Duration::from_secs(300))
        .max_attempts(5);
    Worker::new().name("travel").tool(tool, book_trip).run().await
}
