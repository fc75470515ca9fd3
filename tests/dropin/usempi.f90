! The collectives from Fortran 90 with `use mpi`: kinds, arrays and their sections, in place, derived types, operators.
program usempi
  use mpi
  implicit none
  integer, parameter :: wide = selected_real_kind(15, 307), long = selected_int_kind(18)
  integer :: ierror, rank, ranks, answers = 0, round, root, comm, grid, type, op, i
  integer :: matrix(20, 30), kept(20, 30)
  integer(kind=long) :: many(5000), sums(5000)
  real(kind=wide), allocatable :: values(:), result(:)
  real(kind=wide) :: place(2), where_(2)
  complex(kind=wide) :: z(100), sum_z(100)
  logical :: flags(17), all_flags(17)
  integer :: sizes(1), data_(4000), got(4000), r
  integer, allocatable :: counts(:), displs(:), ones(:)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  allocate (values(300000), result(300000))
  counts = [(i, i=1, ranks)]
  displs = [(i * (i - 1) / 2, i=1, ranks)]
  ones = [(1, i=1, ranks)]
  do round = 1, 8
    root = mod(round * 3, ranks)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    many = [(int(rank, long) * 5 + i, i=1, 5000)]
    call MPI_Allreduce(many, sums, 5000, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(sums == [(5_long * ranks * (ranks - 1) / 2 + int(ranks, long) * i, i=1, 5000)]), 'allreduce of long integers')
    call MPI_Allreduce(MPI_IN_PLACE, many, 5000, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(sums == many), 'allreduce in place')
    values = rank
    call MPI_Reduce(values, result, size(values), MPI_DOUBLE_PRECISION, MPI_SUM, root, MPI_COMM_WORLD, ierror)
    if (rank == root) call check(all(result == ranks * (ranks - 1) / 2), 'reduce of doubles')
    if (rank == root) then
      call MPI_Reduce(MPI_IN_PLACE, values, 10, MPI_REAL8, MPI_MAX, root, MPI_COMM_WORLD, ierror)
      call check(all(values(1:10) == ranks - 1) .and. all(values(11:) == rank), 'reduce in place')
    else
      call MPI_Reduce(values, result, 10, MPI_REAL8, MPI_MAX, root, MPI_COMM_WORLD, ierror)
    end if
    values = [(real(root * 10 + mod(i, 97), wide), i=1, size(values))]
    if (rank /= root) values = -1
    call MPI_Bcast(values, size(values), MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD, ierror)
    call check(all(values == [(real(root * 10 + mod(i, 97), wide), i=1, size(values))]), 'broadcast of doubles')
    z = cmplx(rank, -1, wide)
    call MPI_Allreduce(z, sum_z, 100, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(sum_z == cmplx(ranks * (ranks - 1) / 2, -ranks, wide)), 'sum of complex numbers')
    flags = [(mod(rank + i, 3) == 0, i=1, 17)]
    call MPI_Allreduce(flags, all_flags, 17, MPI_LOGICAL, MPI_LXOR, MPI_COMM_WORLD, ierror)
    do i = 1, 17
      call check(all_flags(i) .eqv. mod(count([(mod(root + i, 3) == 0, root=0, ranks - 1)]), 2) == 1, 'exclusive or of logicals')
    end do
    root = mod(round * 3, ranks)
    place = [real(mod(rank + round, ranks), wide), real(rank, wide)]
    call MPI_Allreduce(place, where_, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierror)
    call check(where_(1) == ranks - 1 .and. mod(int(where_(2)) + round, ranks) == ranks - 1, 'most and where')
    ! A row of a matrix: elements with gaps.
    call MPI_Type_vector(30, 1, 20, MPI_INTEGER, type, ierror)
    call MPI_Type_commit(type, ierror)
    matrix = -rank
    if (rank == root) matrix(7, :) = [(i * round, i=1, 30)]
    kept = matrix
    call MPI_Bcast(matrix(7, 1), 1, type, root, MPI_COMM_WORLD, ierror)
    kept(7, :) = [(i * round, i=1, 30)]
    call check(all(matrix == kept), 'broadcast of a row')
    call MPI_Type_free(type, ierror)
    ! Blocks: rank r has r + 1 numbers, or three.
    data_ = [(1000 * rank + i + round, i=1, size(data_))]
    got = -1
    call MPI_Allgather(data_, 3, MPI_INTEGER, got, 3, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call check(all(got(1:3 * ranks) == [((1000 * r + i + round, i=1, 3), r=0, ranks - 1)]), 'allgather')
    got(3 * rank + 2) = -7
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, 3, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call check(all(got(2:3 * ranks:3) == -7), 'allgather in place')
    call MPI_Allgatherv(data_, rank + 1, MPI_INTEGER, got, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call check(all(got(1:sum(counts)) == [((1000 * r + i + round, i=1, r + 1), r=0, ranks - 1)]), 'allgatherv')
    call MPI_Alltoall(data_, 2, MPI_INTEGER, got, 2, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call check(all(got(1:2 * ranks) == [((1000 * r + 2 * rank + i + round, i=1, 2), r=0, ranks - 1)]), 'alltoall')
    call MPI_Alltoallv(data_, ones, displs, MPI_INTEGER, got, ones, displs, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call check(all(got(displs + 1) == [(1000 * r + displs(rank + 1) + 1 + round, r=0, ranks - 1)]), 'alltoallv')
    got = -1
    call MPI_Gather(data_, 3, MPI_INTEGER, got, 3, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    if (rank == root) call check(all(got(1:3 * ranks) == [((1000 * r + i + round, i=1, 3), r=0, ranks - 1)]), 'gather')
    call MPI_Gatherv(data_, rank + 1, MPI_INTEGER, got, counts, displs, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    if (rank == root) call check(all(got(1:sum(counts)) == [((1000 * r + i + round, i=1, r + 1), r=0, ranks - 1)]), 'gatherv')
    call MPI_Scatter(data_, 3, MPI_INTEGER, got, 3, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    call check(all(got(1:3) == [(1000 * root + 3 * rank + i + round, i=1, 3)]), 'scatter')
    call MPI_Scatterv(data_, counts, displs, MPI_INTEGER, got, rank + 1, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
    call check(all(got(1:rank + 1) == [(1000 * root + displs(rank + 1) + i + round, i=1, rank + 1)]), 'scatterv')
    call MPI_Scan(data_, got, 5, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(got(1:5) == [(500 * rank * (rank + 1) + (rank + 1) * (i + round), i=1, 5)]), 'scan')
    call MPI_Exscan(data_, got, 5, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
    if (rank > 0) call check(all(got(1:5) == [(1000 * (rank - 1) + i + round, i=1, 5)]), 'exscan')
    call MPI_Reduce_scatter(data_, got, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(got(1:rank + 1) == [(500 * ranks * (ranks - 1) + ranks * (displs(rank + 1) + i + round), i=1, rank + 1)]), &
               'reduce_scatter')
    call MPI_Reduce_scatter_block(MPI_IN_PLACE, data_, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(data_(1:2) == [(500 * ranks * (ranks - 1) + ranks * (2 * rank + i + round), i=1, 2)]), 'reduce_scatter_block')
  end do

  call MPI_Op_create(compose, .false., op, ierror)
  call MPI_Type_contiguous(2, MPI_INTEGER, type, ierror)
  call MPI_Type_commit(type, ierror)
  do round = 1, 6
    kept = 0
    do i = 1, 30
      matrix(1:2, i) = [2 + mod(rank + i, 5), 1 + mod(rank * 3 + i, 7)]
    end do
    do i = 1, 30
      sizes(1) = i
      kept(3:4, 1) = matrix(1:2, i)
      call MPI_Allreduce(kept(3, 1), kept(1, i), 1, type, op, MPI_COMM_WORLD, ierror)
      kept(5:6, 1) = [1, 0]
      do root = 0, ranks - 1
        kept(5, 2) = 2 + mod(root + i, 5)
        kept(6, 2) = 1 + mod(root * 3 + i, 7)
        kept(6, 1) = mod(kept(5, 2) * kept(6, 1) + kept(6, 2), 9973)
        kept(5, 1) = mod(kept(5, 1) * kept(5, 2), 9973)
      end do
      call check(all(kept(1:2, i) == kept(5:6, 1)), 'operator in rank order')
    end do
  end do
  call MPI_Op_free(op, ierror)
  call MPI_Type_free(type, ierror)

  sizes(1) = ranks
  do round = 1, 40
    call MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, [.true.], .true., grid, ierror)
    call MPI_Comm_split(grid, mod(rank, 2), rank, comm, ierror)
    i = 1
    call MPI_Allreduce(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
    call check(i == (ranks + 1 - mod(rank, 2)) / 2, 'size by counting')
    i = 1
    call MPI_Allreduce(MPI_IN_PLACE, i, 1, MPI_INTEGER, MPI_SUM, grid, ierror)
    call check(i == ranks, 'size of a grid by counting')
    call MPI_Comm_free(grid, ierror)
    call MPI_Comm_free(comm, ierror)
  end do
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(A,I0,A,I0,A)', 'ok usempi: ', ranks, ' ranks, ', answers, ' answers'
  call MPI_Finalize(ierror)

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    answers = answers + 1
    if (.not. holds) then
      print *, 'FAIL usempi: rank ', rank, ' of ', ranks, ': ', what
      call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
    end if
  end subroutine check

  ! x -> in(1) x + in(2), then x -> inout(1) x + inout(2).
  subroutine compose(in, inout, length, type)
    integer :: length, type
    integer :: in(2, length), inout(2, length)
    integer :: k
    if (type == MPI_DATATYPE_NULL) return
    do k = 1, length
      inout(2, k) = mod(inout(1, k) * in(2, k) + inout(2, k), 9973)
      inout(1, k) = mod(inout(1, k) * in(1, k), 9973)
    end do
  end subroutine compose

end program usempi
