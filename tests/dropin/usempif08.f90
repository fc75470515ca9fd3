! The collectives from Fortran 2008 with `use mpi_f08`: handles that are types, no error argument, sections of arrays.
program usempif08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, ranks, answers = 0, round, root, i, ierror
  type(MPI_Comm) :: comm, part
  type(MPI_Datatype) :: pair
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: handler
  integer :: mine(3000), sums(3000), sheet(40, 50), kept(40, 50)
  double precision :: long_one(200000), long_sum(200000)
  real(c_float) :: small(33), most(33)
  logical(c_bool) :: truth(9), every(9)
  character(len=8) :: word
  integer :: data_(4000), got(4000), r
  integer, allocatable :: counts(:), displs(:), ones(:)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  counts = [(i, i=1, ranks)]
  displs = [(i * (i - 1) / 2, i=1, ranks)]
  ones = [(1, i=1, ranks)]
  do round = 1, 8
    root = mod(round + 1, ranks)
    call MPI_Barrier(MPI_COMM_WORLD)
    mine = [(rank + i * round, i=1, 3000)]
    call MPI_Allreduce(mine, sums, 3000, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(sums == [(ranks * (ranks - 1) / 2 + ranks * i * round, i=1, 3000)]), 'allreduce of integers')
    call MPI_Allreduce(MPI_IN_PLACE, mine, 3000, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(ierror == MPI_SUCCESS .and. all(sums == mine), 'allreduce in place')
    long_one = rank * 2
    call MPI_Reduce(long_one, long_sum, size(long_one), MPI_DOUBLE_PRECISION, MPI_SUM, root, MPI_COMM_WORLD)
    if (rank == root) call check(all(long_sum == ranks * (ranks - 1)), 'reduce of doubles')
    if (rank == root) then
      call MPI_Reduce(MPI_IN_PLACE, long_one, 50, MPI_DOUBLE_PRECISION, MPI_MAX, root, MPI_COMM_WORLD)
      call check(all(long_one(1:50) == 2 * (ranks - 1)), 'reduce in place')
    else
      call MPI_Reduce(long_one, long_sum, 50, MPI_DOUBLE_PRECISION, MPI_MAX, root, MPI_COMM_WORLD)
    end if
    small = real(rank) / 4
    call MPI_Allreduce(small, most, 33, MPI_REAL, MPI_MAX, MPI_COMM_WORLD)
    call check(all(most == real(ranks - 1) / 4), 'maximum of reals')
    truth = rank /= root
    call MPI_Allreduce(truth, every, 9, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD)
    call check(ranks == 1 .or. .not. any(logical(every)), 'and of truths')
    word = 'waiting.'
    if (rank == root) word = 'arrived!'
    call MPI_Bcast(word, 8, MPI_CHARACTER, root, MPI_COMM_WORLD)
    call check(word == 'arrived!', 'broadcast of text')
    sheet = -1 - rank
    if (rank == root) sheet(3:40, 5:9) = round
    kept = sheet
    if (MPI_SUBARRAYS_SUPPORTED) then
      call MPI_Bcast(sheet(3:40, 5:9), 38 * 5, MPI_INTEGER, root, MPI_COMM_WORLD)
      kept(3:40, 5:9) = round
      call check(all(sheet == kept), 'broadcast of a section')
    end if
    ! Blocks: rank r has r + 1 numbers, or three.
    data_ = [(1000 * rank + i + round, i=1, size(data_))]
    got = -1
    call MPI_Allgather(data_, 3, MPI_INTEGER, got, 3, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(got(1:3 * ranks) == [((1000 * r + i + round, i=1, 3), r=0, ranks - 1)]), 'allgather')
    got(3 * rank + 2) = -7
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, 3, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(got(2:3 * ranks:3) == -7), 'allgather in place')
    call MPI_Allgatherv(data_, rank + 1, MPI_INTEGER, got, counts, displs, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(got(1:sum(counts)) == [((1000 * r + i + round, i=1, r + 1), r=0, ranks - 1)]), 'allgatherv')
    call MPI_Alltoall(data_, 2, MPI_INTEGER, got, 2, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(got(1:2 * ranks) == [((1000 * r + 2 * rank + i + round, i=1, 2), r=0, ranks - 1)]), 'alltoall')
    call MPI_Alltoallv(data_, ones, displs, MPI_INTEGER, got, ones, displs, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(got(displs + 1) == [(1000 * r + displs(rank + 1) + 1 + round, r=0, ranks - 1)]), 'alltoallv')
    got = -1
    call MPI_Gather(data_, 3, MPI_INTEGER, got, 3, MPI_INTEGER, root, MPI_COMM_WORLD)
    if (rank == root) call check(all(got(1:3 * ranks) == [((1000 * r + i + round, i=1, 3), r=0, ranks - 1)]), 'gather')
    call MPI_Gatherv(data_, rank + 1, MPI_INTEGER, got, counts, displs, MPI_INTEGER, root, MPI_COMM_WORLD)
    if (rank == root) call check(all(got(1:sum(counts)) == [((1000 * r + i + round, i=1, r + 1), r=0, ranks - 1)]), 'gatherv')
    call MPI_Scatter(data_, 3, MPI_INTEGER, got, 3, MPI_INTEGER, root, MPI_COMM_WORLD)
    call check(all(got(1:3) == [(1000 * root + 3 * rank + i + round, i=1, 3)]), 'scatter')
    call MPI_Scatterv(data_, counts, displs, MPI_INTEGER, got, rank + 1, MPI_INTEGER, root, MPI_COMM_WORLD)
    call check(all(got(1:rank + 1) == [(1000 * root + displs(rank + 1) + i + round, i=1, rank + 1)]), 'scatterv')
    call MPI_Scan(data_, got, 5, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(got(1:5) == [(500 * rank * (rank + 1) + (rank + 1) * (i + round), i=1, 5)]), 'scan')
    call MPI_Exscan(data_, got, 5, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    if (rank > 0) call check(all(got(1:5) == [(1000 * (rank - 1) + i + round, i=1, 5)]), 'exscan')
    call MPI_Reduce_scatter(data_, got, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(got(1:rank + 1) == [(500 * ranks * (ranks - 1) + ranks * (displs(rank + 1) + i + round), i=1, rank + 1)]), &
               'reduce_scatter')
    call MPI_Reduce_scatter_block(MPI_IN_PLACE, data_, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(data_(1:2) == [(500 * ranks * (ranks - 1) + ranks * (2 * rank + i + round), i=1, 2)]), 'reduce_scatter_block')
  end do

  call MPI_Op_create(smaller, .true., op)
  do round = 1, 6
    mine = [(mod(rank * 13 + i * round, 103), i=1, 3000)]
    call MPI_Allreduce(mine, sums, 3000, MPI_INTEGER, op, MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, mine, 3000, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD)
    call check(all(mine == sums), 'own operator')
  end do
  call MPI_Op_free(op)

  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  do round = 1, 40
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_split(comm, mod(rank, 2), -rank, part)
    i = 1
    call MPI_Allreduce(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, part)
    call check(i == (ranks + 1 - mod(rank, 2)) / 2, 'size by counting')
    mine(1:2) = merge([round, -round], [0, 0], rank == mod(round, ranks))
    call MPI_Bcast(mine, 1, pair, mod(round, ranks), comm)
    call check(mine(1) == round .and. mine(2) == -round, 'broadcast of a pair')
    call MPI_Barrier(part)
    call MPI_Comm_free(part)
    call MPI_Comm_free(comm)
    call check(comm == MPI_COMM_NULL, 'freed')
  end do
  call MPI_Type_free(pair)

  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_create_errhandler(handle, handler)
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
  call MPI_Bcast(mine, 1, MPI_INTEGER, ranks, comm, ierror)
  call check(ierror /= MPI_SUCCESS, 'a wrong root is an error')
  call MPI_Errhandler_free(handler)
  call MPI_Comm_free(comm)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(A,I0,A,I0,A)', 'ok usempif08: ', ranks, ' ranks, ', answers, ' answers'
  call MPI_Finalize()

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    answers = answers + 1
    if (.not. holds) then
      print *, 'FAIL usempif08: rank ', rank, ' of ', ranks, ': ', what
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
  end subroutine check

  subroutine smaller(in, inout, length, type)
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: type
    integer, pointer :: a(:), b(:)
    if (type == MPI_DATATYPE_NULL) return
    call c_f_pointer(in, a, [length])
    call c_f_pointer(inout, b, [length])
    b = min(a, b)
  end subroutine smaller

  subroutine handle(on, code)
    type(MPI_Comm) :: on
    integer :: code
    if (on == MPI_COMM_NULL) code = code
  end subroutine handle

end program usempif08
