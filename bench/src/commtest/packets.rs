//! One volume, cut into packets.

use std::ops::Range;

/// The numbers of packets as which a volume of `total` bytes is sent: 1, 2, 4 .. as long as no packet is shorter than
/// `least`.
pub fn packetisations(total: usize, least: usize) -> Vec<usize> {
    let most = total / least.max(1);
    std::iter::successors(Some(1_usize), |packets| packets.checked_mul(2))
        .take_while(|&packets| packets <= most.max(1))
        .collect()
}

/// Where packet `index` of `packets` lies in a volume of `total` bytes: one behind the other, and where the number does
/// not divide the volume, the first ones are a byte longer.
pub fn packet(total: usize, packets: usize, index: usize) -> Range<usize> {
    let (short, longer) = (total / packets, total % packets);
    let start = index * short + index.min(longer);
    start..start + short + usize::from(index < longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_example() {
        let all = packetisations(2 << 20, 2 << 10);
        assert_eq!(all, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]);
        assert_eq!(packet(2 << 20, 1024, 1023), (2 << 20) - 2048..2 << 20);
    }

    /// For many volumes: packets lie one behind the other, fill it, differ by a byte at most and are no shorter than
    /// the least.
    #[test]
    fn packets_fill_the_volume_in_order() {
        for total in (1..200).chain([1000, 1 << 16, (1 << 16) + 7]) {
            for least in [1, 2, 3, 7, 64, 300] {
                for packets in packetisations(total, least) {
                    let ranges: Vec<_> = (0..packets).map(|index| packet(total, packets, index)).collect();
                    assert_eq!((ranges[0].start, ranges[packets - 1].end), (0, total));
                    assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
                    let lengths = ranges.iter().map(ExactSizeIterator::len);
                    let (short, long) = (lengths.clone().min().unwrap(), lengths.max().unwrap());
                    assert!(long - short <= 1 && (packets == 1 || short >= least), "{total} {least} {packets}");
                }
            }
        }
    }

    #[test]
    fn there_is_always_one_packetisation() {
        assert_eq!(
            (packetisations(10, 64), packetisations(64, 64), packetisations(127, 64)),
            (vec![1], vec![1], vec![1])
        );
        assert_eq!(packetisations(128, 64), [1, 2]);
    }
}
