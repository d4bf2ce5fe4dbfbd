! Calls that the Fortran module refuses by name, after which the program goes on: arrays that share memory,
! communicators of graphs and of two groups, calls of a second thread, and calls after MPI has ended. With the word
! "threads" all threads may call MPI.
module one_exchange
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none
  type(halo_exchange) :: halo
  integer :: stat_of_thread = -1
  character(300) :: text_of_thread = ''

contains

  !> On the second thread.
  subroutine run_it() bind(c)
    call halo%run(stat=stat_of_thread, errmsg=text_of_thread)
  end subroutine

  !> On the second thread, while the first one is in a call.
  subroutine finish_it() bind(c)
    do
      call halo%finish(stat=stat_of_thread, errmsg=text_of_thread)
      if (stat_of_thread == 0) exit
    end do
  end subroutine
end module

program misuse
  use one_exchange
  implicit none

  interface
    include 'mpi_for_fortran.inc'
    integer(c_int) function begin_mpi_with_threads(all) bind(c)
      import :: c_int
      integer(c_int), value :: all
    end function
    integer(c_int) function no_communicator() bind(c)
      import :: c_int
    end function
    integer(c_int) function graph() bind(c)
      import :: c_int
    end function
    integer(c_int) function distributed_graph() bind(c)
      import :: c_int
    end function
    integer(c_int) function inter_communicator() bind(c)
      import :: c_int
    end function
    subroutine begin_thread(procedure) bind(c)
      import :: c_funptr
      type(c_funptr), value :: procedure
    end subroutine
    subroutine end_thread() bind(c)
    end subroutine
  end interface

  integer, parameter :: cells(2) = [12, 10]
  character(*), parameter :: strategy = 'ordered/p2p'
  type(halo_grid) :: grid
  real(8), allocatable, target :: u(:, :), v(:, :)
  integer :: n(2), rank, wrong = 0, stat
  logical :: threads, granted
  character(300) :: text
  character(10) :: word

  call get_command_argument(1, word)
  threads = word == 'threads'
  granted = begin_mpi_with_threads(merge(1, 0, threads)) == 1
  rank = own_rank()
  call grid%create(world(), cells, periodic=[.true., .true.])
  n = grid%shape() + 2
  allocate (u(n(1), n(2)), v(n(1), n(2)), source=0d0)
  call refuse_shared_memory()
  call refuse_communicators()
  call halo%add(u)
  call halo%open(grid, strategy=strategy)
  if (granted .and. .not. threads) call refuse_thread_that_may_not_call()
  if (granted .and. threads .and. rank_count() > 1) call refuse_second_thread()
  call halo%run()
  call end_mpi()
  call refuse_calls_after_the_end()
  if (wrong == 0) print '(a, i0, a)', 'rank ', rank, ': right'

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(a, i0, 2a)', 'rank ', rank, ': wrong: ', what
    wrong = wrong + 1
  end subroutine

  !> @param part  of the text of the call that has just failed, as it should have.
  subroutine expect_refusal(call, part)
    character(*), intent(in) :: call, part
    call expect(stat == 2 .and. index(text, part) > 0, call//': '//trim(text))
    text = ''
  end subroutine

  !> The same array twice, two that overlap by all columns but one, and an accumulation after rebind().
  subroutine refuse_shared_memory()
    real(8), allocatable, target :: both(:, :)
    type(halo_exchange) :: two
    allocate (both(n(1) + 1, n(2)), source=0d0)
    call two%add(u)
    call two%add(u)
    call two%open(grid, strategy=strategy, stat=stat, errmsg=text)
    call expect(index(text, "'field 1'") > 0 .and. index(text, "'field 2'") > 0, 'both are named: '//trim(text))
    call expect_refusal('open of an array twice', 'share memory')
    call two%add(both(1:n(1), :))
    call two%add(both(2:n(1) + 1, :))
    call two%open(grid, strategy=strategy, stat=stat, errmsg=text)
    call expect_refusal('open of arrays that overlap', 'share memory')
    call two%add(u)
    call two%add(v)
    call two%open(grid, strategy=strategy)
    call two%rebind(u, number=2)  ! as on the way to other memory
    call two%accumulate(stat=stat, errmsg=text)
    call expect_refusal('accumulate of an array twice', 'share memory')
    call two%rebind(v, number=2)
    call two%accumulate()
    call two%free()
  end subroutine

  subroutine refuse_communicators()
    character(*), parameter :: two_groups = 'inter-communicator', nothing = 'MPI_COMM_NULL', other = 'no Cartesian topology'
    call try_communicator(no_communicator(), nothing, nothing)
    call try_communicator(graph(), 'graph', other)
    call try_communicator(distributed_graph(), 'graph', other)
    if (rank_count() > 1) call try_communicator(inter_communicator(), two_groups, two_groups)
  end subroutine

  !> @param name, cartesian  parts of the texts of create() and create_cartesian().
  subroutine try_communicator(comm, name, cartesian)
    integer(c_int), intent(in) :: comm
    character(*), intent(in) :: name, cartesian
    type(halo_grid) :: other
    call other%create(comm, cells, stat=stat, errmsg=text)
    call expect_refusal('create', name)
    call other%create_cartesian(comm, cells, stat=stat, errmsg=text)
    call expect_refusal('create_cartesian', cartesian)
  end subroutine

  subroutine refuse_thread_that_may_not_call()
    call begin_thread(c_funloc(run_it))
    call end_thread()
    stat = stat_of_thread
    text = text_of_thread
    call expect_refusal('run on another thread', 'came from another thread')
  end subroutine

  !> Rank 0 waits on its second thread for ranks that begin when its first one has been refused.
  subroutine refuse_second_thread()
    logical :: done
    if (rank == 0) then
      call halo%start()
      call begin_thread(c_funloc(finish_it))
      do
        done = halo%progress(stat=stat, errmsg=text)
        if (stat /= 0) exit
      end do
      call expect_refusal('progress beside another thread', 'another thread was in a call')
      call meet()
      call end_thread()
    else
      call meet()
      call halo%run()
    end if
  end subroutine

  !> MPI's objects of an exchange have ended with MPI.
  subroutine refuse_calls_after_the_end()
    character(*), parameter :: over = 'MPI_Finalize'
    type(halo_grid) :: other
    type(halo_exchange) :: late
    logical :: done
    call halo%run(stat=stat, errmsg=text)
    call expect_refusal('run', over)
    call halo%start(stat=stat, errmsg=text)
    call expect_refusal('start', over)
    call halo%finish(stat=stat, errmsg=text)
    call expect_refusal('finish', over)
    done = halo%progress(stat=stat, errmsg=text)
    call expect(done, 'progress() ends a loop')
    call expect_refusal('progress', over)
    call halo%accumulate(stat=stat, errmsg=text)
    call expect_refusal('accumulate', over)
    call halo%rebind(v, stat=stat, errmsg=text)
    call expect_refusal('rebind', over)
    call late%add(v)
    call late%open(grid, stat=stat, errmsg=text)
    call expect_refusal('open', over)
    call other%create(0_c_int, cells, stat=stat, errmsg=text)
    call expect_refusal('create', over)
    call halo%free(stat=stat, errmsg=text)
    call expect(stat == 0, 'free of an exchange: '//trim(text))
    call grid%free(stat=stat, errmsg=text)
    call expect(stat == 0, 'free of a grid: '//trim(text))
  end subroutine
end program
