use super::*;

fn plan() -> Plan {
    Plan {
        cold_bytes: 1 << 25,
        late: vec![Late { rank: 1, microseconds: 500 }],
        operator: Combine::Max,
        calls: NonZeroU64::new(100),
        cases: vec![
            Case {
                operation: Operation::Allreduce,
                buffers: BufferMode::Cold,
                timing: Timing::Each,
                element: ElementType::F64,
                bytes: 4096,
                root: 3,
                blocks: 10,
                block: Duration::from_millis(20),
            };
            2
        ],
    }
}

#[test]
fn a_plan_reads_back_what_it_wrote() {
    assert_eq!(plan().to_string().parse(), Ok(plan()));
    assert_eq!(plan().duration(), Duration::from_millis(400));
}

#[test]
fn a_peer_measures_each_case_once() {
    let mut ours = plan();
    let case = ours.cases[0];
    let with = |buffers, bytes| Case { buffers, bytes, ..case };
    ours.cases = vec![
        with(BufferMode::Rewritten, 8),
        with(BufferMode::Rewritten, 16),
        with(BufferMode::Shared, 8),
        with(BufferMode::Shared, 32),
    ];
    let (theirs, places) = ours.beside(|case| case.bytes != 16);
    assert_eq!(theirs.cases, [with(BufferMode::Rewritten, 8), with(BufferMode::Rewritten, 32)]);
    assert_eq!(places, [0, 3]);
    assert_eq!((theirs.cold_bytes, theirs.late.len()), (1 << 25, 1));
}

#[test]
fn a_foreign_or_broken_plan_names_its_line() {
    assert_eq!("hello\n".parse::<Plan>().unwrap_err().0, 1);
    let broken = plan().to_string().replace("cold 33554432", "cold much");
    assert_eq!(broken.parse::<Plan>().unwrap_err(), (2, "'much' is no number".into()));
}

#[test]
fn names_read_back() {
    for &operation in Operation::ALL {
        assert_eq!(operation.to_string().parse(), Ok(operation));
    }
    assert!("scan-up".parse::<Operation>().unwrap_err().contains("barrier, broadcast, reduce, allreduce"));
    assert_eq!("2:75".parse(), Ok(Late { rank: 2, microseconds: 75 }));
    assert!("2".parse::<Late>().is_err());
}

#[test]
fn short_messages_take_the_half_type() {
    assert_eq!(ElementType::F64.fitting(4), ElementType::F32);
    assert_eq!(ElementType::I64.fitting(0), ElementType::I32);
    assert_eq!(ElementType::F64.fitting(8), ElementType::F64);
}
