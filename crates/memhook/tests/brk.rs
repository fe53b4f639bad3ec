//! The break moves back, by hand and by the C library. A program of its own: nobody else may use the
//! allocator meanwhile.

#[path = "../../../tests/require.rs"]
mod require;

use fabric::Span;
use memhook::Monitor;

const PAGE: usize = 4096;

fn is_told(monitor: &mut Monitor, span: Span) -> bool {
    let mut gone = Vec::with_capacity(64);
    monitor.take(&mut gone);
    gone.iter().any(|g| g.addr <= span.addr && span.addr + span.len <= g.addr + g.len)
}

fn main() {
    let mut monitor = match Monitor::start(false) {
        Ok(monitor) => monitor,
        Err(why) => {
            assert!(why.contains("not permitted"), "{why}");
            require::missing("userfaultfd", &why);
            return println!("0 passed, 0 failed");
        }
    };
    by_hand(&mut monitor);
    by_the_c_library(&mut monitor);
    println!("1 passed, 0 failed");
}

fn by_hand(monitor: &mut Monitor) {
    // SAFETY: nothing allocates until the break is where it was.
    unsafe {
        let first = (libc::sbrk(8 * PAGE as isize) as usize).next_multiple_of(PAGE);
        let span = Span { addr: first, len: 4 * PAGE };
        std::ptr::write_bytes(first as *mut u8, 1, span.len);
        assert!(monitor.watch(span));
        assert!(!monitor.has_changed());
        libc::sbrk(-8 * PAGE as isize);
        assert!(is_told(monitor, span), "sbrk");
    }
}

/// Blocks too small to be mapped alone, of which the heap consists.
fn by_the_c_library(monitor: &mut Monitor) {
    // SAFETY: blocks of this function, used until they are freed, each once.
    unsafe {
        let blocks: Vec<*mut libc::c_void> = (0..256).map(|_| libc::malloc(64 * 1024)).collect();
        blocks.iter().for_each(|block| std::ptr::write_bytes(block.cast::<u8>(), 1, 64 * 1024));
        let at = (blocks[200] as usize).next_multiple_of(PAGE);
        let span = Span { addr: at, len: 8 * PAGE };
        assert!(monitor.watch(span));
        is_told(monitor, span);
        blocks.into_iter().rev().for_each(|block| libc::free(block));
        libc::malloc_trim(0);
        assert!(is_told(monitor, span), "free");
    }
}
