//! Operations that are allowed before MPI_Init, called as C calls them.

use std::ffi::{CStr, c_char, c_int};

use abi as _;

const INFO_NULL: usize = 0x130;
const SUCCESS: c_int = 0;

unsafe extern "C" {
    fn PMPI_Info_create(info: *mut usize) -> c_int;
    fn PMPI_Info_create_env(argc: c_int, argv: *const *const c_char, info: *mut usize) -> c_int;
    fn PMPI_Info_dup(info: usize, newinfo: *mut usize) -> c_int;
    fn PMPI_Info_free(info: *mut usize) -> c_int;
    fn PMPI_Info_set(info: usize, key: *const c_char, value: *const c_char) -> c_int;
    fn PMPI_Info_delete(info: usize, key: *const c_char) -> c_int;
    fn PMPI_Info_get(
        info: usize,
        key: *const c_char,
        valuelen: c_int,
        value: *mut c_char,
        flag: *mut c_int,
    ) -> c_int;
    fn PMPI_Info_get_string(
        info: usize,
        key: *const c_char,
        buflen: *mut c_int,
        value: *mut c_char,
        flag: *mut c_int,
    ) -> c_int;
    fn PMPI_Info_get_valuelen(info: usize, key: *const c_char, len: *mut c_int, flag: *mut c_int) -> c_int;
    fn PMPI_Info_get_nkeys(info: usize, nkeys: *mut c_int) -> c_int;
    fn PMPI_Info_get_nthkey(info: usize, n: c_int, key: *mut c_char) -> c_int;
    fn PMPI_Add_error_class(class: *mut c_int) -> c_int;
    fn PMPI_Add_error_code(class: c_int, code: *mut c_int) -> c_int;
    fn PMPI_Add_error_string(code: c_int, text: *const c_char) -> c_int;
    fn PMPI_Error_class(code: c_int, class: *mut c_int) -> c_int;
    fn PMPI_Error_string(code: c_int, text: *mut c_char, len: *mut c_int) -> c_int;
    fn PMPI_Session_create_errhandler(function: usize, errhandler: *mut usize) -> c_int;
    fn PMPI_Errhandler_free(errhandler: *mut usize) -> c_int;
}

/// A buffer filled with a mark, so that writes beyond the end show.
struct Buffer([u8; 2048]);

impl Buffer {
    fn new() -> Buffer {
        Buffer([b'#'; 2048])
    }

    fn at(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    fn text(&self) -> &str {
        CStr::from_bytes_until_nul(&self.0).unwrap().to_str().unwrap()
    }

    /// How many bytes were written, the terminating zero included.
    fn written(&self) -> usize {
        self.0.iter().rposition(|byte| *byte != b'#').map_or(0, |at| at + 1)
    }
}

fn info_with(pairs: &[(&CStr, &CStr)]) -> usize {
    let mut info = 0;
    // SAFETY: arguments as MPI demands them.
    unsafe {
        assert_eq!(PMPI_Info_create(&raw mut info), SUCCESS);
        for (key, value) in pairs {
            assert_eq!(PMPI_Info_set(info, key.as_ptr(), value.as_ptr()), SUCCESS);
        }
    }
    info
}

#[test]
fn values_are_cut_to_the_buffer_and_their_length_is_told() {
    let info = info_with(&[(c"key", c"0123456789")]);
    // SAFETY: arguments as MPI demands them; the buffers are larger than any length passed.
    unsafe {
        for (room, expected) in [(0, ""), (1, ""), (5, "0123"), (11, "0123456789"), (2000, "0123456789")] {
            let (mut buffer, mut buflen, mut flag) = (Buffer::new(), room, -1);
            let code =
                PMPI_Info_get_string(info, c"key".as_ptr(), &raw mut buflen, buffer.at(), &raw mut flag);
            assert_eq!((code, flag, buflen), (SUCCESS, 1, 11));
            if room > 0 {
                assert_eq!((buffer.text(), buffer.written()), (expected, expected.len() + 1));
            } else {
                assert_eq!(buffer.written(), 0, "nothing is written without room");
            }
        }
        let (mut buflen, mut flag) = (0, -1);
        let null = std::ptr::null_mut();
        assert_eq!(
            PMPI_Info_get_string(info, c"key".as_ptr(), &raw mut buflen, null, &raw mut flag),
            SUCCESS
        );
        assert_eq!((buflen, flag), (11, 1));
        buflen = 7;
        assert_eq!(
            PMPI_Info_get_string(info, c"other".as_ptr(), &raw mut buflen, null, &raw mut flag),
            SUCCESS
        );
        assert_eq!((buflen, flag), (7, 0), "a key that is not there changes nothing but the flag");

        let mut buffer = Buffer::new();
        assert_eq!(PMPI_Info_get(info, c"key".as_ptr(), 4, buffer.at(), &raw mut flag), SUCCESS);
        assert_eq!((buffer.text(), buffer.written(), flag), ("0123", 5, 1));
        let mut len = 0;
        assert_eq!(PMPI_Info_get_valuelen(info, c"key".as_ptr(), &raw mut len, &raw mut flag), SUCCESS);
        assert_eq!((len, flag), (10, 1));
    }
}

#[test]
fn a_duplicate_stands_alone() {
    let mut info = info_with(&[(c"a", c"1"), (c"b", c"2")]);
    let (mut copy, mut n, mut key) = (0, 0, Buffer::new());
    // SAFETY: arguments as MPI demands them.
    unsafe {
        assert_eq!(PMPI_Info_dup(info, &raw mut copy), SUCCESS);
        assert_eq!(PMPI_Info_delete(info, c"a".as_ptr()), SUCCESS);
        assert_eq!((PMPI_Info_get_nkeys(info, &raw mut n), n), (SUCCESS, 1));
        assert_eq!((PMPI_Info_get_nkeys(copy, &raw mut n), n), (SUCCESS, 2));
        assert_eq!((PMPI_Info_get_nthkey(copy, 0, key.at()), key.text()), (SUCCESS, "a"));
        assert_eq!((PMPI_Info_free(&raw mut info), info), (SUCCESS, INFO_NULL));
        assert_eq!((PMPI_Info_free(&raw mut copy), copy), (SUCCESS, INFO_NULL));
    }
}

#[test]
fn the_environment_takes_the_command_line_given() {
    let value = |info: usize, key: &CStr| {
        let (mut buffer, mut room, mut flag) = (Buffer::new(), 1024, 0);
        // SAFETY: arguments as MPI demands them.
        let code =
            unsafe { PMPI_Info_get_string(info, key.as_ptr(), &raw mut room, buffer.at(), &raw mut flag) };
        assert_eq!(code, SUCCESS);
        (flag != 0).then(|| buffer.text().to_string())
    };
    let argv = [c"heat".as_ptr(), c"-n".as_ptr(), c"4".as_ptr(), std::ptr::null()];
    let (mut given, mut own) = (0, 0);
    // SAFETY: arguments as MPI demands them.
    unsafe {
        assert_eq!(PMPI_Info_create_env(3, argv.as_ptr(), &raw mut given), SUCCESS);
        assert_eq!(PMPI_Info_create_env(0, std::ptr::null(), &raw mut own), SUCCESS);
    }
    assert_eq!((value(given, c"command"), value(given, c"argv")), (Some("heat".into()), Some("-n 4".into())));
    assert!(value(own, c"command").unwrap().contains("anytime"));
    assert_eq!(value(own, c"arch").as_deref(), Some(std::env::consts::ARCH));
    assert_eq!(value(own, c"wdir").unwrap(), std::env::current_dir().unwrap().to_str().unwrap());
}

#[test]
fn codes_of_the_program_have_class_and_text() {
    let (mut class, mut code, mut answer, mut len, mut text) = (0, 0, 0, 0, Buffer::new());
    // SAFETY: arguments as MPI demands them.
    unsafe {
        assert_eq!(PMPI_Add_error_class(&raw mut class), SUCCESS);
        assert_eq!(PMPI_Add_error_code(class, &raw mut code), SUCCESS);
        assert_eq!(PMPI_Add_error_string(code, c"out of tea".as_ptr()), SUCCESS);
        assert_eq!((PMPI_Error_class(code, &raw mut answer), answer), (SUCCESS, class));
        assert_eq!(PMPI_Error_string(code, text.at(), &raw mut len), SUCCESS);
    }
    assert!(code > 0x3fff && class > 0x3fff && code != class);
    assert_eq!((text.text(), len), ("out of tea", 10));
}

#[test]
fn a_handle_that_is_freed_becomes_null() {
    let mut errhandler = 0;
    // SAFETY: arguments as MPI demands them; the function is never called.
    unsafe {
        assert_eq!(PMPI_Session_create_errhandler(0x1000, &raw mut errhandler), SUCCESS);
        assert!(errhandler >= 1 << 20);
        assert_eq!((PMPI_Errhandler_free(&raw mut errhandler), errhandler), (SUCCESS, 0x140));
    }
}
