use super::super::partners::{Command, Pattern};
use super::*;

/// The calls that are under way between ranks which execute scripts.
struct Trial<'a> {
    scripts: &'a [Script],
    partners: &'a [Partners],
    /// Whether a standard send ends before its receive is posted.
    eager: bool,
    ranks: Vec<State>,
}

#[derive(Clone, Default)]
struct State {
    next: usize,
    /// Packets whose receives are posted, sends that have begun, words that were told and that were waited for; in
    /// order.
    posted: Vec<usize>,
    begun: Vec<usize>,
    told: usize,
    heard: usize,
    completed: Vec<usize>,
    sent: Vec<usize>,
}

impl Trial<'_> {
    fn steps(&self, rank: usize) -> impl Iterator<Item = Step> + '_ {
        let script = &self.scripts[rank];
        script.before.iter().chain(&script.timed).copied()
    }

    /// Whether all ranks have left the part before the clock, which no rank's timed part begins before.
    fn together(&self) -> bool {
        self.ranks.iter().zip(self.scripts).all(|(state, script)| state.next >= script.before.len())
    }

    fn advance(&mut self, rank: usize) -> Result<bool, String> {
        let Some(step) = self.steps(rank).nth(self.ranks[rank].next) else { return Ok(false) };
        if self.ranks[rank].next >= self.scripts[rank].before.len() && !self.together() {
            return Ok(false);
        }
        let Partners { to, from, .. } = self.partners[rank];
        let is_posted = |trial: &Self, packet: usize| trial.ranks[to].posted.contains(&packet);
        let is_begun = |trial: &Self, packet: usize| trial.ranks[from].begun.contains(&packet);
        let state = &mut self.ranks[rank];
        let done = match step {
            Step::Post(packet) => {
                state.posted.push(packet);
                true
            }
            Step::Go => {
                state.told += 1;
                true
            }
            Step::AwaitGo => {
                let heard = state.heard;
                let can = self.ranks[to].told > heard;
                self.ranks[rank].heard += usize::from(can);
                can
            }
            Step::Send(packet, kind) => {
                if !state.begun.contains(&packet) {
                    state.begun.push(packet);
                    if kind.is_ready() && !is_posted(self, packet) {
                        return Err(format!("rank {rank}: ready send of {packet} before its receive"));
                    }
                }
                match kind {
                    SendKind::Synchronous => is_posted(self, packet),
                    SendKind::Standard => self.eager || is_posted(self, packet),
                    _ => true,
                }
            }
            Step::Receive(packet) => {
                if !state.posted.contains(&packet) {
                    state.posted.push(packet);
                }
                let can = is_begun(self, packet);
                if can {
                    self.ranks[rank].completed.push(packet);
                }
                can
            }
            Step::Complete(packet) => {
                if !state.posted.contains(&packet) {
                    return Err(format!("rank {rank}: wait for {packet}, which was not posted"));
                }
                let can = is_begun(self, packet);
                if can {
                    self.ranks[rank].completed.push(packet);
                }
                can
            }
            Step::Sent(packet) => {
                if !state.begun.contains(&packet) || state.sent.contains(&packet) {
                    return Err(format!("rank {rank}: end of the send of {packet}, which is not under way"));
                }
                let kinds = self.steps(rank).find_map(|step| match step {
                    Step::Send(other, kind) if other == packet => Some(kind),
                    _ => None,
                });
                let can = is_posted(self, packet) || (self.eager && kinds == Some(SendKind::Immediate));
                if can {
                    self.ranks[rank].sent.push(packet);
                }
                can
            }
            Step::Exchange(packet) => {
                if !state.begun.contains(&packet) {
                    state.begun.push(packet);
                    state.posted.push(packet);
                }
                let can = is_posted(self, packet) && is_begun(self, packet);
                if can {
                    self.ranks[rank].completed.push(packet);
                }
                can
            }
        };
        self.ranks[rank].next += usize::from(done);
        Ok(done)
    }

    /// Executes all scripts, ranks taking turns at random.
    fn run(mut self, packets: usize, seed: u64) -> Result<(), String> {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let size = self.scripts.len();
        let mut stuck = 0;
        while (0..size).any(|rank| self.ranks[rank].next < self.steps(rank).count()) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let start = (random >> 33) as usize % size;
            // One rank gets far ahead at times.
            let mut moved = false;
            for _ in 0..1 + (random >> 20) % 7 {
                moved |= self.advance(start)?;
            }
            stuck = if moved { 0 } else { stuck + 1 };
            if stuck > 400 {
                let at: Vec<_> = (0..size).map(|rank| self.steps(rank).nth(self.ranks[rank].next)).collect();
                return Err(format!("nobody goes on: {at:?}"));
            }
        }
        for (rank, state) in self.ranks.iter().enumerate() {
            let all: Vec<usize> = (0..packets).collect();
            let immediate =
                self.steps(rank).filter(|s| matches!(s, Step::Send(_, kind) if kind.is_immediate())).count();
            if state.posted != all || state.begun != all || state.completed != all || state.sent.len() != immediate {
                return Err(format!("rank {rank}: something is missing"));
            }
            if self.ranks[self.partners[rank].to].told != state.heard {
                return Err(format!("rank {rank}: words are left over"));
            }
        }
        Ok(())
    }
}

/// Executes scripts for many orders of events, with sends of both kinds.
fn tried(scripts: &[Script], partners: &[Partners], packets: usize) -> Result<(), String> {
    for seed in 1..40 {
        for eager in [false, true] {
            let ranks = vec![State::default(); scripts.len()];
            Trial { scripts, partners, eager, ranks }.run(packets, seed)?;
        }
    }
    Ok(())
}

fn pairs_and_cycles() -> Vec<Vec<Partners>> {
    let of = |command: Command, size: usize| {
        let pattern = Pattern { command, distance: 1, only_zero: false, cycles: None };
        pattern.partners(size).unwrap().into_iter().flatten().collect()
    };
    vec![
        of(Command::Swap, 2),
        of(Command::SendRecv, 2),
        of(Command::SendRecv, 3),
        of(Command::SendRecv, 4),
        of(Command::SendRecv, 5),
    ]
}

fn scripts(protocol: Protocol, program: Program, partners: &[Partners], packets: usize) -> Option<Vec<Script>> {
    partners.iter().map(|&own| Script::of(protocol, program, own, packets)).collect()
}

#[test]
fn every_protocol_ends_with_everything_sent_received_and_waited_for() {
    let mut programs = 0;
    for protocol in Protocol::all() {
        for program in Program::ALL {
            for partners in pairs_and_cycles() {
                for packets in [1, 2, 5] {
                    let Some(scripts) = scripts(protocol, program, &partners, packets) else { continue };
                    let said = tried(&scripts, &partners, packets);
                    assert_eq!(said, Ok(()), "{protocol} {program}, {} ranks, {packets} packets", partners.len());
                    programs += 1;
                }
            }
        }
    }
    assert_eq!(programs, (21 + 16) * 5 * 3);
}

/// What the trial must find: a ready send that waits for no word, a receive that is never completed, a send twice.
#[test]
fn damaged_scripts_are_found_out() {
    let partners = pairs_and_cycles()[0].clone();
    let good = |name: &str| scripts(name.parse().unwrap(), Program::Basic, &partners, 5).unwrap();
    let without = |name: &str, gone: fn(&Step) -> bool| {
        let mut scripts = good(name);
        for script in &mut scripts {
            script.timed.retain(|step| !gone(step));
        }
        tried(&scripts, &partners, 5)
    };
    let words: fn(&Step) -> bool = |step| matches!(step, Step::Go | Step::AwaitGo);
    for name in ["0.4", "0.5", "1.4", "1.5"] {
        assert!(without(name, words).unwrap_err().contains("before its receive"), "{name}");
    }
    assert!(without("0.3", |step| matches!(step, Step::Complete(3))).unwrap_err().contains("missing"));
    assert!(without("0.3", |step| matches!(step, Step::Sent(3))).unwrap_err().contains("missing"));
    assert!(without("1.0", |step| matches!(step, Step::Send(2, _))).unwrap_err().contains("nobody goes on"));
    // Both send first, and sends wait: the deadlock that ordered protocols are made to avoid.
    let both = [good("1.0")[0].clone(), good("1.0")[0].clone()];
    assert!(tried(&both, &partners, 5).unwrap_err().contains("nobody goes on"));
}

#[test]
fn scripts_by_hand() {
    use Step::*;
    let partners = pairs_and_cycles()[0].clone();
    let of = |name: &str, program: Program, rank: usize| {
        Script::of(name.parse().unwrap(), program, partners[rank], 2).unwrap()
    };
    let kind = SendKind::Immediate;
    assert_eq!(
        of("0.3", Program::Basic, 1).timed,
        [Post(0), Send(0, kind), Complete(0), Sent(0), Post(1), Send(1, kind), Complete(1), Sent(1)]
    );
    let ahead = of("0.3", Program::Reorganised, 0);
    assert_eq!(ahead.before, [Post(0)]);
    assert_eq!(ahead.timed, [Post(1), Send(0, kind), Complete(0), Send(1, kind), Complete(1), Sent(0), Sent(1)]);
    let ready = SendKind::Ready;
    assert_eq!(of("1.4", Program::Basic, 0).timed[..4], [Post(0), AwaitGo, Send(0, ready), Complete(0)]);
    assert_eq!(of("1.4", Program::Basic, 1).timed[..4], [Post(0), Go, Complete(0), Send(0, ready)]);
    assert_eq!(of("1.6", Program::Basic, 0).timed[..4], [AwaitGo, Send(0, SendKind::Standard), Go, Receive(0)]);
    assert_eq!(of("0.6", Program::Basic, 0).timed, [Exchange(0), Exchange(1)]);
    assert_eq!(Script::of("0.6".parse().unwrap(), Program::Reorganised, partners[0], 2), None);
}
