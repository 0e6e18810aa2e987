use crate::FileIndex;

const NONE: u32 = u32::MAX;

/// Chunks in true least-recently-used order. A hash table of chains and a doubly linked list, both
/// threaded through one vector of nodes: half the cache misses of a map beside a list.
#[derive(Clone, Debug)]
pub(super) struct Lru {
    /// First node of each chain; a power of two long.
    heads: Vec<u32>,
    nodes: Vec<Node>,
    newest: u32,
    oldest: u32,
    capacity: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    chunk: u64,
    file: FileIndex,
    newer: u32,
    older: u32,
    chain: u32,
}

impl Lru {
    /// `capacity`: chunks; at least 1.
    pub(super) fn new(capacity: u64) -> Self {
        let capacity = capacity.clamp(1, u64::from(NONE - 1)) as usize;
        let heads = vec![NONE; 1024];
        Self { heads, nodes: Vec::new(), newest: NONE, oldest: NONE, capacity }
    }

    /// Makes the chunk the newest, dropping the oldest for it if need be. Whether it was there.
    pub(super) fn touch(&mut self, file: FileIndex, chunk: u64) -> bool {
        if let Some(at) = self.find(file, chunk) {
            if at != self.newest {
                self.unlink(at);
                self.push(at);
            }
            return true;
        }
        let node = Node { chunk, file, newer: NONE, older: NONE, chain: NONE };
        let at = if self.nodes.len() < self.capacity {
            self.nodes.push(node);
            if self.nodes.len() > self.heads.len() {
                self.grow();
            }
            (self.nodes.len() - 1) as u32
        } else {
            let at = self.oldest;
            self.unlink(at);
            self.unchain(at);
            self.nodes[at as usize] = node;
            at
        };
        self.chain(at);
        self.push(at);
        false
    }

    fn bucket(&self, file: FileIndex, chunk: u64) -> usize {
        let mixed = (chunk ^ (u64::from(file.0) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.heads.len() - 1)
    }

    fn find(&self, file: FileIndex, chunk: u64) -> Option<u32> {
        let mut at = self.heads[self.bucket(file, chunk)];
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.chunk == chunk && node.file == file {
                return Some(at);
            }
            at = node.chain;
        }
        None
    }

    fn chain(&mut self, at: u32) {
        let Node { file, chunk, .. } = self.nodes[at as usize];
        let bucket = self.bucket(file, chunk);
        self.nodes[at as usize].chain = self.heads[bucket];
        self.heads[bucket] = at;
    }

    fn unchain(&mut self, at: u32) {
        let Node { file, chunk, chain, .. } = self.nodes[at as usize];
        let bucket = self.bucket(file, chunk);
        if self.heads[bucket] == at {
            self.heads[bucket] = chain;
            return;
        }
        let mut before = self.heads[bucket];
        while before != NONE {
            let next = self.nodes[before as usize].chain;
            if next == at {
                self.nodes[before as usize].chain = chain;
                return;
            }
            before = next;
        }
    }

    /// Doubles the table. The newest node is not in a chain yet.
    fn grow(&mut self) {
        self.heads = vec![NONE; self.heads.len() * 2];
        for at in 0..self.nodes.len() - 1 {
            self.chain(at as u32);
        }
    }

    fn unlink(&mut self, at: u32) {
        let Node { newer, older, .. } = self.nodes[at as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }

    fn push(&mut self, at: u32) {
        let older = self.newest;
        self.nodes[at as usize].newer = NONE;
        self.nodes[at as usize].older = older;
        match older {
            NONE => self.oldest = at,
            older => self.nodes[older as usize].newer = at,
        }
        self.newest = at;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keeps_its_order_while_the_table_grows() {
        let mut lru = Lru::new(5000);
        for chunk in 0..6000 {
            assert!(!lru.touch(FileIndex(1), chunk), "{chunk}");
        }
        for chunk in 1000..6000 {
            assert!(lru.touch(FileIndex(1), chunk), "{chunk}");
        }
        assert!(!lru.touch(FileIndex(1), 999));
        assert!(!lru.touch(FileIndex(2), 5999), "another file");
        assert!(!lru.touch(FileIndex(1), 1000), "the oldest made room");
    }

    proptest! {
        #[test]
        fn equals_a_plain_list(keys in prop::collection::vec(0u64..12, 0..300), capacity in 1u64..10) {
            let mut lru = Lru::new(capacity);
            let mut list: Vec<u64> = Vec::new();
            for key in keys {
                let there = list.iter().position(|&k| k == key);
                if let Some(at) = there {
                    list.remove(at);
                } else if list.len() as u64 == capacity {
                    list.pop();
                }
                list.insert(0, key);
                prop_assert_eq!(lru.touch(FileIndex(0), key), there.is_some());
            }
        }
    }
}
