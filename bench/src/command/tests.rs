use clap::CommandFactory;

use super::*;

fn collectives(words: &[&str]) -> Collectives {
    let cli = Cli::try_parse_from(["bench", "collectives"].iter().chain(words)).unwrap();
    match cli.command {
        Command::Collectives(options) => *options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn lists_and_sizes_are_read() {
    let options = collectives(&[
        "-n",
        "2,8",
        "--max",
        "64K",
        "--buffers",
        "cold",
        "--late",
        "1:500",
        "--baseline",
        "openmpi,mpich",
    ]);
    assert_eq!((options.ranks.as_slice(), options.max), (&[2, 8][..], 65536));
    assert_eq!(options.buffer_modes(), [BufferMode::Cold]);
    assert_eq!(options.late, [Late { rank: 1, microseconds: 500 }]);
    assert_eq!(options.baseline.len(), 2);
}

#[test]
fn numbers_of_calls_that_cannot_be_are_explained() {
    assert_eq!(parse_calls("3").unwrap().get(), 3);
    assert!(parse_calls("0").unwrap_err().contains("at least 1 call"));
    for wrong in ["", "-1", "many", "1K"] {
        assert!(parse_calls(wrong).unwrap_err().contains("no number of calls"), "{wrong}");
    }
}

#[test]
fn the_short_form_leaves_cold_buffers_out() {
    assert_eq!(collectives(&["--short"]).buffer_modes(), [BufferMode::Warm, BufferMode::Rewritten]);
    assert_eq!(collectives(&[]).buffer_modes().len(), 3);
    assert_eq!(collectives(&["--quick", "--buffers", "all"]).buffer_modes().len(), 5);
}

#[test]
fn beside_several_mpis_buffers_are_warm_rewritten_and_shared() {
    for words in [["--baseline", "all"], ["--baseline", "openmpi,impi"]] {
        assert_eq!(
            collectives(&words).buffer_modes(),
            [BufferMode::Warm, BufferMode::Rewritten, BufferMode::Shared, BufferMode::View]
        );
    }
    assert!(!collectives(&["--baseline", "openmpi"]).compares());
}

#[test]
fn what_makes_no_sense_is_refused() {
    for words in
        [["-n", "0"], ["--buffers", "hot"], ["--late", "x"], ["--turns", "0"], ["--max", "big"], ["--mpicc", "x"]]
    {
        assert!(Cli::try_parse_from(["bench", "collectives"].iter().chain(&words)).is_err(), "{words:?}");
    }
}
