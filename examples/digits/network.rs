//! A network of one hidden layer: 64 pixels, `hidden` rectified units, a softmax over the 10 digits.

use crate::data::{CLASSES, PIXELS};
use crate::random::Random;

/// The network, with all its parameters in one vector: one collective carries them, or their gradient.
///
/// In order: the hidden layer's weights (a row of 64 for each unit) and biases, then the output layer's weights
/// (a row of `hidden` for each digit) and biases.
pub struct Network {
    hidden: usize,
    parameters: Vec<f64>,
}

/// The layers as parts of a parameter vector, or of a gradient.
struct Layers<T> {
    hidden_weights: T,
    hidden_biases: T,
    output_weights: T,
    output_biases: T,
}

/// What the network makes of one image.
pub struct Answer {
    /// The output of each hidden unit.
    activations: Vec<f64>,
    /// The probability of each digit.
    probabilities: [f64; CLASSES],
    /// The logarithm of the sum over the digits, and each digit's score: their difference is the loss.
    log_sum: f64,
    scores: [f64; CLASSES],
}

impl Network {
    /// A network of `hidden` units with random weights and no biases.
    pub fn new(hidden: usize, random: &mut Random) -> Network {
        let length = hidden * PIXELS + hidden + CLASSES * hidden + CLASSES;
        let mut network = Network { hidden, parameters: vec![0.0; length] };
        let layers = split_mut(hidden, &mut network.parameters);
        fill(layers.hidden_weights, PIXELS, random);
        fill(layers.output_weights, hidden, random);
        network
    }

    /// All parameters.
    pub fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// All parameters, to be changed.
    pub fn parameters_mut(&mut self) -> &mut [f64] {
        &mut self.parameters
    }

    /// Shows the network an image.
    pub fn answer(&self, pixels: &[f64; PIXELS]) -> Answer {
        let layers = split(self.hidden, &self.parameters);
        let activations: Vec<f64> = layers
            .hidden_weights
            .chunks_exact(PIXELS)
            .zip(layers.hidden_biases)
            .map(|(weights, bias)| (dot(weights, pixels) + bias).max(0.0))
            .collect();
        let scores: [f64; CLASSES] = std::array::from_fn(|digit| {
            let row = &layers.output_weights[digit * self.hidden..][..self.hidden];
            dot(row, &activations) + layers.output_biases[digit]
        });
        // The largest score is taken out of the exponentials, which cannot overflow then.
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exponentials = scores.map(|score| (score - largest).exp());
        let sum: f64 = exponentials.iter().sum();
        Answer {
            activations,
            probabilities: exponentials.map(|exponential| exponential / sum),
            log_sum: largest + sum.ln(),
            scores,
        }
    }

    /// Adds to `gradient` what one image contributes to the gradient of the loss (back-propagation).
    pub fn add_gradient(&self, pixels: &[f64; PIXELS], label: usize, gradient: &mut [f64]) {
        let answer = self.answer(pixels);
        let parameters = split(self.hidden, &self.parameters);
        let sums = split_mut(self.hidden, gradient);

        // How the loss changes with each digit's score: the probability, less 1 for the right digit.
        let mut by_score = answer.probabilities;
        by_score[label] -= 1.0;

        let mut by_activation = vec![0.0; self.hidden];
        for (digit, slope) in by_score.iter().enumerate() {
            let row = digit * self.hidden;
            add_scaled(&mut sums.output_weights[row..][..self.hidden], *slope, &answer.activations);
            sums.output_biases[digit] += slope;
            let weights = &parameters.output_weights[row..][..self.hidden];
            add_scaled(&mut by_activation, *slope, weights);
        }
        for (unit, slope) in by_activation.iter().enumerate() {
            // A unit that the image did not wake passes nothing back.
            if answer.activations[unit] > 0.0 {
                let row = unit * PIXELS;
                add_scaled(&mut sums.hidden_weights[row..][..PIXELS], *slope, pixels);
                sums.hidden_biases[unit] += slope;
            }
        }
    }
}

impl Answer {
    /// The loss when the image shows `label`: minus the logarithm of the probability given to it.
    pub fn loss(&self, label: usize) -> f64 {
        self.log_sum - self.scores[label]
    }

    /// The most probable digit; the smaller one of two that are equal.
    pub fn digit(&self) -> usize {
        (1..CLASSES).fold(0, |best, digit| if self.scores[digit] > self.scores[best] { digit } else { best })
    }
}

/// Divides a vector of a network of `hidden` units into its layers.
fn split(hidden: usize, vector: &[f64]) -> Layers<&[f64]> {
    let (hidden_weights, rest) = vector.split_at(hidden * PIXELS);
    let (hidden_biases, rest) = rest.split_at(hidden);
    let (output_weights, output_biases) = rest.split_at(CLASSES * hidden);
    Layers { hidden_weights, hidden_biases, output_weights, output_biases }
}

/// As [`split`], for a vector that will be changed.
fn split_mut(hidden: usize, vector: &mut [f64]) -> Layers<&mut [f64]> {
    let (hidden_weights, rest) = vector.split_at_mut(hidden * PIXELS);
    let (hidden_biases, rest) = rest.split_at_mut(hidden);
    let (output_weights, output_biases) = rest.split_at_mut(CLASSES * hidden);
    Layers { hidden_weights, hidden_biases, output_weights, output_biases }
}

/// Random weights of a layer with `inputs` inputs, as large as keeps the spread of its outputs near that of its inputs.
fn fill(weights: &mut [f64], inputs: usize, random: &mut Random) {
    let scale = (6.0 / inputs as f64).sqrt();
    for weight in weights {
        *weight = scale * random.symmetric();
    }
}

/// The sum of the products of two vectors of equal length.
fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(l, r)| l * r).sum()
}

/// `sums += factor * vector`.
fn add_scaled(sums: &mut [f64], factor: f64, vector: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(vector) {
        *sum += factor * value;
    }
}
