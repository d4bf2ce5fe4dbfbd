! Exchanges that were assigned to another variable: they are the same ones there.
program copies
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  integer, parameter :: cells(2) = [12, 10]
  type(halo_grid) :: grid
  integer :: wrong = 0

  call begin_mpi()
  call grid%create(world(), cells, periodic=[.true., .true.])
  call rebind_by_copies('ordered/p2p')
  call rebind_by_copies('direct/neighbor')
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
end program
