//! Data-parallel training: a small network learns to read handwritten digits, and the ranks share the work.
//!
//! ```sh
//! cargo build --release --bins --examples
//! target/release/phalanx run -n 4 -- target/release/examples/digits
//! ```
//!
//! Every rank holds the whole network and takes its part of each batch of images. A step is: compute the gradient
//! over the own part, add the gradients of all ranks with one allreduce, and apply the sum. All ranks get the same
//! bits out of the allreduce, so their networks stay equal without ever being sent again.
//!
//! For a given number of ranks every run gives the same loss, bit for bit: the order in which an allreduce adds does
//! not depend on who arrives first. Another number of ranks adds in another order; then the last digits of the loss
//! may differ, and the accuracy agrees.
//!
//! The data and its licence: `DATA.md` beside this file. Started without the launcher, the program is a world of one
//! rank.

#[path = "../shared/arguments.rs"]
mod arguments;
mod data;
mod network;
mod options;
mod random;
#[path = "../shared/start.rs"]
mod start;
#[path = "../shared/stopwatch.rs"]
mod stopwatch;

use std::ops::Range;
use std::process::ExitCode;

use phalanx::operator::{Max, Min, Sum};

use data::Images;
use network::Network;
use options::{Options, USAGE};
use random::Random;
use start::{Communicator, Result};
use stopwatch::Stopwatch;

/// The part of the last step that the next one keeps.
const MOMENTUM: f64 = 0.9;
/// How many times the training says where it is.
const REPORTS: usize = 6;

fn main() -> ExitCode {
    start::run("digits", USAGE, Options::parse, run)
}

/// The whole program on one rank. An error comes from a collective; everything else is said here.
fn run(world: &Communicator, options: &Options) -> Result<ExitCode> {
    // Only rank 0 touches the file.
    let read = match world.rank() {
        0 => Images::read(options.data.as_deref()).inspect_err(|error| eprintln!("digits: {error}")).ok(),
        _ => None,
    };
    match Images::broadcast(world, read)? {
        Some(images) => train(world, &images, options),
        None => Ok(ExitCode::FAILURE),
    }
}

/// Trains, tests and reports.
fn train(world: &Communicator, images: &Images, options: &Options) -> Result<ExitCode> {
    let leader = world.rank() == 0;

    // The same seed on every rank: the same split, and the same order of the images in every epoch.
    let mut random = Random::new(options.seed);
    let (mut training, test) = images.split(&mut random);

    // The seed would give equal weights as well. The broadcast makes it sure, and is what a program does whose
    // rank 0 reads its first weights from a file.
    let mut network = Network::new(options.hidden, &mut random);
    world.process_at_rank(0).broadcast_into(network.parameters_mut())?;

    let length = network.parameters().len();
    if leader {
        println!(
            "digits          ranks {}, training images {}, test images {}, parameters {length}",
            world.size(),
            training.len(),
            test.len()
        );
    }

    let watch = Stopwatch::start(world, &[world])?;
    let mut gradient = vec![0.0; length];
    let mut step = vec![0.0; length];
    let mut result = Evaluation::default();
    for epoch in 1..=options.epochs {
        random.shuffle(&mut training);
        for batch in training.chunks(options.batch) {
            // A rank whose part of the batch is empty adds zeros: every rank takes part in every collective.
            gradient.fill(0.0);
            for &image in &batch[part(batch.len(), world)] {
                let label = images.label(image);
                network.add_gradient(&images.pixels(image), label, &mut gradient);
            }
            watch.collective(|| world.all_reduce_in_place(&mut gradient, Sum))?;

            let rate = options.rate / batch.len() as f64;
            for ((parameter, step), slope) in network.parameters_mut().iter_mut().zip(&mut step).zip(&gradient) {
                *step = MOMENTUM * *step - rate * slope;
                *parameter += *step;
            }
        }
        // The epochs of the reports are spread evenly, and the last one is among them.
        if epoch * REPORTS / options.epochs > (epoch - 1) * REPORTS / options.epochs {
            result = evaluate(world, &watch, &network, images, &training, &test)?;
            if leader {
                println!(
                    "epoch {epoch:>5}     loss {:.6}, test accuracy {:.2} %",
                    result.loss,
                    100.0 * result.accuracy()
                );
            }
        }
    }
    let figures = watch.stop(world, &[world])?;
    let agreed = agree(world, network.parameters())?;

    if leader {
        println!("final loss      {:.12} (bits {:016x})", result.loss, result.loss.to_bits());
        println!("test accuracy   {:.2} % ({} of {})", 100.0 * result.accuracy(), result.right, result.tested);
        match agreed {
            Some(checksum) => {
                println!("parameters      checksum {checksum:016x}, the same on all ranks");
            }
            None => eprintln!("digits: the ranks ended with different parameters"),
        }
        println!("{figures}");
    }
    let converged = result.loss.is_finite();
    if leader && !converged {
        eprintln!("digits: the training diverged; try a smaller --rate");
    }
    Ok(if converged && agreed.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How well the network does.
#[derive(Default)]
struct Evaluation {
    /// Mean loss over the training images.
    loss: f64,
    /// Test images that were read right.
    right: usize,
    /// All test images.
    tested: usize,
}

impl Evaluation {
    /// The part of the test images that was read right.
    fn accuracy(&self) -> f64 {
        self.right as f64 / self.tested as f64
    }
}

/// Measures the loss over the training images and the accuracy over the test images, each rank over its part.
fn evaluate(
    world: &Communicator,
    watch: &Stopwatch,
    network: &Network,
    images: &Images,
    training: &[usize],
    test: &[usize],
) -> Result<Evaluation> {
    let loss: f64 = training[part(training.len(), world)]
        .iter()
        .map(|&image| network.answer(&images.pixels(image)).loss(images.label(image)))
        .sum();
    let right = test[part(test.len(), world)]
        .iter()
        .filter(|&&image| network.answer(&images.pixels(image)).digit() == images.label(image))
        .count();

    let mut loss_sum = [loss];
    watch.collective(|| world.all_reduce_in_place(&mut loss_sum, Sum))?;
    let mut right_sum = [right];
    watch.collective(|| world.all_reduce_in_place(&mut right_sum, Sum))?;
    Ok(Evaluation { loss: loss_sum[0] / training.len() as f64, right: right_sum[0], tested: test.len() })
}

/// This rank's part of `length` things: parts differ by one at most, and together they are everything.
fn part(length: usize, world: &Communicator) -> Range<usize> {
    let bound = |rank: usize| length * rank / world.size();
    bound(world.rank())..bound(world.rank() + 1)
}

/// A checksum over all bits of the parameters, or `None` when the ranks' parameters differ.
fn agree(world: &Communicator, parameters: &[f64]) -> Result<Option<u64>> {
    let checksum = parameters
        .iter()
        .fold(0u64, |sum, parameter| (sum.rotate_left(5) ^ parameter.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (mut least, mut most) = ([0], [0]);
    world.all_reduce_into(&[checksum], &mut least, Min)?;
    world.all_reduce_into(&[checksum], &mut most, Max)?;
    Ok((least == most).then_some(checksum))
}
