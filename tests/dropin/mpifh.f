C     The collectives from Fortran 77 with mpif.h: types and
C     constants of Fortran, in place, an operator of the program,
C     communicators that come and go. Answers are known from the rank.
      program mpifh
      implicit none
      include 'mpif.h'
      integer ierror, rank, ranks, comm, round, answers, i, root
      integer whole(2000), sum(2000), pair(2), least(2), should
      double precision wide(70000), total(70000)
      complex turn, product
      logical mine, every, some
      character*12 text
      integer op
      integer counts(64), displs(64), before
      external larger
      common /tally/ rank, ranks, answers
      answers = 0
      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierror)

      do 50 round = 1, 8
         root = mod(round, ranks)
         call MPI_BARRIER(MPI_COMM_WORLD, ierror)
         call check(ierror .eq. MPI_SUCCESS, 'barrier')
         do 10 i = 1, 2000
            whole(i) = rank * 3 + i + round
            sum(i) = -1
 10      continue
         call MPI_ALLREDUCE(whole, sum, 2000, MPI_INTEGER, MPI_SUM,
     &                      MPI_COMM_WORLD, ierror)
         do 20 i = 1, 2000
            should = 3 * ranks * (ranks - 1) / 2 + ranks * (i + round)
            call check(sum(i) .eq. should, 'allreduce of integers')
 20      continue
         call MPI_ALLREDUCE(MPI_IN_PLACE, whole, 2000, MPI_INTEGER,
     &                      MPI_SUM, MPI_COMM_WORLD, ierror)
         do 30 i = 1, 2000
            call check(whole(i) .eq. sum(i), 'allreduce in place')
 30      continue
         do 35 i = 1, 70000
            wide(i) = rank + i * 0.5d0
            total(i) = -1
 35      continue
         call MPI_REDUCE(wide, total, 70000, MPI_DOUBLE_PRECISION,
     &                   MPI_MAX, root, MPI_COMM_WORLD, ierror)
         if (rank .eq. root) then
            do 36 i = 1, 70000, 77
               call check(total(i) .eq. ranks - 1 + i * 0.5d0,
     &                    'reduce of doubles')
 36         continue
            call MPI_REDUCE(MPI_IN_PLACE, wide, 100,
     &                      MPI_DOUBLE_PRECISION, MPI_MIN, root,
     &                      MPI_COMM_WORLD, ierror)
            call check(wide(100) .eq. 50d0, 'reduce in place')
         else
            call MPI_REDUCE(wide, total, 100, MPI_DOUBLE_PRECISION,
     &                      MPI_MIN, root, MPI_COMM_WORLD, ierror)
         end if
         text = 'nothing yet!'
         if (rank .eq. root) text = 'from the top'
         call MPI_BCAST(text, 12, MPI_CHARACTER, root, MPI_COMM_WORLD,
     &                  ierror)
         call check(text .eq. 'from the top', 'broadcast of text')
         mine = rank .eq. root
         call MPI_ALLREDUCE(mine, every, 1, MPI_LOGICAL, MPI_LAND,
     &                      MPI_COMM_WORLD, ierror)
         call MPI_ALLREDUCE(mine, some, 1, MPI_LOGICAL, MPI_LOR,
     &                      MPI_COMM_WORLD, ierror)
         call check(some .and. (every .eqv. ranks .eq. 1), 'logicals')
         pair(1) = mod(rank + round, 2)
         pair(2) = rank
         call MPI_ALLREDUCE(pair, least, 1, MPI_2INTEGER, MPI_MINLOC,
     &                      MPI_COMM_WORLD, ierror)
         should = mod(round, 2)
         if (ranks .eq. 1) should = 0
         call check(least(2) .eq. should, 'least and where')
         turn = (0.0, 1.0)
         call MPI_ALLREDUCE(turn, product, 1, MPI_COMPLEX, MPI_PROD,
     &                      MPI_COMM_WORLD, ierror)
         call check(product .eq. turn ** ranks, 'product of i')
 50   continue

C     Blocks: rank r has r + 1 numbers, or three.
      before = 0
      do 81 i = 1, ranks
         counts(i) = i
         displs(i) = before
         before = before + i
 81   continue
      do 89 round = 1, 6
         root = mod(round, ranks)
         do 82 i = 1, 2000
            whole(i) = 1000 * rank + i + round
            sum(i) = -1
 82      continue
         call MPI_ALLGATHER(whole, 3, MPI_INTEGER, sum, 3, MPI_INTEGER,
     &                      MPI_COMM_WORLD, ierror)
         call check(sum(3 * ranks) .eq. 1000 * ranks - 997 + round
     &              .and. sum(1) .eq. 1 + round, 'allgather')
         sum(3 * rank + 2) = -7
         call MPI_ALLGATHER(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sum, 3,
     &                      MPI_INTEGER, MPI_COMM_WORLD, ierror)
         call check(sum(2) .eq. -7 .and. sum(3 * ranks - 1) .eq. -7,
     &              'allgather in place')
         call MPI_ALLGATHERV(whole, rank + 1, MPI_INTEGER, sum, counts,
     &                  displs, MPI_INTEGER, MPI_COMM_WORLD, ierror)
         call check(sum(before) .eq. 1001 * ranks - 1000 + round
     &              .and. sum(1) .eq. 1 + round, 'allgatherv')
         call MPI_ALLTOALL(whole, 2, MPI_INTEGER, sum, 2, MPI_INTEGER,
     &                     MPI_COMM_WORLD, ierror)
         call check(sum(2 * ranks) .eq. 1000 * ranks - 998 + 2 * rank
     &              + round, 'alltoall')
         do 83 i = 1, ranks
            counts(i) = 1
 83      continue
         call MPI_ALLTOALLV(whole, counts, displs, MPI_INTEGER, sum,
     &     counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierror)
         call check(sum(displs(ranks) + 1) .eq. 1000 * ranks - 999
     &              + displs(rank + 1) + round, 'alltoallv')
         do 84 i = 1, ranks
            counts(i) = i
 84      continue
         sum(3 * ranks) = -1
         call MPI_GATHER(whole, 3, MPI_INTEGER, sum, 3, MPI_INTEGER,
     &                   root, MPI_COMM_WORLD, ierror)
         if (rank .eq. root) call check(sum(3 * ranks) .eq.
     &      1000 * ranks - 997 + round, 'gather')
         call MPI_GATHERV(whole, rank + 1, MPI_INTEGER, sum, counts,
     &      displs, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
         if (rank .eq. root) call check(sum(before) .eq.
     &      1001 * ranks - 1000 + round, 'gatherv')
         call MPI_SCATTER(whole, 3, MPI_INTEGER, sum, 3, MPI_INTEGER,
     &                    root, MPI_COMM_WORLD, ierror)
         call check(sum(3) .eq. 1000 * root + 3 * rank + 3 + round,
     &              'scatter')
         call MPI_SCATTERV(whole, counts, displs, MPI_INTEGER, sum,
     &      rank + 1, MPI_INTEGER, root, MPI_COMM_WORLD, ierror)
         call check(sum(rank + 1) .eq. 1000 * root + displs(rank + 1)
     &              + rank + 1 + round, 'scatterv')
         call MPI_SCAN(whole, sum, 5, MPI_INTEGER, MPI_SUM,
     &                 MPI_COMM_WORLD, ierror)
         call check(sum(5) .eq. 500 * rank * (rank + 1)
     &              + (rank + 1) * (5 + round), 'scan')
         call MPI_EXSCAN(whole, sum, 5, MPI_INTEGER, MPI_MAX,
     &                   MPI_COMM_WORLD, ierror)
         if (rank .gt. 0) call check(sum(5) .eq. 1000 * rank - 995
     &                               + round, 'exscan')
         call MPI_REDUCE_SCATTER(whole, sum, counts, MPI_INTEGER,
     &                           MPI_SUM, MPI_COMM_WORLD, ierror)
         call check(sum(1) .eq. 500 * ranks * (ranks - 1) + ranks
     &              * (displs(rank + 1) + 1 + round), 'reduce_scatter')
         call MPI_REDUCE_SCATTER_BLOCK(MPI_IN_PLACE, whole, 2,
     &            MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
         call check(whole(2) .eq. 500 * ranks * (ranks - 1) + ranks
     &              * (2 * rank + 2 + round), 'reduce_scatter_block')
 89   continue

      call MPI_OP_CREATE(larger, .true., op, ierror)
      do 60 round = 1, 6
         do 55 i = 1, 2000
            whole(i) = mod(rank * 7 + i * round, 101)
 55      continue
         call MPI_ALLREDUCE(whole, sum, 2000, MPI_INTEGER, op,
     &                      MPI_COMM_WORLD, ierror)
         call MPI_ALLREDUCE(MPI_IN_PLACE, whole, 2000, MPI_INTEGER,
     &                      MPI_MAX, MPI_COMM_WORLD, ierror)
         do 58 i = 1, 2000
            call check(whole(i) .eq. sum(i), 'own operator')
 58      continue
 60   continue
      call MPI_OP_FREE(op, ierror)

      do 70 round = 1, 60
         call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank, 2), -rank, comm,
     &                       ierror)
         call MPI_ALLREDUCE(1, should, 1, MPI_INTEGER, MPI_SUM, comm,
     &                      ierror)
         call check(should .eq. (ranks + 1 - mod(rank, 2)) / 2,
     &              'size by counting')
         i = round
         if (mod(round, 3) .eq. 0) i = i + rank
         call MPI_BCAST(i, 1, MPI_INTEGER, 0, comm, ierror)
         call MPI_BARRIER(comm, ierror)
         call MPI_COMM_FREE(comm, ierror)
         call check(comm .eq. MPI_COMM_NULL, 'freed')
 70   continue

      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierror)
      call MPI_COMM_SET_ERRHANDLER(comm, MPI_ERRORS_RETURN, ierror)
      call MPI_BCAST(i, 1, MPI_INTEGER, ranks, comm, ierror)
      call check(ierror .ne. MPI_SUCCESS, 'a wrong root is an error')
      call MPI_COMM_FREE(comm, ierror)
      call MPI_BARRIER(MPI_COMM_WORLD, ierror)
      if (rank .eq. 0) print '(A,I0,A,I0,A)', 'ok mpifh: ', ranks,
     &   ' ranks, ', answers, ' answers'
      call MPI_FINALIZE(ierror)
      end

      subroutine larger(in, inout, length, type)
      implicit none
      integer length, type, i, in(length), inout(length)
      do 10 i = 1, length
         if (in(i) .gt. inout(i)) inout(i) = in(i)
 10   continue
      end

      subroutine check(holds, what)
      implicit none
      include 'mpif.h'
      logical holds
      character*(*) what
      integer rank, ranks, answers, ierror
      common /tally/ rank, ranks, answers
      answers = answers + 1
      if (.not. holds) then
         print *, 'FAIL mpifh: rank ', rank, ' of ', ranks, ': ', what
         call MPI_ABORT(MPI_COMM_WORLD, 1, ierror)
      end if
      end
