//! Running a model, and asserting how it ends.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Instant;

use shm_core::protocol::Edge;

use super::mutant::{D1, D2, L1, L2, Mutant, U1, U2};

/// How far a model is explored.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// Every execution that loom distinguishes.
    All,
    /// Executions with at most so many preemptions: switches away from a thread that could go on.
    Preemptions(usize),
}

/// In which way a model was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// loom saw payload read and written without an order between the two.
    Race,
    /// A rank read a value that was not meant for it.
    WrongValue,
    /// All ranks wait, for ever.
    Deadlock,
}

/// The most executions of a model: several times what the largest one has (`exchange_of_three`, 252,668), and an end to
/// what would never have one. Executions are counted, not timed: a slow machine explores as many as a quick one.
const MOST: usize = 2_000_000;

thread_local! {
    /// The first panic of the model that runs in this thread, if panics are to be noted rather than printed.
    static NOTED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

fn note_panics_of_models() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let noted = NOTED.with(|noted| match noted.try_borrow_mut() {
                Ok(mut noted) => match noted.as_mut() {
                    Some(messages) => {
                        // loom ends its threads by panics that say nothing.
                        messages.extend(panic.payload_as_str().map(str::to_owned));
                        true
                    }
                    None => false,
                },
                Err(_) => false,
            });
            if !noted {
                print(panic);
            }
        }));
    });
}

fn explore(bound: Bound, mutant: Mutant, model: fn(Mutant)) -> u64 {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = match asked(bound) {
        Bound::All => None,
        Bound::Preemptions(most) => Some(most),
    };
    builder.max_permutations = Some(most());
    builder.max_duration = None;
    builder.max_branches = 10_000;
    builder.checkpoint_interval = 1_000;
    let executions = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&executions);
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model(mutant);
    });
    executions.load(Ordering::Relaxed)
}

/// The bound, or a wider one: LOOM_MAX_PREEMPTIONS, when set, asks for more than CI has time for.
fn asked(bound: Bound) -> Bound {
    match (bound, loom::model::Builder::new().preemption_bound) {
        (Bound::Preemptions(most), Some(asked)) => Bound::Preemptions(most.max(asked)),
        _ => bound,
    }
}

/// The most executions of a model, or as many as LOOM_MAX_PERMUTATIONS asks for.
fn most() -> usize {
    loom::model::Builder::new().max_permutations.unwrap_or(MOST)
}

/// Asserts that a model holds in every execution within the bound.
pub fn holds(name: &str, bound: Bound, model: fn(Mutant)) {
    let start = Instant::now();
    let executions = explore(bound, Mutant::None, model);
    let took = start.elapsed();
    // loom returns without a word before it makes the last of so many.
    assert!(executions + 1 < most() as u64, "{name}: not explored to the end within {executions} executions");
    let asked = asked(bound);
    eprintln!("{name}: holds in {executions} executions ({asked:?}), {:.2} s", took.as_secs_f64());
}

/// Asserts that a model with a defect is rejected, in the way that is expected.
pub fn rejects(name: &str, bound: Bound, model: fn(Mutant), mutant: Mutant, ways: &[Rejected]) {
    note_panics_of_models();
    let start = Instant::now();
    NOTED.with(|noted| *noted.borrow_mut() = Some(Vec::new()));
    let end = catch_unwind(AssertUnwindSafe(|| explore(bound, mutant, model)));
    let messages = NOTED.with(|noted| noted.borrow_mut().take()).expect("it was set above");
    match end {
        Ok(executions) => panic!("{name}: {mutant:?} survived {executions} executions"),
        Err(_) => {
            let first = messages.first().map_or("", String::as_str);
            let way = way_of(first);
            assert!(way.is_some_and(|way| ways.contains(&way)), "{name}: {mutant:?} ended in another way: {first}");
            eprintln!("{name}: {mutant:?} rejected: {:?}, {:.2} s", way.unwrap(), start.elapsed().as_secs_f64());
        }
    }
}

fn way_of(message: &str) -> Option<Rejected> {
    let ways = [
        ("Causality violation", Rejected::Race),
        ("wrong value", Rejected::WrongValue),
        ("deadlock; threads", Rejected::Deadlock),
    ];
    ways.into_iter().find(|(mark, _)| message.contains(mark)).map(|(_, way)| way)
}

/// How a world is rejected in which waits on an edge end at once. Who fills a slot too early may also take away what
/// another has yet to find, who then waits for ever.
pub fn ways_of_not_waiting(edge: Edge) -> &'static [Rejected] {
    match edge {
        L1 | U1 | D1 => &[Rejected::Race, Rejected::WrongValue],
        L2 | U2 | D2 => &[Rejected::Race, Rejected::WrongValue, Rejected::Deadlock],
    }
}

/// A model and its mutants, a test each.
///
/// `model! { name, bound, function, [edges]; mutant_name: mutant => ways; .. }` makes a module `name` with a test
/// `holds`, for each edge three tests (either end relaxed, not waited for), and a test for each mutant besides.
macro_rules! model {
    (
        $(#[$doc:meta])*
        $name:ident, $bound:expr, $function:path, [$($edge:ident),*];
        $($mutant_name:ident: $mutant:expr => [$($way:ident),+];)*
    ) => {
        $(#[$doc])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[test]
            fn holds() {
                crate::model::check::holds(stringify!($name), $bound, $function);
            }
            $(
                #[allow(non_snake_case, reason = "the edge's name")]
                mod $edge {
                    #[allow(unused_imports)]
                    use super::*;
                    use crate::model::Rejected::Race;
                    use crate::model::check::{rejects, ways_of_not_waiting};

                    const EDGE: shm_core::protocol::Edge = crate::model::$edge;

                    #[test]
                    fn rejects_a_relaxed_store() {
                        rejects(stringify!($name), $bound, $function, Mutant::PublishRelaxed(EDGE), &[Race]);
                    }

                    #[test]
                    fn rejects_a_relaxed_load() {
                        rejects(stringify!($name), $bound, $function, Mutant::ObserveRelaxed(EDGE), &[Race]);
                    }

                    #[test]
                    fn rejects_a_wait_left_out() {
                        let ways = ways_of_not_waiting(EDGE);
                        rejects(stringify!($name), $bound, $function, Mutant::SkipWait(EDGE), ways);
                    }
                }
            )*
            $(
                #[test]
                fn $mutant_name() {
                    let ways = [$(crate::model::Rejected::$way),+];
                    crate::model::check::rejects(stringify!($name), $bound, $function, $mutant, &ways);
                }
            )*
        }
    };
}
pub(crate) use model;
