use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A heap of a few extents that notes who takes what twice, and what is given back untaken.
struct Few(RefCell<Vec<bool>>);

impl Extents for Few {
    fn take(&self, count: usize) -> Result<usize> {
        let mut map = self.0.borrow_mut();
        let start = first_fit(map.iter().copied(), count).ok_or(Error::HeapExhausted {
            rank: 0,
            needed: 0,
            free: 0,
            heap: 0,
        })?;
        map[start..start + count].fill(true);
        Ok(start)
    }

    fn give_back(&self, start: usize, count: usize) {
        let mut map = self.0.borrow_mut();
        assert!(map[start..start + count].iter().all(|&taken| taken), "given back twice");
        map[start..start + count].fill(false);
    }
}

/// P1 and P2.
fn check(pool: &Pool, held: &[(usize, usize)], map: &[bool]) {
    let mut own = BTreeSet::new();
    let mut last = None;
    for (&start, &count) in &pool.kept {
        assert!(count > 0 && last.is_none_or(|last| last < start));
        last = Some(start + count);
        (start..start + count).for_each(|extent| assert!(own.insert(extent)));
    }
    assert_eq!(own.len(), pool.kept_extents);
    assert!(pool.kept_extents <= pool.keeps);
    for (&extent, book) in &pool.books {
        assert!(own.insert(extent) && book.free() < PAGES);
    }
    let mut pages = BTreeSet::new();
    for &(offset, bytes) in held {
        assert!(offset.is_multiple_of(PAGE));
        (offset / PAGE..(offset + bytes).div_ceil(PAGE)).for_each(|page| assert!(pages.insert(page), "overlap"));
        if bytes.div_ceil(PAGE) > SHORT {
            (offset / EXTENT..(offset + bytes).div_ceil(EXTENT)).for_each(|extent| assert!(own.insert(extent)));
        }
    }
    assert_eq!(own, (0..map.len()).filter(|&extent| map[extent]).collect(), "what is taken is somebody's");
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![
        1..3 * PAGE,
        1..EXTENT,
        EXTENT - 2..EXTENT + 3,
        1..5 * EXTENT,
        Just(SHORT * PAGE),
        Just(SHORT * PAGE + 1)
    ]
}

proptest! {
    /// Two ranks take and give back at random: no page is anybody else's, and all comes back.
    #[test]
    fn pieces_never_overlap_and_all_come_back(
        steps in prop::collection::vec((0..2usize, prop::option::of(sizes()), any::<prop::sample::Index>()), 1..120),
        extents in 1..24usize,
        keeps in 0..6usize,
    ) {
        let heap = Few(RefCell::new(vec![false; extents]));
        let mut pools = [Pool::new(keeps), Pool::new(keeps)];
        let mut held = [vec![], vec![]];
        let mut both: BTreeSet<usize> = BTreeSet::new();
        for (rank, size, which) in steps {
            let (pool, own) = (&mut pools[rank], &mut held[rank]);
            match size {
                Some(bytes) => match pool.take(bytes, &heap) {
                    Ok(taken) => {
                        let pages = taken.offset / PAGE..(taken.offset + bytes).div_ceil(PAGE);
                        pages.for_each(|page| assert!(both.insert(page), "another rank's"));
                        own.push((taken.offset, bytes));
                    }
                    Err(error) => {
                        let exhausted = matches!(error, Error::HeapExhausted { .. });
                        prop_assert!(exhausted);
                        prop_assert_eq!(pool.kept_extents, 0, "refused while memory was kept");
                    }
                },
                None if own.is_empty() => {}
                None => {
                    let (offset, bytes) = own.swap_remove(which.index(own.len()));
                    (offset / PAGE..(offset + bytes).div_ceil(PAGE)).for_each(|page| assert!(both.remove(&page)));
                    pool.give_back(offset, bytes, &heap);
                }
            }
            for rank in 0..2 {
                // What the map says without the other rank's.
                let other = 1 - rank;
                let long = held[other].iter().filter(|(_, bytes)| bytes.div_ceil(PAGE) > SHORT);
                let pieces = pools[other].kept.iter().map(|(&start, &count)| (start, count));
                let pieces = pieces.chain(pools[other].books.keys().map(|&extent| (extent, 1)));
                let pieces = pieces.chain(long.map(|(offset, bytes)| (offset / EXTENT, bytes.div_ceil(EXTENT))));
                let mut map = heap.0.borrow().clone();
                pieces.for_each(|(start, count)| map[start..start + count].fill(false));
                check(&pools[rank], &held[rank], &map);
            }
        }
        for rank in 0..2 {
            for (offset, bytes) in held[rank].drain(..) {
                pools[rank].give_back(offset, bytes, &heap);
            }
            pools[rank].give_up_kept(&heap);
            prop_assert!(pools[rank].books.is_empty());
        }
        prop_assert!(heap.0.borrow().iter().all(|&taken| !taken));
    }
}

#[test]
fn a_loop_of_one_size_asks_once() {
    for bytes in [100, PAGE + 1, 3 * EXTENT / 4, 5 * EXTENT] {
        let heap = Few(RefCell::new(vec![false; 8]));
        let mut pool = Pool::new(8);
        let first = pool.take(bytes, &heap).unwrap();
        pool.give_back(first.offset, bytes, &heap);
        assert!(first.zero);
        // Whoever asks this heap now is refused.
        heap.0.borrow_mut().fill(true);
        for _ in 0..10 {
            let again = pool.take(bytes, &heap).unwrap();
            assert_eq!(again, Taken { offset: first.offset, zero: false });
            pool.give_back(again.offset, bytes, &heap);
        }
    }
}
