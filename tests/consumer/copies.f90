! Grids and exchanges that were assigned to other variables: they are the same ones there, until one is freed. The next
! call then fails with a status and a text, on all ranks where one rank has such a variable, and the program goes on.
! With a word it makes that call without `stat`, which ends the program.
program copies
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  integer, parameter :: cells(2) = [12, 10]
  type(halo_grid) :: grid
  integer :: wrong = 0, stat
  character(300) :: text
  character(10) :: ending

  call begin_mpi()
  call grid%create(world(), cells, periodic=[.true., .true.])
  call get_command_argument(1, ending)
  if (ending /= '') call end_by_mistake()
  call rebind_by_copies('ordered/p2p')
  call rebind_by_copies('direct/neighbor')
  call free_copies_of_exchanges()
  call open_copies_of_exchanges()
  call free_copies_of_grids()
  call create_copies_of_grids()
  call grid%free()
  if (wrong == 0) print '(a, i0, a)', 'rank ', own_rank(), ': right'
  call end_mpi()

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(a, i0, 2a)', 'rank ', own_rank(), ': wrong: ', what
    wrong = wrong + 1
  end subroutine

  !> @param call  that failed, as it should have.
  subroutine expect_freed(call)
    character(*), intent(in) :: call
    call expect(stat == 2 .and. index(text, 'freed before') > 0, call//': '//trim(text))
    text = ''
  end subroutine

  subroutine open_exchange(halo, u)
    type(halo_exchange), intent(inout) :: halo
    real(8), intent(inout), target :: u(:, :)
    call halo%add(u)
    call halo%open(grid, strategy='ordered/p2p', stat=stat, errmsg=text)
  end subroutine

  !> An exchange that is freed, and a copy of it that is not notified.
  subroutine make_stale(copy)
    type(halo_exchange), intent(inout) :: copy
    type(halo_exchange) :: halo
    real(8), allocatable, target, save :: u(:, :)
    integer :: n(2)
    n = grid%shape() + 2
    if (.not. allocated(u)) allocate (u(n(1), n(2)), source=0d0)
    call open_exchange(halo, u)
    copy = halo
    call halo%free(stat=stat, errmsg=text)
    call expect(stat == 0, 'free: '//trim(text))
  end subroutine

  !> Each of two variables rebinds another array of the same exchange, and slots of it.
  subroutine rebind_by_copies(strategy)
    character(*), intent(in) :: strategy
    real(8), allocatable, target :: old(:, :, :), fresh(:, :, :)
    type(halo_exchange) :: halo, other
    integer :: n(2), slot, array
    n = grid%shape() + 2
    allocate (old(n(1), n(2), 4), fresh(n(1), n(2), 4), source=-1d0)
    do array = 1, 2
      call halo%add(old(:, :, array))
      call halo%add_slot(old(:, :, 2 + array))
    end do
    call halo%open(grid, strategy=strategy)
    other = halo
    do slot = 1, 2
      call halo%rebind(fresh(:, :, 2*slot - 1), number=1, slot=slot)
      call other%rebind(fresh(:, :, 2*slot), number=2, slot=slot)
    end do
    fresh(2:n(1) - 1, 2:n(2) - 1, :) = 1
    do slot = 1, 2
      call halo%run(slot)
    end do
    call expect(all(nint(fresh) == 1), strategy//': halos of the new memory are filled')
    call expect(all(nint(old) == -1), strategy//': the old memory is left alone')
    call other%free()
  end subroutine

  subroutine free_copies_of_exchanges()
    type(halo_exchange) :: copy
    logical :: done
    call make_stale(copy)
    done = copy%progress(stat=stat, errmsg=text)
    call expect(done, 'progress() ends a loop')
    call expect_freed('progress')
    call expect(copy%report(stat=stat, errmsg=text) == '', 'report() has nothing to say')
    call expect_freed('report')
    call copy%free(stat=stat, errmsg=text)
    call expect_freed('free')
    call copy%free(stat=stat)
    call expect(stat == 0, 'a copy is forgotten')
  end subroutine

  !> On all ranks, then on rank 0 alone.
  subroutine open_copies_of_exchanges()
    type(halo_exchange) :: copy, none
    real(8), allocatable, target :: u(:, :)
    integer :: n(2)
    n = grid%shape() + 2
    allocate (u(n(1), n(2)), source=0d0)
    call make_stale(copy)
    call open_exchange(copy, u)
    call expect_freed('open')
    call open_exchange(copy, u)
    call expect(stat == 0, 'open after a failure: '//trim(text))
    call copy%free()
    call make_stale(copy)
    if (own_rank() /= 0) copy = none
    call open_exchange(copy, u)
    call expect(own_rank() == 0 .or. index(text, 'rank 0: ') == 1, trim(text))
    call expect_freed('open on one rank')
    call open_exchange(copy, u)
    call copy%run(stat=stat, errmsg=text)
    call expect(stat == 0, 'run after a failure: '//trim(text))
    call copy%free()
  end subroutine

  subroutine free_copies_of_grids()
    type(halo_grid) :: one, copy
    call one%create(world(), cells)
    copy = one
    call one%free(stat=stat, errmsg=text)
    call expect(stat == 0, 'free of a grid: '//trim(text))
    call copy%free(stat=stat, errmsg=text)
    call expect_freed('free of a grid')
    call copy%free(stat=stat)
    call expect(stat == 0, 'a copy of a grid is forgotten')
  end subroutine

  !> On rank 0 alone; by all ways to create one.
  subroutine create_copies_of_grids()
    type(halo_grid) :: one, copy, none
    integer :: first(2), last(2)
    first = grid%first()
    last = first + grid%shape() - 1
    call one%create(world(), cells)
    copy = one
    if (own_rank() /= 0) copy = none
    call one%free()
    call copy%create(world(), cells, stat=stat, errmsg=text)
    call expect(own_rank() == 0 .or. index(text, 'rank 0: ') == 1, trim(text))
    call expect_freed('create')
    call copy%create(world(), cells, stat=stat, errmsg=text)
    call expect(stat == 0 .and. sum(copy%shape()) > 0, 'create after a failure: '//trim(text))
    one = copy
    call one%free()
    call copy%create_of_boxes(world(), cells, first, last, stat=stat, errmsg=text)
    call expect_freed('create_of_boxes')
  end subroutine

  subroutine end_by_mistake()
    type(halo_exchange) :: copy
    type(halo_grid) :: one
    call make_stale(copy)
    if (ending == 'free') call copy%free()
    if (ending == 'progress') wrong = merge(1, 2, copy%progress())
    if (ending == 'report') wrong = len(copy%report())
    if (ending == 'open') call copy%open(grid)
    one = grid
    call one%free()
    if (ending == 'grid') call grid%free()
    if (ending == 'create') call grid%create(world(), cells)
  end subroutine
end program
