//! The images: read by rank 0, checked, and broadcast to all ranks.

use std::fmt;

use crate::random::Random;
use crate::start::{Communicator, Result};

/// Pixels of an image.
pub const PIXELS: usize = 64;
/// Digits that an image can show.
pub const CLASSES: usize = 10;
/// The value of a black pixel in the file.
const BLACK: u8 = 16;
/// One image in this many is kept for testing.
const TEST_ONE_IN: usize = 5;

/// The data that the program carries in itself, so that it runs from any folder.
const BUILT_IN: &str = include_str!("digits.csv");

/// Images and what they show.
pub struct Images {
    /// [`PIXELS`] values an image, from 0 (white) to 16 (black).
    pixels: Vec<u8>,
    /// The digit that each image shows.
    labels: Vec<u8>,
}

/// Why the data cannot be used.
#[derive(Debug)]
pub struct BadData {
    source: String,
    line: Option<usize>,
    reason: String,
}

impl fmt::Display for BadData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl Images {
    /// Reads and checks the file at `path`, or the data that the program carries.
    pub fn read(path: Option<&str>) -> std::result::Result<Images, BadData> {
        let Some(path) = path else {
            return Images::parse("digits.csv (built in)", BUILT_IN);
        };
        match std::fs::read_to_string(path) {
            Ok(text) => Images::parse(path, &text),
            Err(error) => {
                Err(BadData { source: path.to_owned(), line: None, reason: format!("cannot be read: {error}") })
            }
        }
    }

    /// Takes lines of 64 pixels and a digit, separated by commas. `source` is what errors call the text.
    fn parse(source: &str, text: &str) -> std::result::Result<Images, BadData> {
        let mut images = Images { pixels: Vec::new(), labels: Vec::new() };
        let bad = |line: Option<usize>, reason: String| BadData { source: source.to_owned(), line, reason };
        for (index, line) in text.lines().enumerate() {
            images.parse_line(line).map_err(|reason| bad(Some(index + 1), reason))?;
        }
        if images.len() < TEST_ONE_IN {
            let reason =
                format!("{} images are too few: at least {TEST_ONE_IN} are needed, to train and to test", images.len());
            return Err(bad(None, reason));
        }
        Ok(images)
    }

    /// Adds the image of one line, or says what is wrong with the line.
    fn parse_line(&mut self, line: &str) -> std::result::Result<(), String> {
        let fields = line.split(',').count();
        if fields != PIXELS + 1 {
            return Err(format!("{fields} fields instead of {} ({PIXELS} pixels and the digit)", PIXELS + 1));
        }
        for (column, field) in line.split(',').enumerate() {
            let (what, largest) = match column {
                PIXELS => ("a digit", CLASSES as u8 - 1),
                _ => ("a pixel", BLACK),
            };
            let value = field.trim().parse::<u8>().ok().filter(|value| *value <= largest).ok_or_else(|| {
                format!("field {}: {field:?} is not {what} (a whole number from 0 to {largest})", column + 1)
            })?;
            match column {
                PIXELS => self.labels.push(value),
                _ => self.pixels.push(value),
            }
        }
        Ok(())
    }

    /// Gives every rank the images that rank 0 has; collective.
    ///
    /// Rank 0 passes what it read, the other ranks pass `None`. When rank 0 has nothing, all ranks get `None`.
    ///
    /// A rank must know how much it will receive, so the number of images goes ahead of them; a number of 0 says that
    /// there is nothing to wait for. Without it a rank 0 that gives up would look to the others like a rank that
    /// died.
    pub fn broadcast(world: &Communicator, from_rank_0: Option<Images>) -> Result<Option<Images>> {
        let root = world.process_at_rank(0);
        let mut count = [from_rank_0.as_ref().map_or(0, Images::len)];
        root.broadcast_into(&mut count)?;
        if count[0] == 0 {
            return Ok(None);
        }
        let mut images =
            from_rank_0.unwrap_or_else(|| Images { pixels: vec![0; count[0] * PIXELS], labels: vec![0; count[0]] });
        root.broadcast_into(&mut images.pixels)?;
        root.broadcast_into(&mut images.labels)?;
        Ok(Some(images))
    }

    /// How many images there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The pixels of one image, from 0 to 1.
    pub fn pixels(&self, image: usize) -> [f64; PIXELS] {
        let first = image * PIXELS;
        std::array::from_fn(|pixel| f64::from(self.pixels[first + pixel]) / f64::from(BLACK))
    }

    /// The digit that one image shows.
    pub fn label(&self, image: usize) -> usize {
        usize::from(self.labels[image])
    }

    /// Draws which images train and which test; the same on all ranks that draw with the same state of `random`.
    pub fn split(&self, random: &mut Random) -> (Vec<usize>, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.len()).collect();
        random.shuffle(&mut order);
        let test = order.split_off(self.len() - self.len() / TEST_ONE_IN);
        (order, test)
    }
}
