//! `bench kernels`: how fast the operators fold, on one core, by element type and number of operands.

use std::hint::black_box;
use std::time::{Duration, Instant};

use clap::Args;
use hier::operator::{
    BitAnd, BitOr, BitXor, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc, Operator, Product, Sum,
};
use hier::{Element, Pair};
use num_complex::Complex;

use crate::error::{Error, Result};
use crate::out::{say, show};
use crate::progress::Progress;
use crate::sizes::{parse_size, show_size};
use crate::statistics::Summary;
use crate::table::{Table, three_digits};

/// Options of `bench kernels`.
#[derive(Clone, Debug, Args)]
pub struct Kernels {
    /// Bytes of each operand
    #[arg(long, default_value = "32K", value_parser = parse_size)]
    pub size: u64,
    /// How many operands are folded in one pass
    #[arg(long, value_delimiter = ',', default_value = "2,4,8")]
    pub operands: Vec<usize>,
    /// Only types and operators whose name holds this text, as in `f16` or `sum`
    #[arg(long, default_value = "")]
    pub only: String,
    /// Repetitions (blocks of calls)
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Milliseconds of a block
    #[arg(long, default_value_t = 2)]
    pub block: u64,
}

/// Times folds of so many operands.
type Time = dyn Fn(&Kernels, usize) -> Vec<f64>;

/// One line of the table.
struct Kernel {
    operator: &'static str,
    element: &'static str,
    /// Seconds of one fold: block by block.
    seconds: Box<Time>,
}

/// An operator on an element type, with a value to fill operands with.
fn kernel<T: Element, O: Operator<T> + Copy + 'static>(
    operator: &'static str,
    element: &'static str,
    combine: O,
    value: T,
) -> Kernel {
    let seconds = move |options: &Kernels, operands: usize| time(options, operands, combine, value);
    Kernel { operator, element, seconds: Box::new(seconds) }
}

macro_rules! kernels {
    ($list:ident, $value:expr, $($type:ty)+, $operators:tt) => {
        $(kernels!(@one $list, $value, $type, $operators);)+
    };
    (@one $list:ident, $value:expr, $type:ty, ($($operator:ident)+)) => {
        $list.extend([$(kernel::<$type, _>(stringify!($operator), stringify!($type), $operator, $value)),+]);
    };
}

/// The operators on the types that there are; pairs and complex numbers by their smallest and largest.
fn all() -> Vec<Kernel> {
    use half::{bf16, f16};
    let mut list = Vec::new();
    kernels!(list, 1, i8 i16 i32 i64 u8 u16 u32 u64, (Sum Product Min Max LogicalAnd LogicalOr LogicalXor BitAnd BitOr BitXor));
    kernels!(list, 1.0, f32 f64, (Sum Product Min Max));
    kernels!(list, f16::ONE, f16, (Sum Product Min Max));
    kernels!(list, bf16::ONE, bf16, (Sum Product Min Max));
    kernels!(list, Complex::new(1.0, 0.0), Complex<f32> Complex<f64>, (Sum Product));
    kernels!(list, true, bool, (LogicalAnd LogicalOr LogicalXor));
    kernels!(list, Pair::new(1.0, 1), Pair<f32, i32> Pair<f64, i64>, (MinLoc MaxLoc));
    kernels!(list, Pair::new(1, 1), Pair<i8, i8> Pair<i16, i16> Pair<i32, i32> Pair<i64, i64>, (MinLoc MaxLoc));
    list
}

/// Seconds of one fold of `operands` operands, block by block.
fn time<T: Element, O: Operator<T>>(options: &Kernels, operands: usize, operator: O, value: T) -> Vec<f64> {
    let count = (options.size as usize / size_of::<T>()).max(1);
    let vectors: Vec<Vec<T>> = vec![vec![value; count]; operands];
    let pointers: Vec<*const T> = vectors.iter().map(Vec::as_ptr).collect();
    let mut result = vec![value; count];
    let mut fold = || {
        // SAFETY: each operand has `count` elements, as has the result, which overlaps none of them.
        unsafe { operator.fold(black_box(result.as_mut_ptr()), black_box(&pointers), count) }
    };
    let block = Duration::from_millis(options.block);
    let mut blocks = Vec::new();
    // The first block warms the caches, and is thrown away.
    for _ in 0..=options.repetitions {
        let (mut calls, start) = (0_u32, Instant::now());
        while start.elapsed() < block {
            for _ in 0..16 {
                fold();
            }
            calls += 16;
        }
        blocks.push(start.elapsed().as_secs_f64() / f64::from(calls));
    }
    blocks.remove(0);
    blocks
}

/// Runs the command.
///
/// # Errors
///
/// [`Error::Usage`] for nothing to measure.
pub fn run(options: &Kernels) -> Result<()> {
    let wish = options.only.to_lowercase();
    let name = |kernel: &Kernel| format!("{} {}", kernel.operator, kernel.element).to_lowercase();
    let kernels: Vec<Kernel> = all().into_iter().filter(|kernel| name(kernel).contains(&wish)).collect();
    if kernels.is_empty() || options.operands.contains(&0) {
        return Err(Error::Usage(format!("nothing is named {:?}, or no operands are wanted", options.only)));
    }
    let progress = Progress::new(kernels.len());
    let mut heads = vec!["operator<".to_owned(), "element<".to_owned()];
    heads.extend(options.operands.iter().map(|operands| format!("{operands} operands")));
    heads.push("spread".to_owned());
    let mut table = Table::new(&heads);
    for kernel in &kernels {
        progress.stage(name(kernel));
        let mut cells = vec![kernel.operator.to_owned(), kernel.element.to_owned()];
        let mut spread = 0.0_f64;
        for &operands in &options.operands {
            let summary = Summary::of(&(kernel.seconds)(options, operands));
            spread = spread.max(summary.spread());
            cells.push(three_digits(operands as f64 * options.size as f64 / summary.median / 1e9));
        }
        cells.push(format!("{:.0}%", 100.0 * spread));
        table.row(cells);
        progress.step();
    }
    progress.finish();
    say!("GB/s of operands folded in one pass on one core, {} each\n", show_size(options.size))?;
    show(table.render())?;
    Ok(())
}
