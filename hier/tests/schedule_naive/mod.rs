//! The plainest executor of programs: messages wait in queues without end, and a rank goes on whenever it can.

use std::collections::{HashMap, VecDeque};

use hier::schedule::{Combine, Goal, Program, Span};

type Value = Option<Vec<u32>>;

/// The span of a message, what it carries, and which ranks its sender had heard of.
type Message = (Span, Vec<Value>, Vec<bool>);

fn segments(span: Span, of: u32) -> Vec<usize> {
    (0..span.count).map(|i| ((span.first + i) % of) as usize).collect()
}

/// Executes the programs and looks at the result: `Err` says what is wrong with it.
pub fn execute(programs: &[Program], goal: Goal, ordered: bool) -> Result<(), String> {
    let ranks = programs.len() as u32;
    let mut held: Vec<Vec<Value>> = programs.iter().map(|program| start(program, goal)).collect();
    let mut heard: Vec<Vec<bool>> = (0..ranks).map(|rank| (0..ranks).map(|other| other == rank).collect()).collect();
    let mut queues: HashMap<(u32, u32), VecDeque<Message>> = HashMap::new();
    let mut at = vec![0; programs.len()];
    let mut sent = vec![false; programs.len()];
    loop {
        let mut moved = false;
        for program in programs {
            let rank = program.rank as usize;
            let Some(round) = program.rounds.get(at[rank]) else { continue };
            if !sent[rank] {
                for send in &round.sends {
                    let payload =
                        segments(send.span, program.segments).iter().map(|&s| held[rank][s].clone()).collect();
                    let queue = queues.entry((program.rank, send.to)).or_default();
                    queue.push_back((send.span, payload, heard[rank].clone()));
                }
                sent[rank] = true;
                moved = true;
            }
            // As many messages from each peer as the round wants.
            let ready = round.receives.iter().all(|receive| {
                let wanted = round.receives.iter().filter(|other| other.from == receive.from).count();
                queues.get(&(receive.from, program.rank)).is_some_and(|queue| queue.len() >= wanted)
            });
            if !ready {
                continue;
            }
            for receive in &round.receives {
                let queue = queues.get_mut(&(receive.from, program.rank)).ok_or("no queue")?;
                let (span, payload, known) = queue.pop_front().ok_or("no message")?;
                if span != receive.span {
                    return Err(format!("rank {rank}: {span:?} arrives for {:?}", receive.span));
                }
                for (segment, arrived) in segments(span, program.segments).into_iter().zip(payload) {
                    let arrived = arrived.ok_or("nothing was sent")?;
                    let own = held[rank][segment].take();
                    held[rank][segment] = Some(match receive.combine {
                        Combine::Replace => arrived,
                        Combine::Left => [arrived, own.ok_or("nothing there")?].concat(),
                        Combine::Right => [own.ok_or("nothing there")?, arrived].concat(),
                    });
                }
                for (mine, theirs) in heard[rank].iter_mut().zip(known) {
                    *mine |= theirs;
                }
            }
            at[rank] += 1;
            sent[rank] = false;
            moved = true;
        }
        if !moved {
            break;
        }
    }
    if programs.iter().any(|program| at[program.rank as usize] < program.rounds.len()) {
        return Err("somebody waits for ever".to_owned());
    }
    if queues.values().any(|queue| !queue.is_empty()) {
        return Err("somebody's message was not received".to_owned());
    }
    if goal == Goal::Barrier {
        let all = heard.iter().flatten().all(|&heard| heard);
        return if all { Ok(()) } else { Err("somebody has not heard of somebody".to_owned()) };
    }
    for (rank, held) in held.iter().enumerate() {
        for (segment, value) in held.iter().enumerate() {
            look(goal, ranks, rank as u32, segment as u32, value, ordered)?;
        }
    }
    Ok(())
}

fn start(program: &Program, goal: Goal) -> Vec<Value> {
    let has = |segment| match goal {
        Goal::Broadcast { root } => root == program.rank,
        Goal::Allgather => segment == program.rank,
        _ => true,
    };
    (0..program.segments).map(|segment| has(segment).then(|| vec![program.rank])).collect()
}

fn look(goal: Goal, ranks: u32, rank: u32, segment: u32, value: &Value, ordered: bool) -> Result<(), String> {
    let everybody: Vec<u32> = (0..ranks).collect();
    let wanted = match goal {
        Goal::Allreduce => everybody,
        Goal::Reduce { root } if root == rank => everybody,
        Goal::ReduceScatter if segment == rank => everybody,
        Goal::Broadcast { root } => vec![root],
        Goal::Allgather => vec![segment],
        _ => return Ok(()),
    };
    let mut found = value.clone().ok_or("an empty segment")?;
    if !ordered {
        found.sort_unstable();
    }
    if found == wanted { Ok(()) } else { Err(format!("rank {rank}, segment {segment}: {found:?}, not {wanted:?}")) }
}
