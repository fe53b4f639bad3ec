/* Files (MPI 5.0 chapter 14), on what TMPDIR names, or /tmp.
 *
 * `write`, `read`: each rank its own contiguous part of `size` bytes, in MB/s of one rank; `read_behind`: into memory
 * 16 bytes behind the beginning of a page, where large memory of malloc lies. `independent`, `collective`: all
 * ranks write blocks of 1 KiB in turn, `size` bytes each, through a view: MPI_File_write_at and MPI_File_write_at_all; in
 * MB/s of all. `beside`: MPI_File_iwrite_at of `size` bytes beside a computation as long as MPI_File_write_at takes: what
 * both take beyond the computation, in percent of the writing. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 1024, BEHIND = 16 };

static char *data, name[600], name_of_parts[620];
/* Parts have a file of their own: pages that were written block by block are read more slowly. */
static MPI_File parts, whole, strided;
static double compute;

static double repeated(int (*access)(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Status *), size_t size, long count)
{
	MPI_Offset at = (MPI_Offset)bench.rank * (MPI_Offset)bench.max;
	double begin = now();
	for (long i = 0; i < count; i++)
		access(parts, at, data, (int)size, MPI_BYTE, MPI_STATUS_IGNORE);
	return now() - begin;
}

static int write_here(MPI_File file, MPI_Offset at, void *from, int size, MPI_Datatype type, MPI_Status *status)
{
	return MPI_File_write_at(file, at, from, size, type, status);
}

static double writing(size_t size, long count)
{
	return repeated(write_here, size, count);
}

static double reading(size_t size, long count)
{
	return repeated(MPI_File_read_at, size, count);
}

static double reading_behind(size_t size, long count)
{
	data += BEHIND;
	double seconds = reading(size, count);
	data -= BEHIND;
	return seconds;
}

/* The clock runs before anybody writes: where ranks outnumber cores some have ended when others come to look at theirs. */
static double started(void)
{
	double begin = now();
	MPI_Barrier(MPI_COMM_WORLD);
	return begin;
}

static double independent(size_t size, long count)
{
	double begin = started();
	for (long i = 0; i < count; i++) {
		MPI_File_write_at(strided, 0, data, (int)size, MPI_BYTE, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return now() - begin;
}

static double collective(size_t size, long count)
{
	double begin = started();
	for (long i = 0; i < count; i++) {
		MPI_File_write_at_all(strided, 0, data, (int)size, MPI_BYTE, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return now() - begin;
}

static double beside(size_t size, long count)
{
	MPI_Offset at = (MPI_Offset)bench.rank * (MPI_Offset)bench.max;
	double begin = now();
	for (long i = 0; i < count; i++) {
		MPI_Request request;
		MPI_File_iwrite_at(parts, at, data, (int)size, MPI_BYTE, &request);
		bench_compute(compute);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	return now() - begin;
}

/* MB/s from seconds per access: the order of a spread turns round. */
static void bandwidth(const char *variant, bench_body *body, size_t size, double bytes)
{
	if (!bench_wanted(variant))
		return;
	struct spread s = bench_measure(body, size, 1);
	struct spread rate = { bytes / s.mid / 1e6, bytes / s.high / 1e6, bytes / s.low / 1e6, s.readings };
	if (bench.rank == 0)
		emit(bench.name, variant, size, rate, "MB/s");
}

/* Every byte is where it belongs, whoever wrote it. */
static void check_strided(size_t size)
{
	char *back = bench_buffer(size), *all = bench_buffer(size);
	MPI_File_read_at(strided, 0, back, (int)size, MPI_BYTE, MPI_STATUS_IGNORE);
	bench_check(back, size, bench.rank);
	MPI_Offset at = (MPI_Offset)(size / BLOCK - 1) * BLOCK * bench.ranks + (MPI_Offset)bench.rank * BLOCK;
	MPI_File_read_at(whole, at, all, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
	for (int i = 0; i < BLOCK; i++)
		if (all[i] != back[size - BLOCK + i])
			bench_fail("a block is not where it belongs");
	free(back);
	free(all);
}

static void hidden(size_t size)
{
	if (!bench_wanted("beside"))
		return;
	double alone = bench_share(bench_measure(writing, size, 1).mid);
	compute = 0;
	compute = alone;
	struct spread s = bench_measure(beside, size, 1);
	double percent[3] = { s.mid, s.low, s.high };
	for (int i = 0; i < 3; i++)
		percent[i] = 100 * (percent[i] - alone) / alone;
	if (bench.rank == 0)
		emit(bench.name, "beside", size, (struct spread){ percent[0], percent[1], percent[2], s.readings }, "%");
}

int main(int argc, char **argv)
{
	bench_start(&argc, &argv, "files", 1, 64 << 10, 16 << 20);
	const char *place = getenv("TMPDIR");
	int number = (int)getpid();
	MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
	snprintf(name, sizeof name, "%.500s/tern-bench-files-%d", place ? place : "/tmp", number);
	snprintf(name_of_parts, sizeof name_of_parts, "%s-parts", name);
	int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
	if (MPI_File_open(MPI_COMM_WORLD, name, mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &whole) != MPI_SUCCESS
	    || MPI_File_open(MPI_COMM_WORLD, name_of_parts, mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &parts) != MPI_SUCCESS
	    || MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &strided) != MPI_SUCCESS)
		bench_fail("the file cannot be opened");
	MPI_Datatype block, turn;
	MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
	MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * bench.ranks, &turn);
	MPI_Type_commit(&turn);
	MPI_File_set_view(strided, (MPI_Offset)bench.rank * BLOCK, MPI_BYTE, turn, "native", MPI_INFO_NULL);
	data = bench_buffer(bench.max + BEHIND);
	for (size_t size = bench_first(); size <= bench.max; size = bench_next(size)) {
		if (size % BLOCK != 0)
			continue;
		bench_fill(data, size, bench.rank);
		independent(size, 1);
		check_strided(size);
		collective(size, 1);
		check_strided(size);
		bandwidth("write", writing, size, (double)size);
		bandwidth("read", reading, size, (double)size);
		bandwidth("read_behind", reading_behind, size, (double)size);
		bandwidth("independent", independent, size, (double)size * bench.ranks);
		bandwidth("collective", collective, size, (double)size * bench.ranks);
		hidden(size);
	}
	MPI_Type_free(&turn);
	MPI_Type_free(&block);
	MPI_File_close(&strided);
	MPI_File_close(&whole);
	MPI_File_close(&parts);
	return bench_stop();
}
