use super::{Evictor, Order};

/// S3-FIFO: a small queue (a tenth) that most pages leave without ever being asked for again, a main queue with second
/// chances, and a list of those that left the small queue lately, which go to the main one when they come back (Yang and
/// others, SOSP 2023).
///
/// Its choices where the paper leaves them open are those of libCacheSim 0.3.5, with which its counts agree: pages move to
/// the main queue if they were asked for twice in the small one; they start there as if never asked for; the list remembers
/// nine tenths as many pages as fit; and until something has to go for the first time, what finds the small queue full goes
/// to the main one.
#[derive(Clone, Debug)]
pub(super) struct S3Fifo {
    capacity: usize,
    small_capacity: usize,
    ghost_capacity: usize,
    small: Order,
    main: Order,
    ghost: Order,
    /// How often each page that is here was asked for since it came into its queue, or since its last second chance.
    uses: Vec<u8>,
    has_evicted: bool,
}

impl S3Fifo {
    /// What is noted of each page, beside the rows.
    pub(super) const PAGE_BYTES: usize = size_of::<u8>();

    /// A memory of so many pages, of those numbered below `footprint`.
    pub(super) fn new(capacity: usize, footprint: usize) -> Self {
        S3Fifo {
            capacity,
            small_capacity: (capacity / 10).max(1),
            ghost_capacity: (capacity as f64 * 0.9) as usize,
            small: Order::new(footprint),
            main: Order::new(footprint),
            ghost: Order::new(footprint),
            uses: vec![0; footprint],
            has_evicted: false,
        }
    }

    fn evict_from_small(&mut self) -> Option<u32> {
        while let Some(page) = self.small.pop_oldest() {
            if self.uses[page as usize] < USES_TO_MOVE {
                self.ghost.push(page);
                return Some(page);
            }
            self.uses[page as usize] = 0;
            self.main.push(page);
        }
        None
    }

    fn evict_from_main(&mut self) -> Option<u32> {
        let mut page = self.main.oldest()?;
        while self.uses[page as usize] > 0 {
            self.uses[page as usize] -= 1;
            self.main.renew(page);
            page = self.main.oldest()?;
        }
        self.main.remove(page);
        Some(page)
    }

    /// What was remembered for longest is forgotten, but not before it is known which page comes: it may be that one.
    fn forget(&mut self) {
        while self.ghost.len() > self.ghost_capacity {
            self.ghost.pop_oldest();
        }
    }
}

impl Evictor for S3Fifo {
    fn touch(&mut self, page: u32) -> bool {
        let is_hit = self.holds(page);
        if is_hit {
            let uses = &mut self.uses[page as usize];
            *uses = (*uses + 1).min(USES_MOST);
        }
        is_hit
    }

    fn admit(&mut self, page: u32) -> Option<u32> {
        let is_back = self.ghost.remove(page);
        let is_full = self.len() >= self.capacity;
        let gone = if is_full { self.evict() } else { None };
        self.uses[page as usize] = 0;
        let is_filling = !self.has_evicted && self.small.len() >= self.small_capacity;
        match is_back || is_filling {
            true => self.main.push(page),
            false => self.small.push(page),
        }
        self.forget();
        gone
    }

    fn evict(&mut self) -> Option<u32> {
        self.has_evicted = true;
        let main_capacity = self.capacity - self.small_capacity;
        if self.main.len() > main_capacity || self.small.len() == 0 {
            return self.evict_from_main();
        }
        // If all of the small queue moves on, the main one has too many.
        self.evict_from_small().or_else(|| self.evict_from_main())
    }

    fn remove(&mut self, page: u32) -> bool {
        self.small.remove(page) || self.main.remove(page)
    }

    fn holds(&self, page: u32) -> bool {
        self.small.holds(page) || self.main.holds(page)
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }
}

const USES_TO_MOVE: u8 = 2;
/// More are not counted.
const USES_MOST: u8 = 3;
