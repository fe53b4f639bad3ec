//! MPI 5.0, chapter 11 Process creation and management.

use crate::kind::array::{Infos, Ints, IntsOut};
use crate::kind::handle::{Comm, CommRef, InfoOrNull};
use crate::kind::output::CommOut;
use crate::kind::scalar::{Int, Length, Root};
use crate::kind::text::{StrIn, StrOut, StringLists, Strings};
use crate::table::rows;

rows! { "11 Process creation and management";
    MPI_Close_port(port_name: StrIn) => missing;
    MPI_Comm_accept(port_name: StrIn, info: InfoOrNull, root: Root, comm: Comm, newcomm: CommOut) => missing;
    MPI_Comm_connect(port_name: StrIn, info: InfoOrNull, root: Root, comm: Comm, newcomm: CommOut) => missing;
    MPI_Comm_disconnect(comm: CommRef) => crate::comm::disconnect;
    MPI_Comm_get_parent(parent: CommOut) => crate::comm::get_parent;
    MPI_Comm_join(fd: Int, intercomm: CommOut) => missing;
    MPI_Comm_spawn(command: StrIn, argv: Strings, maxprocs: Int, info: InfoOrNull, root: Root, comm: Comm,
        intercomm: CommOut, array_of_errcodes: IntsOut) => missing;
    MPI_Comm_spawn_multiple(count: Length, array_of_commands: Strings, array_of_argv: StringLists,
        array_of_maxprocs: Ints, array_of_info: Infos, root: Root, comm: Comm, intercomm: CommOut,
        array_of_errcodes: IntsOut) => missing;
    MPI_Lookup_name(service_name: StrIn, info: InfoOrNull, port_name: StrOut) => missing;
    MPI_Open_port(info: InfoOrNull, port_name: StrOut) => missing;
    MPI_Publish_name(service_name: StrIn, info: InfoOrNull, port_name: StrIn) => missing;
    MPI_Unpublish_name(service_name: StrIn, info: InfoOrNull, port_name: StrIn) => missing;
}
