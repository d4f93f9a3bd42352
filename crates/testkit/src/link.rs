//! A played link between two nodes: it takes time, it counts, and a test can cut it.

use std::io;
use std::sync::mpsc as answers;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use thorp_net::Address;
use thorp_net::driver::ParentConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::authority::Authority;
use crate::patience::PAUSE;
use crate::running::Thread;
use crate::socket::{Listening, Stream, connect};

/// A link to a node, played on this machine: it listens at an address of its own, and carries bytes between its callers
/// and the node.
///
/// - Each direction takes a fixed time ([`set_delay`](Link::set_delay)), and the order is kept. As with TCP, a new
///   connection first takes a round trip.
/// - It may carry only so many bytes per second ([`set_bytes_per_second`](Link::set_bytes_per_second)). All connections
///   share them.
/// - On each connection at most 1 MiB are on their way in each direction ([`LINK_WINDOW_BYTES`]). Who sends more has to
///   wait.
/// - It can be [cut](Link::cut), [fall silent](Link::fall_silent) and be [mended](Link::mend).
/// - It counts the bytes that it was given ([`carried`](Link::carried)).
///
/// [`HomeNode::link`](crate::HomeNode::link) and [`SiteNode::link`](crate::SiteNode::link) make one. It ends when it is
/// dropped.
///
/// ```
/// use std::time::Duration;
/// use thorp_testing::Village;
///
/// let village = Village::new();
/// let home = village.home("alps");
/// let link = home.link(Duration::from_millis(40));
/// let site = village.site("valley", &[&link]);
/// println!("members join at {}", site.address());
///
/// thorp_testing::eventually("the site calls the home", || link.carried().up > 0);
/// link.cut();
/// ```
pub struct Link {
    address: Address,
    to: ParentConfig,
    road: Arc<Mutex<Road>>,
    /// Closed at the end.
    orders: Option<mpsc::UnboundedSender<(Order, answers::Sender<()>)>>,
    thread: Thread,
    /// Its socket is in the village's directory.
    _village: Option<Authority>,
}

/// Bytes that a link was given. TLS and the frames of the protocol are among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// From its callers to the node, in bytes.
    pub up: u64,
    /// From the node to its callers, in bytes.
    pub down: u64,
}

impl Link {
    /// A link without a delay, which listens at one address and leads to the other. For a Unix socket, no file may be
    /// there.
    ///
    /// # Panics
    ///
    /// It cannot listen there.
    pub fn new(from: &Address, to: &Address) -> Self {
        Self::start(None, from, ParentConfig::new(vec![to.clone()]))
    }

    /// A link to a node of a village, at a fresh socket in the village's directory.
    pub(crate) fn of(village: &Authority, to: ParentConfig, one_way: Duration) -> Self {
        let from = village.socket(&format!("link-{}", village.fresh_number()));
        let link = Self::start(Some(village.clone()), &from, to);
        link.set_delay(one_way);
        link
    }

    fn start(village: Option<Authority>, from: &Address, to: ParentConfig) -> Self {
        let road = Arc::<Mutex<Road>>::default();
        let (orders, ordered) = mpsc::unbounded_channel();
        let (from, shared) = (from.clone(), Arc::clone(&road));
        let far = to.addresses[0].clone();
        let (address, thread) = Thread::start(|| async move {
            let (listening, address) = Listening::at(&from).await.unwrap();
            (address, Player::new(far, shared).play(listening, ordered))
        });
        Self {
            address,
            to,
            road,
            orders: Some(orders),
            thread,
            _village: village,
        }
    }

    /// Where it listens. Members, or a site, join there as they would at the node.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// How a site dials the node by this link.
    pub fn as_parent(&self) -> ParentConfig {
        ParentConfig {
            addresses: vec![self.address.clone()],
            ..self.to.clone()
        }
    }

    /// From now on the link takes this long in each direction. What is on its way keeps its time, and its place.
    ///
    /// # Panics
    ///
    /// The delay is longer than a day.
    pub fn set_delay(&self, one_way: Duration) {
        assert!(one_way <= DELAY_MAX, "a delay of more than a day");
        self.road().pace.one_way = one_way;
    }

    /// From now on the link takes so many bytes per second in each direction; `None`: as many as come.
    ///
    /// # Panics
    ///
    /// There are to be none per second. [`Link::fall_silent`] is for that.
    pub fn set_bytes_per_second(&self, bytes: Option<u64>) {
        assert_ne!(bytes, Some(0), "let it fall silent instead");
        self.road().pace.bytes_per_second = bytes;
    }

    /// The bytes that it was given since it was made, also those that are on their way or were lost. Idle nodes send some
    /// dozens of bytes a second, so compare with what a page or a value has.
    pub fn carried(&self) -> Carried {
        let road = self.road();
        Carried {
            up: road.up.bytes,
            down: road.down.bytes,
        }
    }

    /// Breaks every connection, and lets nobody through any more. What was on its way is lost, and nothing arrives after
    /// this call. Both ends notice at once.
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    /// Carries nothing any more, and ends no connection. The ends notice only that they do not hear from each other.
    pub fn fall_silent(&self) {
        self.order(Order::FallSilent);
    }

    /// Ends a cut or a silence. It breaks every connection that there is, and lets new ones through.
    pub fn mend(&self) {
        self.order(Order::Mend);
    }

    /// Waits until it is done.
    fn order(&self, order: Order) {
        let (done, doing) = answers::channel();
        let orders = self.orders.as_ref().expect("it is open until the drop");
        orders.send((order, done)).expect("it is being played");
        doing.recv().expect("it is being played");
    }

    fn road(&self) -> MutexGuard<'_, Road> {
        self.road.lock().unwrap()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.orders = None;
        self.thread.join();
    }
}

/// What a test does to a link.
#[derive(Clone, Copy, Debug)]
enum Order {
    Cut,
    FallSilent,
    Mend,
}

/// What comes of those who call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Mode {
    #[default]
    Open,
    Silent,
    Cut,
}

/// What all connections share.
#[derive(Default)]
struct Road {
    mode: Mode,
    pace: Pace,
    up: Direction,
    down: Direction,
}

#[derive(Clone, Copy, Default)]
struct Pace {
    one_way: Duration,
    bytes_per_second: Option<u64>,
}

/// One direction of the road.
#[derive(Default)]
struct Direction {
    /// Bytes that it was given.
    bytes: u64,
    /// When the last byte has been sent; it arrives later.
    free_at: Option<Instant>,
}

impl Direction {
    /// Takes bytes, behind those that came before. When they arrive.
    fn take(&mut self, now: Instant, bytes: usize, pace: Pace) -> Instant {
        let bytes = bytes as u64;
        self.bytes += bytes;
        let begun = self.free_at.map_or(now, |free| free.max(now));
        let nanos = pace.bytes_per_second.map_or(0, |each_second| {
            u128::from(bytes) * 1_000_000_000 / u128::from(each_second)
        });
        let sent = begun + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.free_at = Some(sent);
        sent + pace.one_way
    }
}

/// Chooses a direction of the road.
type Which = fn(&mut Road) -> &mut Direction;

/// What the link does on its thread.
struct Player {
    to: Arc<Address>,
    road: Arc<Mutex<Road>>,
    crossing: JoinSet<()>,
}

impl Player {
    fn new(to: Address, road: Arc<Mutex<Road>>) -> Self {
        Self {
            to: Arc::new(to),
            road,
            crossing: JoinSet::new(),
        }
    }

    /// Until nobody can give an order any more.
    async fn play(
        mut self,
        mut listening: Listening,
        mut orders: mpsc::UnboundedReceiver<(Order, answers::Sender<()>)>,
    ) {
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => {
                    let Some((order, done)) = order else { return };
                    self.carry_out(order).await;
                    // Whoever gave the order may have panicked meanwhile.
                    let _ = done.send(());
                }
                Some(_) = self.crossing.join_next() => {}
                caller = listening.accept() => match caller {
                    Ok(caller) => self.admit(caller),
                    // There are too many open files; some may be closed soon.
                    Err(_) => sleep(PAUSE).await,
                }
            }
        }
    }

    async fn carry_out(&mut self, order: Order) {
        let mode = match order {
            Order::Cut => Mode::Cut,
            Order::FallSilent => Mode::Silent,
            Order::Mend => Mode::Open,
        };
        self.road.lock().unwrap().mode = mode;
        if mode != Mode::Silent {
            // Their sockets are closed when this is over.
            self.crossing.shutdown().await;
        }
    }

    fn admit(&mut self, caller: Stream) {
        if self.road.lock().unwrap().mode == Mode::Cut {
            return;
        }
        let (to, road) = (Arc::clone(&self.to), Arc::clone(&self.road));
        self.crossing.spawn(async move {
            // It ends where no node listens, or one end is gone.
            let _ = cross(caller, &to, &road).await;
        });
    }
}

/// Carries one connection.
async fn cross(caller: Stream, to: &Address, road: &Mutex<Road>) -> io::Result<()> {
    let round_trip = {
        let road = road.lock().unwrap();
        road.pace.one_way * 2
    };
    sleep(round_trip).await;
    if road.lock().unwrap().mode == Mode::Silent {
        // The caller gets neither an answer nor an end.
        return std::future::pending().await;
    }
    let called = connect(to).await?;
    let (from_caller, to_caller) = tokio::io::split(caller);
    let (from_called, to_called) = tokio::io::split(called);
    let up = carry(road, |road| &mut road.up, from_caller, to_called);
    let down = carry(road, |road| &mut road.down, from_called, to_caller);
    tokio::try_join!(up, down).map(|_| ())
}

/// Bytes on their way, none at the end of the stream. They come with their place in the window.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
    _place: Option<OwnedSemaphorePermit>,
}

/// Carries one direction of one connection, until it has ended at the other end, too.
async fn carry(
    road: &Mutex<Road>,
    which: Which,
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let (taken, given) = mpsc::unbounded_channel();
    let taking = async {
        take(road, which, from, taken).await;
        Ok(())
    };
    tokio::try_join!(taking, give(road, to, given)).map(|_| ())
}

/// Takes what an end sends.
async fn take(
    road: &Mutex<Road>,
    which: Which,
    mut from: impl AsyncRead + Unpin,
    taken: mpsc::UnboundedSender<Chunk>,
) {
    let window = Arc::new(Semaphore::new(LINK_WINDOW_BYTES));
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let free = Arc::clone(&window).acquire_many_owned(CHUNK_BYTES as u32);
        let mut free = free.await.expect("nobody closes it");
        // An end that is gone is an end: the other one hears of it in its time.
        let read = from.read(&mut buffer).await.unwrap_or(0);
        let due = {
            let road = &mut *road.lock().unwrap();
            let pace = road.pace;
            which(road).take(Instant::now(), read, pace)
        };
        let chunk = Chunk {
            due,
            bytes: buffer[..read].to_vec(),
            _place: free.split(read),
        };
        if taken.send(chunk).is_err() || read == 0 {
            return;
        }
    }
}

/// Gives it to the other end when it is due.
async fn give(
    road: &Mutex<Road>,
    mut to: impl AsyncWrite + Unpin,
    mut given: mpsc::UnboundedReceiver<Chunk>,
) -> io::Result<()> {
    while let Some(chunk) = given.recv().await {
        sleep_until(chunk.due).await;
        // During a silence bytes are lost, and no end is seen.
        let is_silent = road.lock().unwrap().mode == Mode::Silent;
        match (is_silent, chunk.bytes.is_empty()) {
            (true, false) => {}
            (true, true) => return std::future::pending().await,
            (false, false) => to.write_all(&chunk.bytes).await?,
            (false, true) => to.shutdown().await?,
        }
    }
    Ok(())
}

/// How many bytes may be on their way on a connection of a [`Link`], in each direction.
pub const LINK_WINDOW_BYTES: usize = 1 << 20;
/// Bytes that are carried at once, at most.
const CHUNK_BYTES: usize = 16 << 10;
const DELAY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::eventually;
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::{Path, PathBuf};
    use std::thread;
    use tempfile::TempDir;

    const SECOND: Duration = Duration::from_secs(1);

    /// A link to a socket that gives back what it gets.
    struct Scene {
        link: Link,
        from: PathBuf,
        _dir: TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join("from"), dir.path().join("to"));
            echo(&to);
            let link = Link::new(&Address::Unix(from.clone()), &Address::Unix(to));
            Scene {
                link,
                from,
                _dir: dir,
            }
        }

        fn call(&self) -> UnixStream {
            UnixStream::connect(&self.from).unwrap()
        }

        fn speak(&self) -> io::Result<[u8; 2]> {
            let mut caller = self.call();
            caller.write_all(b"hi")?;
            let mut answer = [0; 2];
            caller.read_exact(&mut answer)?;
            Ok(answer)
        }
    }

    fn echo(at: &Path) {
        let listener = UnixListener::bind(at).unwrap();
        thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || io::copy(&mut &caller, &mut &caller));
            }
        });
    }

    #[test]
    fn nothing_crosses_a_link_that_is_cut() {
        let scene = Scene::new();
        assert_eq!(scene.speak().unwrap(), *b"hi");
        scene.link.cut();
        assert!(scene.speak().is_err());
        assert_eq!(scene.link.carried(), Carried { up: 2, down: 2 });
        scene.link.mend();
        assert_eq!(scene.speak().unwrap(), *b"hi");
        assert_eq!(scene.link.carried(), Carried { up: 4, down: 4 });
    }

    #[test]
    fn a_cut_ends_what_crosses() {
        let scene = Scene::new();
        let mut caller = scene.call();
        caller.write_all(b"hi").unwrap();
        caller.read_exact(&mut [0; 2]).unwrap();
        scene.link.cut();
        assert_eq!(caller.read(&mut [0; 2]).unwrap(), 0);
    }

    #[test]
    fn in_a_silence_bytes_are_lost_and_no_connection_ends() {
        let scene = Scene::new();
        let mut caller = scene.call();
        caller.write_all(b"hi").unwrap();
        caller.read_exact(&mut [0; 2]).unwrap();
        scene.link.fall_silent();
        caller.write_all(b"lost").unwrap();
        eventually("they are taken", || scene.link.carried().up == 6);
        caller.set_nonblocking(true).unwrap();
        let nothing = caller.read(&mut [0; 2]).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        scene.link.mend();
        caller.set_nonblocking(false).unwrap();
        assert_eq!(caller.read(&mut [0; 2]).unwrap(), 0);
        assert_eq!(scene.link.carried().down, 2);
    }

    #[test]
    fn bytes_on_their_way_have_not_arrived_and_are_bounded() {
        let scene = Scene::new();
        let mut caller = scene.call();
        caller.write_all(b"hi").unwrap();
        caller.read_exact(&mut [0; 2]).unwrap();
        scene.link.set_delay(60 * 60 * SECOND);
        let flood = thread::spawn({
            let mut caller = caller.try_clone().unwrap();
            move || caller.write_all(&vec![0; 4 * LINK_WINDOW_BYTES])
        });
        // It reads while there is room for one more chunk.
        let full = (LINK_WINDOW_BYTES - CHUNK_BYTES) as u64;
        eventually("it takes no more", || scene.link.carried().up > full);
        assert_eq!(scene.link.carried().down, 2);
        scene.link.cut();
        assert!(flood.join().unwrap().is_err());
        assert!(scene.link.carried().up <= 2 + LINK_WINDOW_BYTES as u64);
    }

    #[test]
    fn much_arrives_whole_and_in_order_by_tcp_too() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("to");
        echo(&to);
        let link = Link::new(&crate::loopback(), &Address::Unix(to));
        link.set_delay(Duration::from_millis(1));
        link.set_bytes_per_second(Some(1 << 30));
        let Address::Tcp { host, port } = link.address().clone() else {
            panic!("{}", link.address());
        };
        let caller = std::net::TcpStream::connect((host, port)).unwrap();
        let sent: Vec<u8> = (0..3 * LINK_WINDOW_BYTES).map(|n| (n / 7) as u8).collect();
        let writing = thread::spawn({
            let (mut caller, sent) = (caller.try_clone().unwrap(), sent.clone());
            move || {
                caller.write_all(&sent).unwrap();
                caller.shutdown(std::net::Shutdown::Write).unwrap();
            }
        });
        let mut got = Vec::new();
        (&caller).read_to_end(&mut got).unwrap();
        writing.join().unwrap();
        assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
        let all = sent.len() as u64;
        assert_eq!(link.carried(), Carried { up: all, down: all });
    }

    #[test]
    fn what_is_sent_arrives_later_by_the_delay_and_behind_what_was_sent_before() {
        let now = Instant::now();
        let pace = |bytes_per_second| Pace {
            one_way: SECOND,
            bytes_per_second,
        };
        let mut wide = Direction::default();
        assert_eq!(wide.take(now, 1 << 20, pace(None)), now + SECOND);
        assert_eq!(wide.take(now, 1, pace(None)), now + SECOND);

        let mut narrow = Direction::default();
        let slow = pace(Some(100));
        assert_eq!(narrow.take(now, 200, slow), now + 3 * SECOND);
        assert_eq!(narrow.take(now, 100, slow), now + 4 * SECOND);
        let later = now + 10 * SECOND;
        assert_eq!(narrow.take(later, 100, slow), later + 2 * SECOND);
        assert_eq!(narrow.bytes, 400);
    }

    #[test]
    fn a_shorter_delay_lets_nothing_overtake() {
        let scene = Scene::new();
        let mut caller = scene.call();
        scene.link.set_delay(Duration::from_millis(30));
        caller.write_all(b"a").unwrap();
        eventually("it is on its way", || scene.link.carried().up == 1);
        scene.link.set_delay(Duration::ZERO);
        caller.write_all(b"b").unwrap();
        let mut answer = [0; 2];
        caller.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"ab");
    }
}
