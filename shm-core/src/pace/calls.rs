//! In which way two ranks copy where no cell lies between them: found by one of them, which measures what a call costs as a whole, and tells the other one. So what serves one
//! rank and holds up the other does not seem to gain.

use super::class::Class;
use super::{CLASSES, LEAST, Lines, Way, class_of, cost, is_rare_sample, ticks_behind_loads};
use crate::select::tuning::{STREAM_STRING, STREAM_STRINGS};

/// Calls for which each way is tried. There is no ring that they would have to come round in.
const TRIAL: (u32, u32) = (16, 0);

/// The ways: copied to the other's buffer, and from it, by loops; to it by the string instruction; and from it, too.
const WAYS: &[Way] =
    if cfg!(target_arch = "x86_64") { &[Way::Cached, Way::String, Way::Strings] } else { &[Way::Cached] };

/// What a rank knows of the calls of one kind.
pub(crate) struct Calls {
    classes: [Class; CLASSES],
    stream: u32,
}

impl Calls {
    /// Nothing is known; `stream` is the table's word.
    pub fn new(stream: u32) -> Self {
        Self { classes: [Class::new(WAYS, TRIAL); CLASSES], stream }
    }

    /// Goes by another word of the table from now on.
    pub fn go_by(&mut self, stream: u32) {
        self.stream = stream;
    }

    fn class(&mut self, bytes: usize) -> Option<&mut Class> {
        (self.stream == 0 && bytes >= LEAST).then(|| &mut self.classes[class_of(bytes, Lines::Left)])
    }

    /// The way of the next call, of a message of `bytes` bytes.
    #[inline]
    pub fn next(&mut self, bytes: usize) -> Way {
        match (self.stream, self.class(bytes)) {
            (STREAM_STRING, _) => Way::String,
            (STREAM_STRINGS, _) => Way::Strings,
            (_, Some(class)) => class.next(),
            _ => Way::Cached,
        }
    }

    /// Takes what the call of this position has cost, which has just ended, since `begun`, in ticks.
    #[inline]
    pub fn learn(&mut self, position: u64, bytes: usize, way: Way, begun: u64) {
        let Some(class) = self.class(bytes) else { return };
        if class.compares() || is_rare_sample(position) {
            class.learn_write(way, cost(ticks_behind_loads().wrapping_sub(begun), bytes));
            // There is no other part.
            class.learn_read(way, 1);
        }
    }
}
