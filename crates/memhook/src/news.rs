//! What goes from the thread that reads events to the rank: fixed memory, for that thread must
//! neither allocate nor wait. A thread may hold the lock of the allocator while it waits for its event
//! to be read.

use crate::sys::News;
use fabric::Span;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Events that may wait to be taken; when there are more everything counts as gone.
const ROOM: usize = 1024;

/// One event; the lowest bits of `len`, which is one of pages, say which.
#[derive(Default)]
struct Place {
    addr: AtomicUsize,
    len: AtomicUsize,
}

/// One writer and one reader.
pub struct Board {
    /// Odd while events are being read: then a change may have happened that is not written here.
    turn: AtomicU64,
    places: Box<[Place]>,
    written: AtomicUsize,
    taken: AtomicUsize,
    /// Not 0 if there were more events than places.
    lost: AtomicUsize,
}

impl Board {
    /// Nothing has happened.
    pub fn new() -> Board {
        Board {
            turn: AtomicU64::new(0),
            places: (0..ROOM).map(|_| Place::default()).collect(),
            written: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        }
    }

    /// Changes with every event.
    #[inline(always)]
    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// Writer: reads events by `next` until there are none.
    ///
    /// The call that caused an event goes on as soon as it is read, so that it may be written here
    /// only after the memory is in use again. The odd turn, which comes before, makes a reader wait for it.
    pub fn write(&self, mut next: impl FnMut() -> Option<[Option<News>; 2]>) {
        self.turn.fetch_add(1, Ordering::SeqCst);
        while let Some(news) = next() {
            news.into_iter().flatten().for_each(|news| self.put(news));
        }
        self.turn.fetch_add(1, Ordering::SeqCst);
    }

    fn put(&self, news: News) {
        let written = self.written.load(Ordering::Relaxed);
        if written.wrapping_sub(self.taken.load(Ordering::Acquire)) >= ROOM {
            return self.lost.store(1, Ordering::Release);
        }
        let (span, kind) = match news {
            News::Unmapped(span) => (span, 0),
            News::Emptied(span) => (span, 1),
            News::MovedTo(span) => (span, 2),
        };
        let place = &self.places[written % ROOM];
        place.addr.store(span.addr, Ordering::Relaxed);
        place.len.store(span.len | kind, Ordering::Relaxed);
        self.written.store(written.wrapping_add(1), Ordering::Release);
    }

    /// Reader: takes all news; the turn up to which nothing is missing.
    pub fn take(&self, mut each: impl FnMut(News)) -> u64 {
        let mut turn = self.turn();
        while turn % 2 == 1 {
            std::thread::yield_now();
            turn = self.turn();
        }
        if self.lost.swap(0, Ordering::AcqRel) != 0 {
            each(News::Emptied(Span { addr: 0, len: usize::MAX - 3 }));
        }
        let (mut taken, written) = (self.taken.load(Ordering::Relaxed), self.written.load(Ordering::Acquire));
        while taken != written {
            let place = &self.places[taken % ROOM];
            let (addr, len) = (place.addr.load(Ordering::Relaxed), place.len.load(Ordering::Relaxed));
            let span = Span { addr, len: len & !3 };
            each(match len & 3 {
                0 => News::Unmapped(span),
                1 => News::Emptied(span),
                _ => News::MovedTo(span),
            });
            taken = taken.wrapping_add(1);
        }
        self.taken.store(taken, Ordering::Release);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(page: usize) -> Span {
        Span { addr: page * 4096, len: 4096 }
    }

    fn write(board: &Board, news: impl IntoIterator<Item = News>) {
        let mut news = news.into_iter();
        board.write(|| news.next().map(|news| [Some(news), None]));
    }

    #[test]
    fn news_come_in_order_and_once() {
        let board = Board::new();
        let turn = board.turn();
        let sent = [News::Unmapped(span(1)), News::Emptied(span(2)), News::MovedTo(span(3))];
        write(&board, sent);
        assert_ne!(board.turn(), turn);
        let mut got = Vec::new();
        assert_eq!(board.take(|news| got.push(news)), board.turn());
        assert_eq!(got, sent);
        board.take(|news| panic!("{news:?} came twice"));
    }

    #[test]
    fn too_many_news_mean_that_everything_is_gone() {
        let board = Board::new();
        write(&board, (0..ROOM + 1).map(|page| News::Unmapped(span(page))));
        let mut got = Vec::new();
        board.take(|news| got.push(news));
        assert_eq!((got.len(), got[0]), (ROOM + 1, News::Emptied(Span { addr: 0, len: usize::MAX - 3 })));
        write(&board, [News::Unmapped(span(7))]);
        got.clear();
        board.take(|news| got.push(news));
        assert_eq!(got, [News::Unmapped(span(7))]);
    }
}
