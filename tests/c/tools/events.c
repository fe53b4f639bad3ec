/* Events: who listens is told of what happens, in order, with what is known of it; what comes beyond the room is counted. */
// np: 2
// not-on: mpich (other types of events)
// not-on: ompi (other types of events)
#include "tern_test.h"

#define MOST 64

typedef struct {
    int count, freed, kind;
    MPI_Count dropped, last;
    uint64_t fields[MOST][4];
    MPI_T_event_registration registration;
} Heard;

static MPI_T_event_instance stale;

static void hear(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data) {
    Heard *heard = data;
    MPI_Count at = 0;
    int source = -1, elements = 4, rank;
    uint64_t copy[4] = {0};
    CHECK(registration == heard->registration);
    CHECK_EQ(safety, MPI_T_CB_REQUIRE_NONE);
    OK(MPI_T_event_get_timestamp(instance, &at));
    CHECK(at >= heard->last);
    heard->last = at;
    OK(MPI_T_event_get_source(instance, &source));
    CHECK_EQ(source, 0);
    OK(MPI_T_event_get_info(heard->kind, NULL, NULL, NULL, NULL, NULL, &elements, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_event_copy(instance, copy));
    for (int i = 0; i < elements; i++) {
        uint64_t value;
        OK(MPI_T_event_read(instance, i, &value));
        CHECK(value == copy[i]);
    }
    CHECK_EQ(MPI_T_event_read(instance, elements, copy), MPI_T_ERR_INVALID_INDEX);
    if (heard->count < MOST)
        memcpy(heard->fields[heard->count], copy, sizeof copy);
    heard->count++;
    stale = instance;
    /* Nothing is forbidden here. */
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
}

static void hear_dropped(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety, void *data) {
    Heard *heard = data;
    CHECK(registration == heard->registration && source == 0 && safety == MPI_T_CB_REQUIRE_NONE);
    heard->dropped += count;
}

static void hear_end(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data) {
    Heard *heard = data;
    CHECK(registration == heard->registration && safety == MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    heard->freed++;
}

static void listen_to(const char *name, Heard *heard) {
    memset(heard, 0, sizeof *heard);
    OK(MPI_T_event_get_index(name, &heard->kind));
    OK(MPI_T_event_handle_alloc(heard->kind, NULL, MPI_INFO_NULL, &heard->registration));
    OK(MPI_T_event_set_dropped_handler(heard->registration, hear_dropped));
    OK(MPI_T_event_register_callback(heard->registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, heard, hear));
}

static void stop(Heard *heard) {
    OK(MPI_T_event_handle_free(heard->registration, heard, hear_end));
    CHECK_EQ(heard->freed, 1);
    CHECK_EQ(MPI_T_event_handle_free(heard->registration, heard, hear_end), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(heard->freed, 1);
}

/* Names, elements, and the category each is in. */
static void declared(void) {
    int num, categories, in_categories = 0, sources, ordering = 0;
    MPI_Count ticks = 0, most = 0, before = 0, after = 0;
    OK(MPI_T_event_get_num(&num));
    CHECK(num > 10);
    for (int i = 0; i < num; i++) {
        char name[100], text[1000];
        int name_len = sizeof name, text_len = sizeof text, elements = 4, index = -1, bind = -1, verbosity = -1;
        MPI_Datatype types[4];
        MPI_Aint places[4];
        MPI_Info info;
        OK(MPI_T_event_get_info(i, name, &name_len, &verbosity, types, places, &elements, NULL, &info, text, &text_len, &bind));
        OK(MPI_Info_free(&info));
        CHECK(strncmp(name, "tern_", 5) == 0 && text_len > 1 && elements >= 0 && elements <= 4);
        CHECK_EQ(bind, MPI_T_BIND_NO_OBJECT);
        for (int at = 0; at < elements; at++)
            CHECK(types[at] == MPI_UNSIGNED_LONG_LONG && places[at] == 8 * at);
        OK(MPI_T_event_get_index(name, &index));
        CHECK_EQ(index, i);
    }
    OK(MPI_T_category_get_num(&categories));
    for (int i = 0; i < categories; i++) {
        int count, list[100];
        OK(MPI_T_category_get_num_events(i, &count));
        OK(MPI_T_category_get_events(i, 100, list));
        in_categories += count;
    }
    CHECK_EQ(in_categories, num);
    OK(MPI_T_source_get_num(&sources));
    CHECK_EQ(sources, 1);
    OK(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, (MPI_T_source_order *)&ordering, &ticks, &most, NULL));
    CHECK(ordering == MPI_T_SOURCE_ORDERED && ticks == 1000000000 && most > 0);
    OK(MPI_T_source_get_timestamp(0, &before));
    OK(MPI_T_source_get_timestamp(0, &after));
    CHECK(before > 0 && before <= after);
}

/* A message that is late and one that is early are matched; each is told. */
static void matched(void) {
    Heard heard;
    int got = 0;
    listen_to("tern_matched", &heard);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    heard.count = 0;
    if (t_rank == 0) {
        OK(MPI_Send(&got, 1, MPI_INT, 1, 77, MPI_COMM_WORLD));
        OK(MPI_Send(&got, 1, MPI_INT, 1, 78, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(&got, 1, MPI_INT, 0, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); /* 77 has come then */
        OK(MPI_Recv(&got, 1, MPI_INT, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (t_rank == 1) {
        int seen[2] = {0, 0};
        for (int i = 0; i < heard.count && i < MOST; i++) {
            uint64_t *told = heard.fields[i];
            if (told[1] == 77 || told[1] == 78) {
                CHECK(told[0] == 0 && told[2] == sizeof got);
                CHECK(told[1] == 78 || told[3] == 1);
                seen[told[1] - 77]++;
            }
        }
        CHECK(seen[0] == 1 && seen[1] == 1);
    }
    stop(&heard);
}

static void rendezvous(void) {
    enum { LONG = 5000000 };
    Heard begun, ended;
    char *buffer = calloc(LONG, 1);
    listen_to("tern_rendezvous_begun", &begun);
    listen_to("tern_rendezvous_ended", &ended);
    if (t_rank == 0)
        OK(MPI_Send(buffer, LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
    else
        OK(MPI_Recv(buffer, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQ(begun.count, 1);
    CHECK_EQ(ended.count, 1);
    for (int i = 0; i < 2; i++) {
        uint64_t *told = (i == 0 ? &begun : &ended)->fields[0];
        CHECK(told[0] == (uint64_t)(1 - t_rank) && told[1] == LONG && told[2] == (uint64_t)(t_rank == 0));
    }
    stop(&begun);
    stop(&ended);
    free(buffer);
}

static void epochs(void) {
    Heard heard;
    MPI_Win win;
    int *memory;
    listen_to("tern_epoch_ended", &heard);
    OK(MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_free(&win));
    CHECK_EQ(heard.count, 3);
    CHECK(heard.fields[0][1] == 0 && heard.fields[1][1] == 0 && heard.fields[2][1] == 3);
    stop(&heard);
}

/* Nothing of this rank makes a look around but the test, and no more than there is room for is kept until then. */
static void dropped(void) {
    Heard heard;
    enum { MANY = 10000 };
    listen_to("tern_eager", &heard);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int sent = 0, byte = 0;
    heard.count = 0;
    heard.dropped = 0;
    for (int i = 0; i < MANY; i++) {
        if (t_rank == 0) {
            OK(MPI_Send(&byte, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
            sent++;
        } else {
            OK(MPI_Recv(&byte, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(heard.count + heard.dropped >= sent);
    stop(&heard);
}

/* No hint is known, and any may be given. */
static void hints(void) {
    Heard heard;
    MPI_Info info, used = MPI_INFO_NULL;
    int keys = -1;
    listen_to("tern_eager", &heard);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "unheard", "of"));
    OK(MPI_T_event_handle_set_info(heard.registration, info));
    OK(MPI_T_event_callback_set_info(heard.registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, info));
    OK(MPI_Info_free(&info));
    OK(MPI_T_event_handle_get_info(heard.registration, &used));
    OK(MPI_Info_get_nkeys(used, &keys));
    CHECK_EQ(keys, 0);
    OK(MPI_Info_free(&used));
    OK(MPI_T_event_callback_get_info(heard.registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, &used));
    OK(MPI_Info_get_nkeys(used, &keys));
    CHECK_EQ(keys, 0);
    OK(MPI_Info_free(&used));
    stop(&heard);
    CHECK_EQ(MPI_T_event_handle_get_info(heard.registration, &used), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_event_handle_set_info(heard.registration, MPI_INFO_NULL), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_event_callback_get_info(heard.registration, MPI_T_CB_REQUIRE_NONE, &used), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_event_callback_set_info(heard.registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL), MPI_T_ERR_INVALID_HANDLE);
}

static void wrong(void) {
    Heard heard;
    uint64_t word;
    MPI_Count at;
    int source;
    listen_to("tern_unexpected", &heard);
    CHECK_EQ(MPI_T_event_register_callback(heard.registration, (MPI_T_cb_safety)2, MPI_INFO_NULL, &heard, hear), MPI_T_ERR_INVALID);
    CHECK_EQ(MPI_T_event_read(stale, 0, &word), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_event_copy(NULL, &word), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_event_get_timestamp(NULL, &at), MPI_T_ERR_INVALID_HANDLE);
    CHECK_EQ(MPI_T_event_get_source(NULL, &source), MPI_T_ERR_INVALID_HANDLE);
    stop(&heard);
}

int main(int argc, char **argv) {
    int provided;
    Heard early;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    /* Before MPI: what happens in MPI_Init may be told. */
    listen_to("tern_eager", &early);
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &t_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &t_size));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(early.count > 0);
    stop(&early);
    declared();
    matched();
    rendezvous();
    epochs();
    dropped();
    hints();
    wrong();
    int result = t_end();
    OK(MPI_T_finalize());
    return result;
}
