/* Handles of freed objects, and numbers that never were handles: the class of their kind. */
// np: 1
// not-on: mpich (does not find all of them)
#include "tern_test.h"

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int value = 0, size;
    MPI_Comm comm, old_comm;
    MPI_Datatype type, old_type;
    MPI_Group group, old_group;
    MPI_Info info, old_info;
    MPI_Request request, old_request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    old_comm = comm;
    OK(MPI_Comm_free(&comm));
    FAILS(MPI_Comm_size(old_comm, &size), MPI_ERR_COMM);
    FAILS(MPI_Send(&value, 1, MPI_INT, 0, 0, old_comm), MPI_ERR_COMM);
    FAILS(MPI_Barrier(old_comm), MPI_ERR_COMM);
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    old_type = type;
    OK(MPI_Type_free(&type));
    FAILS(MPI_Type_size(old_type, &size), MPI_ERR_TYPE);
    FAILS(MPI_Send(&value, 1, old_type, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    old_group = group;
    OK(MPI_Group_free(&group));
    FAILS(MPI_Group_size(old_group, &size), MPI_ERR_GROUP);
    OK(MPI_Info_create(&info));
    old_info = info;
    OK(MPI_Info_free(&info));
    FAILS(MPI_Info_get_nkeys(old_info, &size), MPI_ERR_INFO);
    OK(MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    old_request = request;
    OK(MPI_Request_free(&request));
    FAILS(MPI_Start(&old_request), MPI_ERR_REQUEST);
    FAILS(MPI_Comm_size((MPI_Comm)(uintptr_t)0x7fffff, &size), MPI_ERR_COMM);
    FAILS(MPI_Comm_size((MPI_Comm)MPI_INT, &size), MPI_ERR_COMM);
    FAILS(MPI_Type_size((MPI_Datatype)MPI_COMM_WORLD, &size), MPI_ERR_TYPE);
    FAILS(MPI_Type_size((MPI_Datatype)(uintptr_t)0x123456789abc, &size), MPI_ERR_TYPE);
    return t_end();
}
