//! MPI 5.0, chapter 11 Process creation and management.

use crate::dynamic::{
    accept, close_port, connect, get_parent, join, lookup_name, open_port, publish_name, spawn,
    spawn_multiple, unpublish_name,
};
use crate::kind::array::{Infos, Ints, IntsOut};
use crate::kind::handle::{Comm, CommRef, InfoOrNull, RootInfo};
use crate::kind::output::CommOut;
use crate::kind::scalar::{Int, Root};
use crate::kind::text::{RootStrIn, StrIn, StrOut, StringLists, Strings};
use crate::table::rows;

rows! { "11 Process creation and management";
    MPI_Close_port(port_name: StrIn) => close_port;
    MPI_Comm_accept(port_name: RootStrIn, info: InfoOrNull, root: Root, comm: Comm, newcomm: CommOut) => accept;
    MPI_Comm_connect(port_name: RootStrIn, info: InfoOrNull, root: Root, comm: Comm, newcomm: CommOut) => connect;
    MPI_Comm_disconnect(comm: CommRef) => crate::comm::disconnect;
    MPI_Comm_get_parent(parent: CommOut) => get_parent;
    MPI_Comm_join(fd: Int, intercomm: CommOut) => join;
    MPI_Comm_spawn(command: RootStrIn, argv: Strings, maxprocs: Int, info: RootInfo, root: Root, comm: Comm,
        intercomm: CommOut, array_of_errcodes: IntsOut) => spawn;
    MPI_Comm_spawn_multiple(count: Int, array_of_commands: Strings, array_of_argv: StringLists,
        array_of_maxprocs: Ints, array_of_info: Infos, root: Root, comm: Comm, intercomm: CommOut,
        array_of_errcodes: IntsOut) => spawn_multiple;
    MPI_Lookup_name(service_name: StrIn, info: InfoOrNull, port_name: StrOut) => lookup_name;
    MPI_Open_port(info: InfoOrNull, port_name: StrOut) => open_port;
    MPI_Publish_name(service_name: StrIn, info: InfoOrNull, port_name: StrIn) => publish_name;
    MPI_Unpublish_name(service_name: StrIn, info: InfoOrNull, port_name: StrIn) => unpublish_name;
}
