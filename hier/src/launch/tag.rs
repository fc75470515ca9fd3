//! Lines marked with the rank that wrote them.

/// Beyond this length a line is passed on in pieces, each with a tag and an end of its own.
const LONGEST_LINE: usize = 16 << 20;

/// Cuts what the ranks write into lines, and puts each rank's tag before its lines.
#[derive(Debug)]
pub(super) struct Tagger {
    /// By rank: what it wrote since the end of its last line.
    unfinished: Vec<Vec<u8>>,
}

impl Tagger {
    pub(super) fn new(ranks: usize) -> Self {
        Tagger { unfinished: vec![Vec::new(); ranks] }
    }

    /// Takes what `rank` wrote, and appends the lines that it completes to `out`.
    pub(super) fn take(&mut self, rank: usize, bytes: &[u8], out: &mut Vec<u8>) {
        let unfinished = &mut self.unfinished[rank];
        let mut lines = bytes.split_inclusive(|&byte| byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            if lines.peek().is_none() && line.last() != Some(&b'\n') {
                unfinished.extend_from_slice(line);
                break;
            }
            tag(rank, out);
            out.append(unfinished);
            out.extend_from_slice(line);
        }
        if unfinished.len() >= LONGEST_LINE {
            self.finish(rank, out);
        }
    }

    /// Ends the last line of `rank`, if it did not do so itself.
    pub(super) fn finish(&mut self, rank: usize, out: &mut Vec<u8>) {
        let unfinished = &mut self.unfinished[rank];
        if !unfinished.is_empty() {
            tag(rank, out);
            out.append(unfinished);
            out.push(b'\n');
        }
    }
}

fn tag(rank: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("[{rank}] ").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(pieces: &[(usize, &[u8])]) -> Vec<u8> {
        let (mut tagger, mut out) = (Tagger::new(4), Vec::new());
        for &(rank, bytes) in pieces {
            tagger.take(rank, bytes, &mut out);
        }
        (0..4).for_each(|rank| tagger.finish(rank, &mut out));
        out
    }

    #[test]
    fn lines_stay_whole() {
        assert_eq!(
            tagged(&[(0, b"one "), (3, b"a\nb"), (0, b"line\n\n"), (3, b"c\n")]),
            b"[3] a\n[0] one line\n[0] \n[3] bc\n"
        );
    }

    #[test]
    fn a_last_line_gets_its_end() {
        assert_eq!(tagged(&[(2, b"x\ny"), (1, b"")]), b"[2] x\n[2] y\n");
    }

    #[test]
    fn any_bytes_pass() {
        assert_eq!(tagged(&[(1, b"\0\xff\r"), (1, b"\n\n")]), b"[1] \0\xff\r\n[1] \n");
    }

    #[test]
    fn how_a_text_was_cut_does_not_show() {
        let text: Vec<u8> = (0..2000u32).map(|i| if i % 37 == 0 { b'\n' } else { i as u8 }).collect();
        let whole = tagged(&[(0, &text)]);
        for piece in [1, 2, 7, 64, 500] {
            let cut: Vec<_> = text.chunks(piece).map(|bytes| (0, bytes)).collect();
            assert_eq!(tagged(&cut), whole);
        }
    }
}
